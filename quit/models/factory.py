"""From the names in a profile to models. The one place that knows which implementation stands behind which name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import pyarrow as pa

from quit.errors import SettingsError, did_you_mean
from quit.models.protocols import ConvergenceModel, Encoder, Equivalence, Judge, Reader
from quit.settings import ReaderSettings, Settings

WEIGHTS = Path(__file__).parent / "weights"


class Models:
    """The models of one run, each loaded when first asked for and then shared by all shards (thread-safe)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[Any, Any] = {}
        self._lock = RLock()

    @property
    def encoder(self) -> Encoder:
        """The encoder, remembering what it has encoded."""

        def make() -> Encoder:
            import torch

            from quit.models.encoders.cache import CachingEncoder
            from quit.models.encoders.minilm import MiniLM

            # Shards are worked on side by side: more threads than cores would only wait for each other.
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // self._settings.run.workers))
            return CachingEncoder(MiniLM())

        return self._once("encoder", make)

    @property
    def equivalence(self) -> Equivalence:
        """Answer equivalence."""

        def make() -> Equivalence:
            from quit.models.equivalence import EmbeddedEquivalence

            return EmbeddedEquivalence()

        return self._once("equivalence", make)

    @property
    def judge(self) -> Judge:
        """The judge of the readers' answers."""

        def make() -> Judge:
            from quit.models.judges import EquivalenceJudge

            settings = self._settings.judge
            return EquivalenceJudge(settings.name, self.equivalence, settings.threshold)

        return self._once("judge", make)

    @property
    def question_types(self) -> Any:
        """The question type classifier."""

        def make() -> Any:
            from quit.models.question_type import QuestionTypeClassifier

            return QuestionTypeClassifier(self.encoder)

        return self._once("question_types", make)

    @property
    def convergence(self) -> ConvergenceModel:
        """The model that values hints whose source says nothing."""

        def make() -> ConvergenceModel:
            if self._settings.convergence.method == "similarity":
                from quit.construct.convergence import SimilarityConvergence

                return SimilarityConvergence(self.encoder, self._settings.convergence)
            from quit.models.convergence import EmbeddedConvergence

            return EmbeddedConvergence(self.encoder)

        return self._once("convergence", make)

    def candidate_pool(self, questions: pa.Table) -> Any:
        """Return the candidates of the collection (see :mod:`quit.construct.candidates`), given the whole table questions."""

        def make() -> Any:
            from quit.construct.candidates import CandidatePool

            return CandidatePool(
                questions,
                self.question_types,
                self.encoder,
                self.equivalence,
                self._settings.question_type,
                self._settings.convergence,
            )

        return self._once("candidate_pool", make)

    def reader(self, name: str, collection: Mapping[str, pa.Table]) -> Reader:
        """Return a reader by name.

        ``collection``: the whole tables questions, candidates, ranked_hints and descriptions; embedded readers draw their pool
        from them.
        """
        spec = next(reader for reader in self._settings.readers if reader.name == name)

        def make() -> Reader:
            from quit.models.readers import embedded_reader

            pool = self._once("pool", lambda: answer_pool(collection))
            reader = embedded_reader(spec.model or spec.name, self.encoder, pool)
            reader.name = spec.name
            return reader

        return self._once(("reader", name), make)

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


def answer_pool(collection: Mapping[str, pa.Table]) -> Any:
    """Return the pool of an embedded reader: every gold and candidate answer of every described question, with its type."""
    from quit.models.readers import AnswerPool

    types = {row["question_id"]: (row["coarse"], row["fine"]) for row in collection["descriptions"].to_pylist()}
    entries = [
        (answer, *types[row["question_id"]])
        for row in collection["questions"].select(["question_id", "answers"]).to_pylist()
        if row["question_id"] in types
        for answer in row["answers"]
    ]
    entries += [
        (row["candidate"], *types[row["question_id"]])
        for row in collection["candidates"].to_pylist()
        if row["question_id"] in types
    ]
    return AnswerPool.build(entries, collection["ranked_hints"].column("hint").to_pylist())


# Identities for fingerprints: known without loading anything, so that an up-to-date workspace is recognised at once.


@cache
def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def encoder_identity(settings: Settings) -> str:
    """Return what the encoder's vectors depend on."""
    from quit.models.encoders.minilm import MiniLM

    return MiniLM.identity


def equivalence_identity(settings: Settings) -> str:
    """Return what the equivalence model's probabilities depend on."""
    from quit.models.equivalence.embedded import VERSION

    return f"{settings.models.equivalence}-{VERSION}@{_weights('equivalence')}"


def judge_identity(settings: Settings) -> str:
    """Return what the judge's verdicts depend on."""
    return f"{settings.judge.kind}/{settings.judge.threshold}+{equivalence_identity(settings)}"


def leak_rules_identity(settings: Settings) -> str:
    """Return what the lexical leakage rules' findings depend on."""
    from quit.construct.leakage import RULES_IDENTITY

    return RULES_IDENTITY


def convergence_identity(settings: Settings) -> str:
    """Return what the values of the convergence model depend on, beside the encoder."""
    from quit.construct.convergence import VERSION

    if settings.convergence.method == "similarity":
        return f"similarity/{VERSION}"
    from quit.models.convergence import VERSION as LEARNED

    return f"learned/{VERSION}.{LEARNED}@{_weights('convergence')}"


def candidates_identity(settings: Settings) -> str:
    """Return the version of the drawing of candidates."""
    from quit.construct.candidates import VERSION

    return f"collection/{VERSION}"


def difficulty_identity(settings: Settings) -> str:
    """Return the version of the difficulty instrument."""
    from quit.construct.difficulty import VERSION

    return f"retrieval-complexity/{VERSION}"


def question_type_identity(settings: Settings) -> str:
    """Return what the classifier's types depend on."""
    return f"question-type@{_weights('question_type')}+{encoder_identity(settings)}"


def reader_identity(reader: ReaderSettings, settings: Settings) -> str:
    """Return what a reader's replies depend on, beside the tables it is given."""
    from quit.models.readers import EMBEDDED_READERS
    from quit.models.readers.pool import FITTING_MINIMUM

    name = reader.model or reader.name
    if name not in EMBEDDED_READERS:
        raise SettingsError(f"There is no embedded reader {name!r}.{did_you_mean(name, list(EMBEDDED_READERS))}")
    return f"{EMBEDDED_READERS[name].describe()}/pool-of-{FITTING_MINIMUM}+{encoder_identity(settings)}"


def _weights(name: str) -> str:
    files = sorted(path for path in WEIGHTS.glob(f"{name}*") if path.suffix != ".md")
    return hashlib.sha256("".join(_checksum(path) for path in files).encode()).hexdigest()[:12]


def identities(settings: Settings, names: Sequence[str]) -> list[str]:
    """Return the identities of the named models, in order."""
    known: dict[str, Callable[[Settings], str]] = {
        "encoder": encoder_identity,
        "equivalence": equivalence_identity,
        "judge": judge_identity,
        "leak_rules": leak_rules_identity,
        "convergence": convergence_identity,
        "candidates": candidates_identity,
        "difficulty": difficulty_identity,
        "question_types": question_type_identity,
    }
    return [known[name](settings) for name in names]
