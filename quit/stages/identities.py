"""What the results of models and rules depend on, for fingerprints: known without loading anything, so that an
up-to-date workspace is recognised at once.

Unlike the identities that models write beside their results, these leave out the settings that a stage declares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from quit.common.arithmetic import arithmetic
from quit.common.checksums import file_checksum
from quit.models import convergence, convergence_scored, yes_no
from quit.models.equivalence import embedded
from quit.models.equivalence.bem import checkpoint_identity
from quit.models.language_models import generator_identity, language_judge, language_reader
from quit.models.minilm.encoder import minilm_identity
from quit.models.prompting import load_prompt
from quit.models.readers import embedded_method
from quit.models.readers.pool import FITTING_MINIMUM
from quit.settings import ReaderSettings, Settings
from quit.stages.leaks import RULES_IDENTITY, WORDS_IDENTITY
from quit.stages.questions import CANDIDATES_IDENTITY, DIFFICULTY_IDENTITY

_WEIGHTS = Path(__file__).parents[1] / "models" / "weights"


def identities(settings: Settings, names: Sequence[str]) -> list[str]:
    """Return what the results of the named models and rules depend on, in order."""
    return [_IDENTITIES[name](settings) for name in names]


def reader_identity(reader: ReaderSettings, settings: Settings) -> str:
    """Return what a reader's replies depend on, beside the tables it is given."""
    if reader.kind != "embedded":
        return language_reader(reader, settings).identity
    method = embedded_method(reader.model or reader.name)
    return f"{method.describe()}/pool-of-{FITTING_MINIMUM}+{minilm_identity()}"


def equivalence_identity(settings: Settings) -> str:
    """Return what the equivalence model's probabilities depend on.

    Raises :class:`quit.errors.InputError` for a folder without a checkpoint.
    """
    if settings.models.equivalence == "bem":
        return checkpoint_identity(settings.models.bem_checkpoint, settings.models.bem_revision)
    return f"{settings.models.equivalence}-{embedded.VERSION}@{_weights('equivalence')}/{arithmetic()}"


def judge_identity(settings: Settings) -> str:
    """Return what the judge's verdicts depend on."""
    spec = settings.judge
    equivalence = f"equivalence/{spec.threshold}+{equivalence_identity(settings)}"
    return equivalence if spec.kind == "equivalence" else f"{language_judge(spec).identity}, beside {equivalence}"


def _convergence_identity(settings: Settings) -> str:
    if settings.convergence.method == "llm":
        generator = generator_identity(settings.language_models[settings.convergence.language_model or ""])
        prompts = "+".join(load_prompt(name).identity for name in ("refers", "candidates"))
        versions = f"{convergence_scored.VERSION}.{convergence_scored.PROMPT_VERSION}.{yes_no.VERSION}"
        return f"llm/{versions}/{generator}|{prompts}"
    return f"learned/{convergence_scored.VERSION}.{convergence.VERSION}@{_weights('convergence')}"


def _leak_rules_identity(settings: Settings) -> str:
    return WORDS_IDENTITY if settings.leakage.method == "bem" else RULES_IDENTITY


def difficulty_identity(settings: Settings) -> str:
    """Return the version of difficulty, and the corpus if the settings name one.

    Reads the corpus once, to hash it; raises :class:`quit.errors.InputError` when there is none.
    """
    corpus = settings.difficulty.corpus
    if not corpus:
        return f"{DIFFICULTY_IDENTITY}/hints"
    from quit.retrieval.corpus import corpus_checksum

    return f"{DIFFICULTY_IDENTITY}/corpus@{corpus_checksum(Path(corpus))}"


@cache
def _weights(name: str) -> str:
    [path] = _WEIGHTS.glob(f"{name}.*")
    return hashlib.sha256(file_checksum(path)[:12].encode()).hexdigest()[:12]


_IDENTITIES: dict[str, Callable[[Settings], str]] = {
    "encoder": lambda settings: minilm_identity(),
    "equivalence": equivalence_identity,
    "judge": judge_identity,
    "convergence": _convergence_identity,
    "question_types": lambda settings: f"question-type@{_weights('question_type')}+{minilm_identity()}",
    "leak_rules": _leak_rules_identity,
    "candidates": lambda settings: CANDIDATES_IDENTITY,
    "difficulty": difficulty_identity,
}
"""Name of a model or of rules, as stages declare it -> what its results depend on."""
