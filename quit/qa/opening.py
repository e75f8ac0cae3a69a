"""Opening a corpus with its questions, first stage and vectors, and a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quit.common.rows import grouped
from quit.errors import InputError, SettingsError
from quit.models.factory import Models
from quit.models.generation import CachedGenerator
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.encoders import EMBEDDED
from quit.qa.indexes.first_stage import DenseStage, open_first_stage
from quit.qa.settings import QaSettings
from quit.retrieval.hybrid import Bm25Stage, FusedStage
from quit.retrieval.lexical import Bm25
from quit.retrieval.protocols import FirstStage
from quit.settings import JudgeSettings, ReaderSettings
from quit.text.words import shell_word


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its sub-questions in order. ``kind``: the source's type of it (``2hop``, ``comparison``)."""

    query_id: str
    text: str
    answers: tuple[str, ...]
    kind: str | None
    source: str
    steps: tuple[Question, ...] = ()


def questions(collection: BuiltCorpus) -> list[Question]:
    """Return the whole questions of a collection in order, each with its sub-questions by hop."""
    rows = collection.queries.to_pylist()
    steps = grouped((row["parent_id"], row) for row in rows if row["parent_id"] is not None)

    def question_of(row: dict, step_rows: Sequence[dict]) -> Question:
        parts = tuple(question_of(step, ()) for step in sorted(step_rows, key=lambda step: step["hop"] or 0))
        return Question(row["query_id"], row["text"], tuple(row["answers"]), row["kind"], row["source"], parts)

    return [question_of(row, steps.get(row["query_id"], ())) for row in rows if row["parent_id"] is None]


def select_questions(
    collection: BuiltCorpus, source: str | None = None, kind: str | None = None, limit: int | None = None
) -> list[Question]:
    """Return the first ``limit`` whole questions, of one source and kind. Raises :class:`InputError` for none."""
    every = questions(collection)
    of_source = [question for question in every if source in (None, question.source)]
    of_kind = [question for question in of_source if kind in (None, question.kind)][:limit]
    if not every:
        raise InputError("The corpus holds no question.")
    if of_source and not of_kind:
        kinds = ", ".join(sorted({question.kind or "none" for question in of_source}))
        raise InputError(f"The corpus holds no question of the kind {kind!r}; its kinds: {kinds}.")
    if not of_kind:
        sources = ", ".join(sorted({question.source for question in every}))
        raise InputError(f"The corpus holds no question of the source {source!r}; its sources: {sources}.")
    return of_kind


def check_selection(queries: Path | None, source: str | None, kind: str | None) -> None:
    """Raise :class:`SettingsError` for a file of questions beside a source or kind, which choose among a corpus's."""
    if queries and (source or kind):
        raise SettingsError("--queries has its own questions: leave out --source and --kind.")


@dataclass(frozen=True, eq=False)
class Opened:
    """A corpus, its first stage, and the vectors of its documents by the profile's encoder."""

    corpus: BuiltCorpus
    first_stage: FirstStage
    models: Models
    matrix: np.ndarray | None

    def vectors(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return documents' unit vectors, (len(rows), dimension), float32: of a dense index, else encoded now."""
        rows = np.asarray(rows, dtype=np.int64)
        if self.matrix is not None:
            return np.asarray(self.matrix[rows])
        return self.models.encoder.encode(self.corpus.texts(rows.tolist()))


def open_collection(
    corpus: Path,
    indexes: Sequence[Path],
    models: Models,
    settings: QaSettings,
    *,
    vectors: Path | None = None,
    dense: bool = False,
) -> Opened:
    """Open a corpus with its indexes; several are fused by reciprocal rank, without any BM25 is made in memory.

    ``vectors``: a dense index that is not searched, of which only the vectors are used. ``dense``: the first stage must
    have a dense part (RRCP's is hybrid). Raises :class:`SettingsError` where it has none, and what opening a corpus or
    an index raises.
    """
    documents = BuiltCorpus.open(corpus)
    stages = [open_first_stage(index, documents, settings.first_stages) for index in indexes]
    if not stages:
        k1, b = settings.first_stages.bm25_k1, settings.first_stages.bm25_b
        index_in_memory = Bm25.of(documents.iter_texts(), k1=k1, b=b)
        stages = [Bm25Stage(index_in_memory, f"bm25/k1={k1}/b={b}@{documents.identity[:12]}")]
    if dense and not any(isinstance(stage, DenseStage) for stage in stages):
        raise SettingsError(
            f"This needs a dense index: quit index build --corpus {shell_word(corpus)} --encoder minilm --out DENSE, "
            "then --index BM25 --index DENSE."
        )
    extra = [open_first_stage(vectors, documents, settings.first_stages)] if vectors else []
    dense_vectors = [each.vectors for each in (*extra, *stages) if isinstance(each, DenseStage)]
    dense_vectors = [each for each in dense_vectors if each.encoder == EMBEDDED]
    if vectors and not dense_vectors:
        raise SettingsError(f"{vectors} holds no vectors of {EMBEDDED}, the encoder of questions.")
    stage = stages[0] if len(stages) == 1 else FusedStage(stages)
    return Opened(documents, stage, models, dense_vectors[0].matrix if dense_vectors else None)


def language_model(name: str | None, models: Models, settings: QaSettings, key: str) -> CachedGenerator:
    """Return a language model. Raises as :func:`language_model_settings`."""
    return models.generator(language_model_settings(name, settings, key))


def language_model_settings(name: str | None, settings: QaSettings, key: str) -> ReaderSettings | JudgeSettings:
    """Return what the profile says of a language model. Raises :class:`SettingsError` for a name that is none; ``key``:
    the setting or option that has the name."""
    language_models = settings.language_models
    if name not in language_models:
        names = ", ".join(sorted(language_models)) or "none in this profile; see docs/howto/language-models.md"
        raise SettingsError(f"{key} must name a reader or judge that is a language model: {names}")
    return language_models[name]
