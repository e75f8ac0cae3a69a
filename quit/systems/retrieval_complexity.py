"""RRCP (Gabburo et al. 2024) on any questions and corpus, and how far it agrees with what is known of the questions."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quit.corpora.complexity import AnswerHead, Retrieved, TokenHead, measure
from quit.corpora.protocols import Documents
from quit.errors import InputError
from quit.evaluate import association
from quit.evaluate.association import associate
from quit.files import replacing, write_json, writing
from quit.json_lines import json_lines
from quit.models.protocols import Encoder
from quit.settings.complexity import Complexity
from quit.systems.collection import Question

Search = Callable[[Sequence[str]], Sequence[np.ndarray]]
Vectors = Callable[[np.ndarray], np.ndarray]
_log = logging.getLogger(__name__)
_TOGETHER = 32
"""Questions whose documents are encoded together: token vectors of some 300 documents are in memory, about 70 MB."""
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


def asked_of(questions: Sequence[Question]) -> list[Asked]:
    """Return questions and their sub-questions; a question takes as many hops as it has sub-questions, a sub-question one.

    Those without a reference answer are left out, and the log says how many: whether retrieval answers them cannot be told. Raises :class:`InputError` where
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
    if len(kept) < len(made):
        _log.warning("%d of %d questions have no reference answer and are left out.", len(made) - len(kept), len(made))
    return kept


def read_asked(path: Path) -> list[Asked]:
    """Return the questions of a JSONL file: {id, question (or text), answers, hops?, kind?, group?}.

    Raises :class:`InputError` for a file or line that cannot be read, naming the line.
    """
    made = []
    for number, row in json_lines(path, "the questions "):
        try:
            identity, text = str(row["id"]), row.get("question") or row["text"]
            answers, hops, kind = row["answers"], row.get("hops"), row.get("kind")
            right = isinstance(text, str) and text.strip() and isinstance(answers, list) and answers
            if not right or not all(isinstance(answer, str) and answer.strip() for answer in answers):
                raise TypeError
            if not isinstance(hops, int | None) or isinstance(hops, bool) or not isinstance(kind, str | None):
                raise TypeError
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path}, line {number}: expected an object with id, question (a text), answers (a list of texts), and where they "
                "are known hops (a whole number) and kind (a text)."
            ) from error
        made.append(Asked(identity, text, tuple(answers), hops, kind, str(row.get("group", identity))))
    if not made:
        raise InputError(f"{path} holds no question.")
    return made


def write(rated: Sequence[Rated], folder: Path, about: dict[str, Any], settings: Complexity) -> dict[str, Any]:
    """Write ``complexity.parquet`` (the rows of :meth:`Rated.row`) and ``complexity.json``; return the latter.

    Raises :class:`quit.errors.WorkspaceError` where the disk refuses.
    """
    whole = {
        **about,
        "questions": len(rated),
        "without_documents": sum(not one.retrieved.documents for one in rated),
        **{name: sum(getattr(one, name) for one in rated) for name in ("answerable", "complete", "complex")},
        "means": {name: float(_values(rated, name).mean()) for name in SCORES},
        "settings": settings.model_dump(mode="json"),
        "agreement": agreement(rated, settings),
    }
    target = folder / "complexity.parquet"
    kinds = {"hops": pa.int16(), "kind": pa.string(), "documents": pa.int32()}
    rows = [one.row() for one in rated]
    table = pa.table(
        {
            name: pa.array([row[name] for row in rows], kinds[name]) if name in kinds else [row[name] for row in rows]
            for name in rows[0]
        }
    )
    with writing(target), replacing(target) as temporary:
        pq.write_table(table, temporary)
    write_json(folder / "complexity.json", whole)
    return whole


def lines(whole: dict[str, Any]) -> list[str]:
    """Return what ``complexity.json`` says, for people."""
    made = [
        f"{whole['questions']} questions: {whole['answerable']} answerable by one document, {whole['complete']} complete, "
        f"{whole['complex']} complex"
    ]
    found = whole["agreement"]
    if "one_or_more_hops" in found:
        part = found["one_or_more_hops"]
        made += [
            "",
            f"More than one hop ({part['positive']} of {part['items']})    accuracy    F1   Matthews  [95%]           p",
        ]
        for name in ("complex", "not_answerable", "not_complete", "chosen_thresholds"):
            row = part[name]
            made.append(f"  {name:34}{row['accuracy']:8.3f}{row['f1']:7.3f}   {_said(row['matthews'])}")
        made += ["  area under the ROC curve"] + [f"    {name:47}   {_said(row)}" for name, row in part["auc"].items()]
    if "hops" in found:
        made += ["", "Number of hops, whole questions: Kendall's tau-b"]
        made += [f"    {name:47}   {_said(row)}" for name, row in found["hops"].items()]
    if "kinds" in found:
        made += ["", "Types: share that is complex"]
        made += [f"    {kind:47}   {share:6.3f}" for kind, share in found["kinds"]["complex_share"].items()]
        made.append(f"  {'complex and type, Cramer V':49}   {_said(found['kinds']['complex'])}")
        made += [
            f"  {name + ' by type, epsilon squared':49}   {_said(found['kinds'][name])}" for name in (*SCORES, "margin")
        ]
    return made


def _said(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return "not defined"
    return f"{row['value']:6.3f}  [{row['low']:6.3f}, {row['high']:6.3f}]  {row['p']:.3f}"


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
    found = [rows[: settings.documents] for rows in search([one.text for one in asked])]
    questions = encoder.encode([one.text for one in asked])
    made = []
    for start in range(0, len(asked), _TOGETHER):
        block = slice(start, start + _TOGETHER)
        texts = [documents.texts(rows.tolist()) for rows in found[block]]
        token_head.prepare([one.text for one in asked[block]] + [text for own in texts for text in own])
        for one, rows, own, vector in zip(asked[block], found[block], texts, questions[block], strict=True):
            retrieved = measure(
                one.text, one.answers, own, vectors(rows), vector, answer_head, token_head, settings.t_ans
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
