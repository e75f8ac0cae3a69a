"""RRCP (Gabburo et al. 2024) on any questions and corpus, and how far it agrees with what is known of the questions."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.files import write_json
from quit.common.progress import advance
from quit.errors import InputError
from quit.evaluate import association
from quit.evaluate.association import associate
from quit.qa.experiment import write_table
from quit.qa.opening import Opened, Question
from quit.qa.settings.complexity import Complexity
from quit.retrieval.complexity import AnswerHead, Retrieved, TokenHead, measure
from quit.sources.lines import json_lines

_log = logging.getLogger(__name__)
MAX_HOPS = 32_767
"""The largest int16: the column of ``complexity.parquet``."""
_TOGETHER = 32
"""Questions whose documents are encoded together: token vectors of some 300 documents are in memory, about 70 MB."""
SCORES = ("answerability", "answer_share", "completeness", "similarity")
FOLDS = 5
"""Parts of the questions: thresholds are chosen on the others and tried on each."""
DECISIONS = ("answerable", "complete", "complex")
SAID = ("said_complex", "correct")


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


@dataclass(frozen=True, slots=True)
class ComplexityResult:
    """A question and what retrieval is worth to it, decided at the thresholds T_ans and T_com.

    ``said_complex``: what a language model calls it; ``correct``: whether one knows its answer; None: not asked or not
    readable.
    """

    question: ComplexityQuestion
    retrieved: Retrieved
    t_ans: float
    t_com: float
    said_complex: bool | None = None
    correct: bool | None = None

    @property
    def answerable(self) -> bool:
        """Whether some document holds the answer: some s_i >= T_ans."""
        return self.retrieved.documents > 0 and self.retrieved.answerability >= self.t_ans

    @property
    def complete(self) -> bool:
        """Whether the documents cover all that is asked: S_D >= T_com."""
        return self.retrieved.documents > 0 and self.retrieved.completeness >= self.t_com

    @property
    def complex(self) -> bool:
        """Whether the question is complex: neither answerable nor complete."""
        return not self.answerable and not self.complete

    @property
    def margin(self) -> float:
        """Return min(T_ans - max s_i, T_com - S_D); above 0 the question is complex."""
        return min(self.t_ans - self.retrieved.answerability, self.t_com - self.retrieved.completeness)

    def row(self) -> dict[str, Any]:
        """Return it as one flat row: the question without its answers, its :class:`Retrieved`, the decisions."""
        question = asdict(self.question)
        del question["answers"]
        decisions = {name: getattr(self, name) for name in (*DECISIONS, "margin")}
        opinions = {name: getattr(self, name) for name in SAID}
        return {**question, **asdict(self.retrieved), **decisions, **opinions}


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


def write(
    results: Sequence[ComplexityResult], folder: Path, about: dict[str, Any], settings: Complexity
) -> dict[str, Any]:
    """Write ``complexity.parquet`` (:meth:`ComplexityResult.row`) and ``complexity.json``; return the latter.

    Raises :class:`quit.errors.WorkspaceError` where the disk refuses.
    """
    summary = {
        **about,
        "questions": len(results),
        "without_documents": sum(not rating.retrieved.documents for rating in results),
        **{name: sum(getattr(rating, name) for rating in results) for name in DECISIONS},
        "means": {name: float(_values(results, name).mean()) for name in SCORES},
        "settings": settings.model_dump(mode="json"),
        "agreement": agreement(results, settings),
    }
    kinds = {
        "hops": pa.int16(),
        "kind": pa.string(),
        "documents": pa.int32(),
        **dict.fromkeys((*SAID, "known_complex"), pa.bool_()),
    }
    rows = [rating.row() for rating in results]
    columns = {name: pa.array([row[name] for row in rows], kinds.get(name)) for name in rows[0]}
    write_table(folder / "complexity.parquet", pa.table(columns))
    write_json(folder / "complexity.json", summary)
    return summary


def rate(
    questions: Sequence[ComplexityQuestion],
    collection: Opened,
    answer_head: AnswerHead,
    token_head: TokenHead,
    settings: Complexity,
) -> list[ComplexityResult]:
    """Return the complexity of each question, in order, by at most ``settings.documents`` of the first stage."""
    question_texts = [question.text for question in questions]
    rankings = collection.first_stage.search(question_texts, settings.documents)
    question_vectors = collection.models.encoder.encode(question_texts)
    heads = (answer_head, token_head, settings.t_ans)
    results = []
    for start in range(0, len(questions), _TOGETHER):
        block = slice(start, start + _TOGETHER)
        texts = [collection.corpus.texts(ranking.rows.tolist()) for ranking in rankings[block]]
        token_head.prepare([*question_texts[block], *chain(*texts)])
        columns = (questions[block], rankings[block], texts, question_vectors[block])
        for question, ranking, own_texts, vector in zip(*columns, strict=True):
            vectors = collection.vectors(ranking.rows)
            retrieved = measure(question.text, question.answers, own_texts, vectors, vector, *heads)
            results.append(ComplexityResult(question, retrieved, settings.t_ans, settings.t_com))
            advance("complexity: questions", total=len(questions))
    return results


def agreement(results: Sequence[ComplexityResult], settings: Complexity) -> dict[str, Any]:
    """Return how complexity goes with known labels, each with a 95% bootstrap interval and a permutation p over groups.

    ``known_complex``: by a question's own label, else more than one hop against one, as the paper labels MuSiQue:
    accuracy, F1 of "complex", Matthews' correlation, the same with answerability alone, with thresholds chosen on the
    other folds, and what each score alone could do (area under the ROC curve). ``hops``: Kendall's tau-b with the
    number of hops, over whole questions of two hops and more.
    ``correct``: share of a language model's own answers that are correct, of complex and other questions, and Pearson's
    correlation of that with complex and with each score (the paper reports it for complex).
    ``kinds``: Cramér's V of complex and the source's type, epsilon squared of each score by type, over whole questions.
    A part is left out where its labels are not known. An interval is None where its statistic is not defined (all
    values or labels equal) in more than 2.5% of the resamples, as with few questions.
    """
    figures: dict[str, Any] = {}
    with_label = [rating for rating in results if rating.question.label is not None]
    labels = np.array([rating.question.label for rating in with_label])
    if len(np.unique(labels)) == 2:
        figures["known_complex"] = _two_classes(with_label, labels, settings)
    with_hops = [rating for rating in results if rating.question.hops is not None]
    hops = np.array([rating.question.hops for rating in with_hops])
    if len(np.unique(hops[hops > 1])) > 1:
        several = [rating for rating, more in zip(with_hops, hops > 1, strict=True) if more]
        figures["hops"] = _associated_scores(several, hops[hops > 1], association.kendall_tau_b, settings)
    with_verdict = [rating for rating in results if rating.correct is not None]
    if with_verdict:
        figures["correct"] = _correctness(with_verdict, settings)
    with_kind = [rating for rating in results if rating.question.kind not in (None, "step")]
    kinds = np.array([rating.question.kind for rating in with_kind])
    if len(set(kinds)) > 1:
        decisions = np.array([rating.complex for rating in with_kind])
        figures["kinds"] = {
            "complex_share": {str(kind): float(decisions[kinds == kind].mean()) for kind in np.unique(kinds)},
            "complex": _association(with_kind, decisions, kinds, association.cramers_v, settings),
            **_associated_scores(with_kind, kinds, association.epsilon_squared, settings),
        }
    return figures


def _two_classes(results: Sequence[ComplexityResult], labels: np.ndarray, settings: Complexity) -> dict[str, Any]:
    groups = [rating.question.group for rating in results]
    answerability, completeness = _values(results, "answerability"), _values(results, "completeness")
    decisions = {
        "complex": np.array([rating.complex for rating in results]),
        "not_answerable": np.array([not rating.answerable for rating in results]),
        "not_complete": np.array([not rating.complete for rating in results]),
        "chosen_thresholds": chosen_thresholds(answerability, completeness, labels, groups, settings),
    }
    if any(rating.said_complex is not None for rating in results):
        decisions["language_model"] = np.array([bool(rating.said_complex) for rating in results])
    figures: dict[str, Any] = {"items": len(labels), "positive": int(labels.sum())}
    for name, decision in decisions.items():
        figures[name] = {
            "accuracy": float((decision == labels).mean()),
            "f1": _f1(decision, labels),
            "matthews": _association(results, decision, labels, association.matthews, settings),
        }
    figures["auc"] = _associated_scores(results, labels, association.auc_minus_half, settings)
    for row in figures["auc"].values():
        row |= {key: row[key] + 0.5 for key in ("value", "low", "high") if row[key] is not None}
    return figures


def _correctness(results: Sequence[ComplexityResult], settings: Complexity) -> dict[str, Any]:
    decisions, correct = (np.array([getattr(rating, name) for rating in results]) for name in ("complex", "correct"))
    groups = {"all": np.ones(len(results), dtype=bool), "complex": decisions, "not_complex": ~decisions}
    accuracy = {name: float(correct[group].mean()) for name, group in groups.items() if group.any()}
    pearson = {"complex": _association(results, decisions, correct, association.pearson, settings)}
    pearson |= _associated_scores(results, correct, association.pearson, settings)
    return {"items": len(results), "accuracy": accuracy, "pearson": pearson}


def chosen_thresholds(
    answerability: np.ndarray, completeness: np.ndarray, labels: np.ndarray, groups: Sequence[str], settings: Complexity
) -> np.ndarray:
    """Return the decision "complex" on each fold with the thresholds that do best on the others (Matthews'
    correlation).

    Thresholds are tried at the deciles of each score; a group stays in one fold, drawn by a hash of its name.
    """
    keys = [hashlib.blake2b(f"{settings.seed}\0{group}".encode(), digest_size=8).digest() for group in groups]
    fold = np.array([int.from_bytes(key, "big") % FOLDS for key in keys])
    levels = np.linspace(0.0, 1.0, 11)
    decisions = np.zeros(len(labels), dtype=bool)
    for number in range(FOLDS):
        others, held_out = fold != number, fold == number
        if not held_out.any() or not others.any():
            continue
        best = (-2.0, 1.0, 1.0)
        for t_ans in np.append(np.unique(np.quantile(answerability[others], levels)), 1.0 + 1e-9):
            for t_com in np.append(np.unique(np.quantile(completeness[others], levels)), 1.0 + 1e-9):
                candidate = (answerability[others] < t_ans) & (completeness[others] < t_com)
                worth = association.matthews(candidate, labels[others])
                if worth is not None and worth > best[0]:
                    best = (worth, t_ans, t_com)
        decisions[held_out] = (answerability[held_out] < best[1]) & (completeness[held_out] < best[2])
    return decisions


def _values(results: Sequence[ComplexityResult], name: str) -> np.ndarray:
    return np.array([rating.margin if name == "margin" else getattr(rating.retrieved, name) for rating in results])


def _associated_scores(
    results: Sequence[ComplexityResult], labels: np.ndarray, statistic: association.Statistic, settings: Complexity
) -> dict[str, dict[str, Any]]:
    return {
        name: _association(results, _values(results, name), labels, statistic, settings) for name in (*SCORES, "margin")
    }


def _association(
    results: Sequence[ComplexityResult],
    values: np.ndarray,
    labels: np.ndarray,
    statistic: association.Statistic,
    settings: Complexity,
) -> dict[str, Any]:
    groups = [rating.question.group for rating in results]
    draws = {"seed": settings.seed, "resamples": settings.resamples}
    return asdict(associate(values, labels, statistic, **draws, groups=groups))


def _f1(decisions: np.ndarray, labels: np.ndarray) -> float:
    both = float((decisions & labels).sum())
    return 2 * both / max(1.0, float(decisions.sum() + labels.sum()))
