"""Questions whose complexity is asked for: a corpus's, or those of a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.errors import InputError
from quit.qa.opening import Question
from quit.sources.lines import json_lines

_log = logging.getLogger(__name__)
MAX_HOPS = 32_767
"""The largest int16: the column of ``complexity.parquet``."""


@dataclass(frozen=True, slots=True)
class ComplexityQuestion:
    """A question whose complexity is asked for.

    ``hops``: how many steps it takes, where that is known; ``kind``: the source's type of it; ``group``: questions of
    one group are not independent (a question and its sub-questions). ``known_complex``: a label of the question itself,
    such as an expert's; without one, more than one hop is complex.
    """

    query_id: str
    text: str
    answers: tuple[str, ...]
    hops: int | None = None
    kind: str | None = None
    group: str = ""
    known_complex: bool | None = None

    @property
    def label(self) -> bool | None:
        """Whether the question is known to be complex; None: not known."""
        return self.known_complex if self.known_complex is not None or self.hops is None else self.hops > 1


def questions_of(questions: Sequence[Question]) -> list[ComplexityQuestion]:
    """Return questions and their sub-questions; a question takes as many hops as it has sub-questions, a sub-question
    one.

    Those without a reference answer are left out, and the log says how many: whether retrieval answers them is
    unknown. Raises :class:`InputError` where none is left.
    """
    every = []
    for question in questions:
        hops = len(question.steps) or None
        for part, count, kind in ((question, hops, question.kind), *((step, 1, "step") for step in question.steps)):
            every.append(ComplexityQuestion(part.query_id, part.text, part.answers, count, kind, question.query_id))
    with_answers = [question for question in every if question.answers]
    if not with_answers:
        raise InputError("None of the questions has an answer, so their complexity cannot be measured.")
    if len(with_answers) < len(every):
        _log.warning(
            "%d of %d questions have no reference answer: left out.", len(every) - len(with_answers), len(every)
        )
    return with_answers


def read_questions(path: Path) -> list[ComplexityQuestion]:
    """Return the questions of a JSONL file: {id, question (or text), answers, hops?, complex?, kind?, group?}.

    Raises :class:`InputError` for a file or line that cannot be read and for an id that occurs twice, naming the line.
    """
    questions = []
    query_ids: set[str] = set()
    for number, row in json_lines(path, "JSON Lines of questions"):
        text, answers = row.get("question") or row.get("text"), row.get("answers")
        hops, kind, label = row.get("hops"), row.get("kind"), row.get("complex")
        texts: list[Any] = [text, *answers] if isinstance(answers, list) and answers else [None]
        usable = row.get("id") is not None and all(isinstance(part, str) and part.strip() for part in texts)
        labels = isinstance(kind, str | None) and isinstance(label, bool | None)
        if not usable or not labels or not (hops is None or (type(hops) is int and 0 <= hops <= MAX_HOPS)):
            raise InputError(
                f"{path}, line {number}: expected an object with id, question (a text), answers (a list of texts), and "
                f"where known hops (a whole number, 0 to {MAX_HOPS:,}), complex (true or false) and kind (a text)."
            )
        identity = str(row["id"])
        if identity in query_ids:
            raise InputError(f"{path}, line {number}: the id {identity!r} occurs twice.")
        query_ids.add(identity)
        group = identity if row.get("group") is None else str(row["group"])
        questions.append(ComplexityQuestion(identity, texts[0], tuple(texts[1:]), hops, kind, group, label))
    return questions
