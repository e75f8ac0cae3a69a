"""Files of other programs: TREC runs and qrels, whose bad lines are named, and rankings over a corpus (TREC or JSON);
read as a first stage here, as a graph in :mod:`quit.corpora.neighbours`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.files import file_checksum
from quit.common.progress import advance
from quit.errors import InputError
from quit.retrieval.built import BuiltCorpus
from quit.retrieval.protocols import Ranking
from quit.sources.fields import describe, quote
from quit.sources.files import check_file, read_json
from quit.text.words import counted

RANKINGS = "a TREC run, or a .json file of {id: {document: score}} or {id: [document, ...]}"
RUN = "a TREC run file: question Q0 passage rank score name, with spaces or tabs between"
QRELS = "a TREC qrels file: question 0 passage label, with spaces or tabs between"


@dataclass(frozen=True, slots=True)
class Rankings:
    """What a file ranks. ``by_id``: id of a question or document -> its documents that the corpus has, best first,
    equal scores as in the file. ``checksum``: the file's. ``documents``: ids that are ranked; ``unknown``: those of
    them that the corpus lacks."""

    path: Path
    checksum: str
    by_id: dict[str, Ranking]
    documents: set[str]
    unknown: set[str]


def read_rankings(path: Path, corpus: BuiltCorpus) -> Rankings:
    """Return the rankings of a TREC run or a JSON file (:data:`RANKINGS`); documents of a list have the score 1 / rank.

    Ids of documents are the corpus's or its source's (:attr:`BuiltCorpus.rows_by_id`). A JSON file is read whole, up to
    2 GiB. Raises :class:`InputError` for anything else, and where the corpus has none of the documents.
    """
    scores = _json_scores(path) if path.suffix == ".json" else read_run(path)[1]
    rows = corpus.rows_by_id
    documents = {document for of_one in scores.values() for document in of_one}
    if not documents & rows.keys():
        example = next(iter(documents), "nothing")
        raise InputError(
            f"{path} ranks no document of the corpus {corpus.path}: it has {quote(example)}, the corpus "
            f"{quote(corpus.ids([0])[0])}. Ids are the corpus's, or those of its sources jsonl and beir."
        )
    by_id = {}
    for name, of_one in scores.items():
        best: dict[int, float] = {}
        for document in sorted(of_one, key=of_one.__getitem__, reverse=True):
            if document in rows:
                best.setdefault(rows[document], of_one[document])
        with np.errstate(over="ignore"):
            by_id[name] = Ranking(np.array([*best], dtype=np.int64), np.array([*best.values()], dtype=np.float32))
    return Rankings(path, file_checksum(path), by_id, documents, documents - rows.keys())


def _json_scores(path: Path) -> Mapping[str, Mapping[str, float]]:
    value = read_json(path, RANKINGS)
    if not isinstance(value, dict):
        raise InputError(f"{path} holds {describe(value)}; expected {RANKINGS}.")
    for name, ranked in value.items():
        if isinstance(ranked, list) and all(type(each) in (str, int) for each in ranked):
            value[name] = {each: 1 / rank for rank, each in enumerate(dict.fromkeys(map(str, ranked)), start=1)}
        elif not isinstance(ranked, dict) or not all(_is_score(each) for each in ranked.values()):
            raise InputError(f"{path}: {quote(name)} has {describe(ranked)}; expected {RANKINGS}.")
    return value


def _is_score(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < np.finfo(np.float32).max


class RankingStage:
    """Rankings of some questions as a first stage; it knows the texts of these alone. ``by_text``: text -> ranking."""

    def __init__(self, by_text: Mapping[str, Ranking], identity: str) -> None:
        self.identity = identity
        self._by_text = by_text

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` documents per question. Raises ``KeyError`` for another text."""
        rankings = [self._by_text[query] for query in queries]
        return [Ranking(ranking.rows[:depth], ranking.scores[:depth]) for ranking in rankings]


def read_run(path: Path) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the name of a run (its first line's) and question -> passage -> score, in the order of the file.

    Raises ``InputError`` that names the line for anything but six columns, a score that is no finite number, and a
    passage twice for one question.
    """
    tag, ranked = "", dict[str, dict[str, float]]()
    for number, (question, _, passage, _, score, name) in _lines(path, RUN, 6):
        _add(ranked, question, passage, score, f"{path}, line {number}", "the score, column 5,")
        tag = tag or name
    return tag, ranked


def best_first(scores: Mapping[str, float]) -> dict[str, np.float32]:
    """Return the passages of a question in the order of trec_eval, which keeps scores as float32: equal ones by id,
    later ids first."""
    with np.errstate(over="ignore"):
        by_name = {name: np.float32(score) for name, score in scores.items()}
    names = sorted(by_name, key=lambda name: (by_name[name], name.encode()), reverse=True)
    return {name: by_name[name] for name in names}


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return question -> passage -> label. Raises ``InputError`` as :func:`read_run` does, for four columns, and for a
    label that is no whole number."""
    labelled: dict[str, dict[str, float]] = {}
    for number, (question, _, passage, label) in _lines(path, QRELS, 4):
        where = f"{path}, line {number}"
        _add(labelled, question, passage, label, where, "the label, column 4,")
        if not labelled[question][passage].is_integer():
            raise InputError(f"{where}: the label, column 4, is {quote(label)}; expected a whole number.")
    return {query: {name: int(label) for name, label in labels.items()} for query, labels in labelled.items()}


def _lines(path: Path, expected: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield number and columns of each line that is not blank."""
    check_file(path, expected)
    empty = True
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError:
                raise InputError(f"{path}, line {number} is no UTF-8 text; expected {expected}.") from None
            if not fields:
                continue
            if len(fields) != columns:
                text = f"{counted(len(fields), 'column')} ({quote(' '.join(fields))})"
                raise InputError(f"{path}, line {number} has {text}; expected {expected}.")
            yield number, fields
            empty = False
            advance("lines")
    if empty:
        raise InputError(f"{path} holds no line; expected {expected}.")


def _add(values: dict[str, dict[str, float]], question: str, passage: str, text: str, where: str, what: str) -> None:
    of_question = values.setdefault(question, {})
    if passage in of_question:
        raise InputError(f"{where} has {quote(passage)} a second time for {quote(question)}: leave one out.")
    try:
        of_question[passage] = float(text)
    except ValueError:
        of_question[passage] = math.nan
    if not math.isfinite(of_question[passage]):
        raise InputError(f"{where}: {what} is {quote(text)}; expected a number.")
