"""RRCP (Gabburo et al. 2024) on any questions and corpus, and how far it agrees with what is known of the questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quit.corpora.complexity import AnswerHead, Retrieved, TokenHead, measure
from quit.corpora.protocols import Documents
from quit.errors import InputError
from quit.evaluate import association
from quit.evaluate.association import associate
from quit.models.protocols import Encoder
from quit.settings.complexity import Complexity
from quit.systems.collection import Question

Search = Callable[[Sequence[str]], Sequence[np.ndarray]]
Vectors = Callable[[np.ndarray], np.ndarray]
SCORES = ("answerability", "answer_share", "completeness", "similarity")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose complexity is asked for.

    ``hops``: how many steps it takes, where that is known; ``kind``: the source's type of it; ``group``: questions of one group are
    not independent (a question and its sub-questions).
    """

    query_id: str
    text: str
    answers: tuple[str, ...]
    hops: int | None = None
    kind: str | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Rated:
    """A question and what retrieval is worth to it. ``margin``: min(T_ans - max s_i, T_com - S_D); above 0 it is complex."""

    asked: Asked
    retrieved: Retrieved
    answerable: bool
    complete: bool
    complex: bool
    margin: float

    def row(self) -> dict[str, Any]:
        """Return it as one flat row: query_id, text, hops, kind, group, the values of :class:`Retrieved`, the decisions, margin."""
        asked = asdict(self.asked)
        del asked["answers"]
        decided = {"answerable": self.answerable, "complete": self.complete, "complex": self.complex}
        return {**asked, **asdict(self.retrieved), **decided, "margin": self.margin}


class TextsOf:
    """The texts of documents as a sequence, for :class:`quit.corpora.hybrid.HybridIndex`."""

    def __init__(self, documents: Documents, step: int = 4096) -> None:
        self._documents = documents
        self._step = step

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, row: int) -> str:
        return self._documents.texts([row])[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), self._step):
            yield from self._documents.texts(range(start, min(start + self._step, len(self))))


def asked_of(questions: Sequence[Question]) -> list[Asked]:
    """Return questions and their sub-questions; a question takes as many hops as it has sub-questions, a sub-question one.

    Those without a reference answer are left out: whether retrieval answers them cannot be told. Raises :class:`InputError` where
    none is left.
    """
    made = []
    for question in questions:
        hops = len(question.steps) or None
        made.append(Asked(question.query_id, question.text, question.answers, hops, question.kind, question.query_id))
        made += [Asked(step.query_id, step.text, step.answers, 1, "step", question.query_id) for step in question.steps]
    kept = [asked for asked in made if asked.answers]
    if not kept:
        raise InputError("None of the questions has an answer, so their complexity cannot be told.")
    return kept


def rate(
    asked: Sequence[Asked],
    documents: Documents,
    search: Search,
    vectors: Vectors,
    encoder: Encoder,
    answer_head: AnswerHead,
    token_head: TokenHead,
    settings: Complexity,
) -> list[Rated]:
    """Return the complexity of each question, in order.

    ``search``: questions to the rows of their documents, best first; at most ``settings.documents`` count. ``vectors``: rows to the
    documents' unit vectors.
    """
    made = []
    found = search([one.text for one in asked])
    questions = encoder.encode([one.text for one in asked])
    for one, rows, own in zip(asked, found, questions, strict=True):
        rows = rows[: settings.documents]
        retrieved = measure(
            one.text,
            one.answers,
            documents.texts(rows.tolist()),
            vectors(rows),
            own,
            answer_head,
            token_head,
            settings.t_ans,
        )
        margin = min(settings.t_ans - retrieved.answerability, settings.t_com - retrieved.completeness)
        decided = (retrieved.answerable(settings.t_ans), retrieved.complete(settings.t_com))
        made.append(Rated(one, retrieved, *decided, retrieved.complex(settings.t_ans, settings.t_com), margin))
    return made


def agreement(rated: Sequence[Rated], settings: Complexity) -> dict[str, Any]:
    """Return how complexity goes with known labels, each with a 95% bootstrap interval over groups and a permutation p.

    ``one_or_more_hops``: more than one hop against one, as the paper labels MuSiQue: accuracy, F1 of "complex", Matthews'
    correlation, the same with answerability alone, with thresholds chosen on the other folds, and what each score alone could do
    (area under the ROC curve). ``hops``: Kendall's tau-b with the number of hops, over whole questions of two hops and more.
    ``kinds``: Cramér's V of complex and the source's type, epsilon squared of each score by type, over whole questions. A part is
    left out where its labels are not known.
    """
    made: dict[str, Any] = {}
    hopped = [one for one in rated if one.asked.hops is not None]
    if len({one.asked.hops > 1 for one in hopped}) == 2:  # type: ignore[operator]
        made["one_or_more_hops"] = _two_classes(hopped, settings)
    several = [one for one in hopped if one.asked.hops > 1]  # type: ignore[operator]
    if len({one.asked.hops for one in several}) > 1:
        hops = [one.asked.hops for one in several]
        made["hops"] = {
            name: asdict(_associated(several, _values(several, name), hops, association.kendall_tau_b, settings))
            for name in (*SCORES, "margin")
        }
    typed = [one for one in rated if one.asked.kind not in (None, "step")]
    kinds = [one.asked.kind for one in typed]
    if len(set(kinds)) > 1:
        decided = np.array([one.complex for one in typed])
        made["kinds"] = {
            "complex_share": {kind: float(decided[np.array(kinds) == kind].mean()) for kind in sorted(set(kinds))},  # type: ignore[type-var]
            "complex": asdict(_associated(typed, decided, kinds, association.cramers_v, settings)),
            **{
                name: asdict(_associated(typed, _values(typed, name), kinds, association.epsilon_squared, settings))
                for name in (*SCORES, "margin")
            },
        }
    return made


def _two_classes(rated: Sequence[Rated], settings: Complexity) -> dict[str, Any]:
    labels = np.array([one.asked.hops > 1 for one in rated])  # type: ignore[operator]
    values = {name: _values(rated, name) for name in (*SCORES, "margin")}
    decisions = {
        "complex": np.array([one.complex for one in rated]),
        "not_answerable": np.array([not one.answerable for one in rated]),
        "not_complete": np.array([not one.complete for one in rated]),
        "chosen_thresholds": chosen_thresholds(
            values["answerability"], values["completeness"], labels, [one.asked.group for one in rated], settings
        ),
    }
    made: dict[str, Any] = {"items": len(labels), "positive": int(labels.sum())}
    for name, decided in decisions.items():
        made[name] = {
            "accuracy": float((decided == labels).mean()),
            "f1": _f1(decided, labels),
            "matthews": asdict(_associated(rated, decided, labels, association.matthews, settings)),
        }
    made["auc"] = {}
    for name, value in values.items():
        found = asdict(_associated(rated, value, labels, association.auc_minus_half, settings))
        made["auc"][name] = {
            key: item + 0.5 if key in ("value", "low", "high") and item is not None else item
            for key, item in found.items()
        }
    return made


def chosen_thresholds(
    answerability: np.ndarray, completeness: np.ndarray, labels: np.ndarray, groups: Sequence[str], settings: Complexity
) -> np.ndarray:
    """Return the decision "complex" on each fold with the thresholds that do best on the others (Matthews' correlation).

    Thresholds are tried at the deciles of each score; a group stays in one fold, drawn by a hash of its name.
    """
    keys = [hashlib.blake2b(f"{settings.seed}\0{group}".encode(), digest_size=8).digest() for group in groups]
    fold = np.array([int.from_bytes(key, "big") % settings.folds for key in keys])
    levels = np.linspace(0.0, 1.0, 11)
    decided = np.zeros(len(labels), dtype=bool)
    for number in range(settings.folds):
        others, own = fold != number, fold == number
        if not own.any() or not others.any():
            continue
        best = (-2.0, 1.0, 1.0)
        for t_ans in np.append(np.unique(np.quantile(answerability[others], levels)), 1.0 + 1e-9):
            for t_com in np.append(np.unique(np.quantile(completeness[others], levels)), 1.0 + 1e-9):
                tried = (answerability[others] < t_ans) & (completeness[others] < t_com)
                worth = association.matthews(tried, labels[others])
                if worth is not None and worth > best[0]:
                    best = (worth, t_ans, t_com)
        decided[own] = (answerability[own] < best[1]) & (completeness[own] < best[2])
    return decided


def _values(rated: Sequence[Rated], name: str) -> np.ndarray:
    return np.array([one.margin if name == "margin" else getattr(one.retrieved, name) for one in rated])


def _associated(
    rated: Sequence[Rated], values: np.ndarray, labels: Any, statistic: association.Statistic, settings: Complexity
) -> association.Association:
    groups = [one.asked.group for one in rated]
    return associate(values, labels, statistic, seed=settings.seed, resamples=settings.resamples, groups=groups)


def _f1(decided: np.ndarray, labels: np.ndarray) -> float:
    both = float((decided & labels).sum())
    return 2 * both / max(1.0, float(decided.sum() + labels.sum()))
