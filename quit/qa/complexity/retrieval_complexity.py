"""RRCP (Gabburo et al. 2024) on any questions and corpus: what retrieval is worth to each question, and what is decided
from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.files import write_json
from quit.common.progress import advance
from quit.evaluate.association import Association, Statistic, associate
from quit.qa.complexity.questions import ComplexityQuestion
from quit.qa.experiment import write_table
from quit.qa.opening import Opened
from quit.qa.settings.complexity import Complexity
from quit.retrieval.complexity import AnswerHead, Retrieved, TokenHead, measure

_TOGETHER = 32
"""Questions whose documents are encoded together: token vectors of some 300 documents are in memory, about 70 MB."""
SCORES = ("answerability", "answer_share", "completeness", "similarity")
DECISIONS = ("answerable", "complete", "complex")
OPINIONS = ("said_complex", "correct")
_TYPES = {
    "hops": pa.int16(),
    "kind": pa.string(),
    "documents": pa.int32(),
    **dict.fromkeys(("known_complex", "label", *OPINIONS), pa.bool_()),
}
"""Of columns that may be null, or are narrower than Arrow would have them."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings as a table, one row per question: the fields of :class:`ComplexityQuestion` except ``answers``, its
    ``label``, those of :class:`Retrieved`, :data:`DECISIONS`, ``margin``, and :data:`OPINIONS`.

    ``answerable``: some document holds the answer, some s_i >= T_ans; ``complete``: the documents cover all that is
    asked, S_D >= T_com; ``complex``: :func:`is_complex`. ``margin``: min(T_ans - max s_i, T_com - S_D); above 0 the
    question is complex. ``said_complex``: what a language model calls it; ``correct``: whether one knows its answer;
    null: not asked or not readable.
    """

    table: pa.Table
    settings: Complexity

    @classmethod
    def of(
        cls,
        questions: Sequence[ComplexityQuestion],
        retrieved: Sequence[Retrieved],
        settings: Complexity,
        opinions: Mapping[str, Sequence[bool | None]] | None = None,
    ) -> Ratings:
        """Return the ratings of questions by what was ``retrieved`` for each, decided at the settings' thresholds.
        ``opinions``: of :data:`OPINIONS`, in order."""
        pairs = zip(questions, retrieved, strict=True)
        rows = [{**asdict(question), "label": question.label, **asdict(documents)} for question, documents in pairs]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0] if name != "answers"}
        scores = {name: np.array(columns[name]) for name in ("answerability", "completeness", "documents")}
        columns |= {
            "answerable": _reached(scores, "answerability", settings.t_ans),
            "complete": _reached(scores, "completeness", settings.t_com),
            "complex": is_complex(scores, settings.t_ans, settings.t_com),
            "margin": np.minimum(settings.t_ans - scores["answerability"], settings.t_com - scores["completeness"]),
            **dict.fromkeys(OPINIONS, [None] * len(rows)),
            **(opinions or {}),
        }
        table = pa.table({name: pa.array(values, _TYPES.get(name)) for name, values in columns.items()})
        return cls(table, settings)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column, shape (questions,)."""
        return self.table[name].to_numpy()

    def where(self, mask: pa.ChunkedArray | np.ndarray) -> Ratings:
        """Return those of the questions where ``mask`` is true."""
        return Ratings(self.table.filter(mask), self.settings)

    def known(self, name: str) -> Ratings:
        """Return those of the questions whose ``name`` is not null."""
        return self.where(self.table[name].is_valid())

    def association(self, values: np.ndarray, labels: str, statistic: Statistic) -> Association:
        """Return how values go with the labels of a name."""
        draws = {"seed": self.settings.seed, "resamples": self.settings.resamples}
        return associate(values, self[labels], statistic, **draws, groups=self["group"])

    def associations(self, labels: str, statistic: Statistic) -> dict[str, Association]:
        """Return how each score and the margin go with the labels of a name."""
        return {name: self.association(self[name], labels, statistic) for name in (*SCORES, "margin")}


def is_complex(scores: Mapping[str, np.ndarray] | Ratings, t_ans: float, t_com: float) -> np.ndarray:
    """Return whether each question is complex, bool: neither answerable at T_ans nor complete at T_com."""
    return ~(_reached(scores, "answerability", t_ans) | _reached(scores, "completeness", t_com))


def _reached(scores: Mapping[str, np.ndarray] | Ratings, name: str, threshold: float) -> np.ndarray:
    return (scores["documents"] > 0) & (scores[name] >= threshold)


def rate(
    questions: Sequence[ComplexityQuestion],
    collection: Opened,
    answer_head: AnswerHead,
    token_head: TokenHead,
    settings: Complexity,
) -> list[Retrieved]:
    """Return what is retrieved for each question, in order, by at most ``settings.documents`` of the first stage."""
    question_texts = [question.text for question in questions]
    rankings = collection.first_stage.search(question_texts, settings.documents)
    question_vectors = collection.models.encoder.encode(question_texts)
    heads = (answer_head, token_head, settings.t_ans)
    ratings = []
    for start in range(0, len(questions), _TOGETHER):
        block = slice(start, start + _TOGETHER)
        texts = [collection.corpus.texts(ranking.rows.tolist()) for ranking in rankings[block]]
        token_head.prepare([*question_texts[block], *chain(*texts)])
        columns = (questions[block], rankings[block], texts, question_vectors[block])
        for question, ranking, own_texts, vector in zip(*columns, strict=True):
            vectors = collection.vectors(ranking.rows)
            ratings.append(measure(question.text, question.answers, own_texts, vectors, vector, *heads))
            advance("complexity: questions", total=len(questions))
    return ratings


def write(ratings: Ratings, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``complexity.parquet`` (:class:`Ratings` without ``label``) and ``complexity.json``; return
    the latter. ``about``: what else it has.

    Raises :class:`quit.errors.WorkspaceError` where the disk refuses.
    """
    summary = {
        **about,
        "questions": len(ratings.table),
        "without_documents": int((ratings["documents"] == 0).sum()),
        **{name: int(ratings[name].sum()) for name in DECISIONS},
        "means": {name: float(ratings[name].mean()) for name in SCORES},
        "settings": ratings.settings.model_dump(mode="json"),
    }
    write_table(folder / "complexity.parquet", ratings.table.drop_columns("label"))
    write_json(folder / "complexity.json", summary)
    return summary
