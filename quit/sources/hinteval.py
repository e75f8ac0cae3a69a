"""Datasets of the toolkit HintEval (Mozafari et al., 2025), stored with its ``Dataset.store_json``.

``{name, ..., subsets: {name: {instances: {q_id: {question, answers, hints, metadata}}}}}``, where every metric is an
object ``{name, value, metadata}`` whose key names its method, such as ``convergence-llm-llama-3-70b``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quit.errors import InputError
from quit.sources import drafts, fields
from quit.sources.drafts import DraftHint, DraftRecord, Item
from quit.sources.fields import MAX_QUOTE, describe, quote
from quit.sources.files import check_file
from quit.sources.json_text import read_json
from quit.sources.records import SourceRecord

EXPECTED = "a HintEval dataset as JSON (Dataset.store_json): an object with subsets -> instances"
# By preference. HintEval's third method, `convergence-specificity-*`, looks at no candidate answers: another quantity.
_CONVERGENCE = ("convergence", "convergence-llm-", "convergence-nn-")
_HINTS = "a list of objects with 'hint'"
_ANSWERS = "a list of objects with 'answer'"


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the instances of every subset; where there are several, each counts as a separate file, ``FILE#SUBSET``.

    Convergence, scores and candidates are taken from HintEval's convergence metrics. Raises ``InputError`` for what is
    no such JSON or holds no usable record.
    """
    return drafts.records(_items(path), "hinteval", parse, path, EXPECTED)


def parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    """Return the checked parts of one instance. Raises ``BadRecord``."""
    record_id = fields.as_id(key, "q_id")
    about = fields.as_object(fields.need(record, "question", "an object with 'question'"), "question")
    kind = fields.as_object(about.get("question_type") or {}, "question.question_type")
    metadata = fields.as_object(about.get("metadata") or {}, "question.metadata")
    question = fields.as_text(fields.need(about, "question", "a text", "question."), "question.question")
    answers = fields.as_list(fields.need(record, "answers", _ANSWERS), "answers", _ANSWERS)
    hints = fields.as_list(fields.need(record, "hints", _HINTS), "hints", _HINTS)
    difficulty = metadata.get("difficulty")
    return DraftRecord(
        record_id,
        question,
        [_answer(answer, f"answers[{index}]") for index, answer in enumerate(answers)],
        [_hint(hint, f"hints[{index}]") for index, hint in enumerate(hints)],
        candidates=_candidates(metadata),
        coarse=fields.as_label(kind.get("major"), "question.question_type.major"),
        fine=fields.as_label(kind.get("minor"), "question.question_type.minor"),
        difficulty=fields.as_label(difficulty, "question.metadata.difficulty") if isinstance(difficulty, str) else None,
    )


def _answer(answer: Any, name: str) -> str:
    text = fields.need(answer, "answer", "a text", f"{name}.") if isinstance(answer, dict) else answer
    return fields.as_text(text, name)


def _hint(hint: Any, name: str) -> DraftHint:
    if not isinstance(hint, dict):
        return DraftHint(hint)
    metrics = fields.as_object(hint.get("metrics") or {}, f"{name}.metrics")
    method = _preferred(metrics)
    metric = metrics.get(method) if method else None
    about = metric if isinstance(metric, dict) else {}
    metadata = fields.as_object(about.get("metadata") or {}, f"{name}.metrics[convergence].metadata")
    return DraftHint(
        hint.get("hint"),
        convergence=fields.as_convergence(_value(metric), f"{name}.metrics[convergence]"),
        url=fields.as_label(hint.get("source"), f"{name}.source"),
        scores=fields.as_scores(metadata.get("scores"), f"{name}.metrics[convergence].metadata.scores"),
    )


def _value(metric: Any) -> Any:
    return metric.get("value") if isinstance(metric, dict) else metric


def _preferred(metrics: dict[str, Any]) -> str | None:
    names = sorted(name for name, metric in metrics.items() if _value(metric) is not None)
    for method in _CONVERGENCE:
        for name in names:
            if name == method or (method.endswith("-") and name.startswith(method)):
                return name
    return None


def _candidates(metadata: dict[str, Any]) -> list[str]:
    """Return the candidates that HintEval stored with the question (``candidate_answers-MODEL``)."""
    for name in sorted(metadata):
        if metadata[name] and (name == "candidate_answers" or name.startswith("candidate_answers-")):
            return fields.as_texts(metadata[name], "question.metadata.candidate_answers")
    return []


def _items(path: Path) -> Iterator[Item]:
    check_file(path, EXPECTED)
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            # `Dataset.store` writes a compressed pickle; unpickling a file runs whatever code it holds.
            raise InputError(
                f"{path} is compressed (HintEval's Dataset.store?) and is not read, because a pickle can run code. "
                "Load it in HintEval and write it with store_json."
            )
    data = read_json(path, EXPECTED)
    subsets = data.get("subsets") if isinstance(data, dict) else None
    if not isinstance(subsets, dict):
        raise InputError(f"{path} holds {describe(data)} without 'subsets'. Expected {EXPECTED}.")
    for name, subset in subsets.items():
        instances = subset.get("instances") if isinstance(subset, dict) else None
        if not isinstance(instances, dict):
            raise InputError(f"{path}: subset {quote(name)} has no 'instances'. Expected {EXPECTED}.")
        label = f"{path.name}#{name[:MAX_QUOTE]}" if len(subsets) > 1 else path.name
        for position, (key, instance) in enumerate(instances.items()):
            yield Item(instance, position, label, f"subset {quote(name)}, instance {position + 1}", key=key)
