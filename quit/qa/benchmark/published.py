"""Result files of QUIT's authors (InferentialQA): ``retriever.json``, ``reranker.json`` and ``rag.json``.

They are read by the layout that the authors' programs write; no such file was tried here. Each is an array with an
object per question: ``{question, ctxs: [{id, ...}]}``, with ``reranked_ctxs`` behind a reranker, or ``{question, id,
predicted_answer: {reader: {"ID_un_1": answer}}}``, where ``un`` is Union_norm, ``uf`` Union_freq, and the number k.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quit.common.progress import advance
from quit.errors import InputError
from quit.retrieval.records import clean_id
from quit.sources.fields import describe, quote
from quit.sources.files import reading
from quit.sources.items import array_items

EXPECTED = "retriever.json, reranker.json or rag.json as the paper's programs write them"
_CONTEXT = re.compile(r"_(un|uf)_([0-9]+)$")
_STRATEGIES = {"un": "norm", "uf": "freq"}
Reading = tuple[str, str, int]
"""reader, strategy, k."""


@dataclass
class PublishedResults:
    """What a file says, by the question's id, or by its text where the file has no id.

    ``rankings``: question -> passage -> 1 / rank. ``answers``: of each reader, strategy and k, question -> answer.
    """

    rankings: dict[str, dict[str, float]] = field(default_factory=dict)
    answers: dict[Reading, dict[str, str]] = field(default_factory=dict)


def read_results(path: Path) -> PublishedResults:
    """Return the content of one file, read question by question.

    Raises ``InputError`` that names the record for anything else, and for a question that is there twice.
    """
    results = PublishedResults()
    with reading(path, EXPECTED) as file:
        for item in array_items(file, path, EXPECTED):
            where = f"{path}, {item.where}"
            try:
                _add(results, item.value, where)
            except (AttributeError, KeyError, TypeError):
                raise InputError(f"{where} is {describe(item.value)}; expected an object of {EXPECTED}.") from None
            advance("questions")
    return results


def _add(results: PublishedResults, record: dict[str, Any], where: str) -> None:
    name = clean_id(record.get("id") or record["question"])
    if name in results.rankings:
        raise InputError(f"{where} has the question {quote(name)} a second time: leave one out.")
    results.rankings[name] = {}
    if "predicted_answer" not in record:
        contexts = record["reranked_ctxs" if "reranked_ctxs" in record else "ctxs"]
        ids = dict.fromkeys(clean_id(context["id"]) for context in contexts)
        results.rankings[name] = {passage: 1 / rank for rank, passage in enumerate(ids, 1)}
        return
    for reader, answers in record["predicted_answer"].items():
        for context, answer in answers.items():
            if (match := _CONTEXT.search(context)) is None or not isinstance(answer, str):
                raise InputError(f"{where}, {reader}: {quote(context)} has {describe(answer)}; expected {EXPECTED}.")
            key = (reader, _STRATEGIES[match[1]], int(match[2]))
            results.answers.setdefault(key, {})[name] = answer
