"""From the names in a profile to models: nothing else knows which implementation has which name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

import pyarrow as pa

from quit.common.cache import equivalence_store, vector_store
from quit.errors import InputError
from quit.models.convergence import EmbeddedConvergence
from quit.models.convergence_scored import CANDIDATES_FIELDS, REFERS_FIELDS, LLMCandidates, LLMConvergence
from quit.models.encoders.cache import CachingEncoder
from quit.models.encoders.published import PublishedMiniLM
from quit.models.equivalence import BemEquivalence, CachedEquivalence, EmbeddedEquivalence
from quit.models.equivalence.bem import checkpoint_identity
from quit.models.generation import CachedGenerator, GenerationCache, Meter
from quit.models.generation.ledger import Ledger
from quit.models.generation.portions import Elsewhere, PortionedGenerator
from quit.models.judges import EquivalenceJudge
from quit.models.language_models import language_judge, language_reader, make_generator
from quit.models.loading import once
from quit.models.minilm.encoder import MiniLM
from quit.models.prompting import load_prompt
from quit.models.protocols import CandidateSource, ConvergenceModel, Encoder, Equivalence, Judge, Reader
from quit.models.question_type import QuestionTypeClassifier
from quit.models.readers import AnswerPool, embedded_reader
from quit.models.readers.pool import pool_size
from quit.settings import JudgeSettings, ReaderSettings, Settings


class Models:
    """The models of one run, each loaded when first asked for and then shared by all shards of a process
    (thread-safe)."""

    def __init__(self, settings: Settings, *, keeps_replies: bool = True) -> None:
        self._settings, self._keeps_replies = settings, keeps_replies
        self._loaded: dict[Any, Any] = {}
        self._lock = RLock()
        self.meter = Meter()
        self.ledger = Ledger(settings.run.max_cost, settings.run.max_tokens)
        """What requests to servers may cost, and do."""
        self.elsewhere: Callable[[ReaderSettings | JudgeSettings], Elsewhere] | None = None
        """Says where the language models of this program work; None: in this process."""

    @once
    def encoder(self) -> Encoder:
        """The encoder, remembering what it has encoded."""
        return CachingEncoder(MiniLM(), store=vector_store())

    @once
    def difficulty_encoder(self) -> Encoder:
        """The encoder of difficulty, likewise."""
        if self._settings.difficulty.encoder == "minilm":
            return self.encoder
        return CachingEncoder(PublishedMiniLM(), store=vector_store())

    @once
    def equivalence(self) -> Equivalence:
        """Answer equivalence, remembering on disk what it was asked."""
        settings = self._settings.models
        if settings.equivalence != "bem":
            return CachedEquivalence(EmbeddedEquivalence(), equivalence_store())
        # A wrong folder or name is another error than a missing download.
        checkpoint_identity(settings.bem_checkpoint, settings.bem_revision)
        bem = BemEquivalence(settings.bem_checkpoint, revision=settings.bem_revision)
        return CachedEquivalence(bem, equivalence_store())

    @once
    def judge(self) -> Judge:
        """The judge of the readers' answers."""
        spec = self._settings.judge
        if spec.kind == "equivalence":
            return EquivalenceJudge(spec.name, self.equivalence, spec.threshold)
        return language_judge(spec, self.generator(spec))

    @once
    def second_judge(self) -> Judge | None:
        """The equivalence model, whose verdicts are stored beside language models'; None where it judges itself."""
        if self._settings.judge.kind == "equivalence":
            return None
        return EquivalenceJudge("equivalence", self.equivalence, self._settings.judge.threshold)

    @once
    def question_types(self) -> QuestionTypeClassifier:
        """The question type classifier."""
        return QuestionTypeClassifier(self.encoder)

    @once
    def convergence(self) -> ConvergenceModel:
        """The model that values hints whose source says nothing."""
        settings = self._settings.convergence
        if settings.method == "llm":
            return LLMConvergence(self._convergence_generator(), load_prompt("refers", REFERS_FIELDS), settings)
        return EmbeddedConvergence(self.encoder)

    def _convergence_generator(self) -> CachedGenerator:
        return self.generator(self._settings.language_models[self._settings.convergence.language_model or ""])

    def candidate_writer(self) -> CandidateSource | None:
        """Return the language model that writes candidates; None where they come from the collection."""
        if self._settings.convergence.method != "llm":
            return None
        prompt, settings = load_prompt("candidates", CANDIDATES_FIELDS), self._settings.convergence
        return LLMCandidates(self._convergence_generator(), prompt, self.encoder, self.equivalence, settings)

    def reader(self, name: str, collection: Mapping[str, pa.Table]) -> Reader:
        """Return a reader by name.

        ``collection``: the whole tables questions, candidates, ranked_hints and descriptions; embedded readers draw
        their pool from them.
        """
        spec = next(reader for reader in self._settings.readers if reader.name == name)

        def make() -> Reader:
            if spec.kind != "embedded":
                return language_reader(spec, self._settings, self.generator(spec))
            pool = self.shared("pool", lambda: answer_pool(collection))
            reader = embedded_reader(spec.model or spec.name, self.encoder, pool)
            reader.name = spec.name
            return reader

        return self.shared(("reader", name), make)

    def generator(self, spec: ReaderSettings | JudgeSettings) -> CachedGenerator:
        """Return a language model, behind the generation cache where this process keeps replies."""

        def make() -> CachedGenerator:
            model = make_generator(spec, self._settings, self.meter, self.ledger)
            if spec.kind != "server":
                model = PortionedGenerator(model, self.ledger, lambda: self.elsewhere and self.elsewhere(spec))
            generator = CachedGenerator(model, self.cache if self._keeps_replies else None, self.meter)
            generator.max_refused = self._settings.run.max_refused
            return generator

        return self.shared(("generator", spec.name, spec.kind, spec.model), make)

    def release_readers(self, *, only: str | None = None, but: str | None = None) -> None:
        """Let go of the language models in this process that readers use: of the reader ``only``, or of all except
        ``but``."""
        readers = {reader.name for reader in self._settings.readers if only in (None, reader.name)} - {but}
        with self._lock:
            generators = [model for key, model in self._loaded.items() if key[0] == "generator" and key[1] in readers]
        for generator in generators:
            generator.release()

    @once
    def cache(self) -> GenerationCache:
        """The cache of replies."""
        return GenerationCache()

    def shared(self, key: Any, load: Callable[[], Any]) -> Any:
        """Return the model of this key, loaded when first asked for."""
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = load()
            return self._loaded[key]


def answer_pool(collection: Mapping[str, pa.Table]) -> AnswerPool:
    """Return the pool of an embedded reader: all gold and candidate answers of the described questions, with types.

    Raises ``InputError`` where it holds nothing except the answers to one question.
    """
    types = {row["question_id"]: (row["coarse"], row["fine"]) for row in collection["descriptions"].to_pylist()}
    questions = collection["questions"].select(["question_id", "answers"]).to_pylist()
    answers = [(row["question_id"], answer) for row in questions for answer in row["answers"]]
    answers += [(row["question_id"], row["candidate"]) for row in collection["candidates"].to_pylist()]
    entries = [(answer, *types[question_id]) for question_id, answer in answers if question_id in types]
    pool = AnswerPool.build(entries, collection["ranked_hints"].column("hint").to_pylist())
    for row in questions:
        if row["question_id"] in types and pool_size(row["answers"]) == len(pool.answers):
            raise InputError(
                "An embedded reader chooses from the gold answers and candidates of all questions: here these are "
                f"{', '.join(map(repr, pool.answers[:3]))}, the answer to {row['question_id']}, so no reply can be "
                "wrong. Give the question candidates (plausible wrong answers), or build more questions together."
            )
    return pool
