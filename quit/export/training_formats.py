"""Positives and negatives of questions (:mod:`quit.export.training`) for tools that train retrievers and rerankers:
Tevatron, ColBERT, MonoT5."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.safe import json_inside, json_text, one_line
from quit.dataset.dataset import SPLITS, Dataset
from quit.dataset.paper_names import paper_id
from quit.export import training
from quit.export.files import ExportFolder, Options
from quit.export.lines import LABELS, Lines, PassageTexts, line_file, write_texts
from quit.export.training import PAIRS, Selection


def write_tevatron(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write ``train.jsonl`` and ``dev.jsonl`` with pairs of a positive and a negative, ``corpus.jsonl`` and the queries
    of each split (Gao et al. 2022); return the choices.

    A record has one pair, since Tevatron takes one positive of a record per epoch. Titles are empty, as in ``beir``,
    and for the same reason; with ``paper_keys`` they are the question's id, as in the inputs of the paper's programs.
    """
    lines = Lines(dataset)

    def title(question_id: str) -> str:
        return json_inside(paper_id(question_id)) if options.paper_keys else ""

    selection = Selection(dataset, options.fine_tuning, options.encoder)
    texts = PassageTexts(lines, json_inside)

    def query(position: int, suffix: str = "") -> str:
        return json_text({"query_id": f"{lines.ids[position]}{suffix}", "query": dataset.question_of[position]})

    def record(position: int, place: int, good: int, bad: int) -> str:
        passages = f'"positive_passages": [{passage(good)}], "negative_passages": [{passage(bad)}]'
        return f"{query(position, f'_{place}')[:-1]}, {passages}}}\n"

    def passage(number: int) -> str:
        name = title(lines.ids[dataset.rows.owner[number]])
        return f'{{"docid": "{texts.id(number)}", "title": "{name}", "text": "{texts.text(number)}"}}'

    facts = _write_pairs(selection, folder, "{}.jsonl", record)
    for split in SPLITS:
        queries = (query(position) + "\n" for position in dataset.positions(split))
        write_texts(folder, f"queries.{split}.jsonl", queries)
    with line_file(folder, "corpus.jsonl") as put:
        for part in lines.ranges():
            ids, titles = lines.passage_ids(part, json_inside), lines.question_ids(part, title)
            columns = ('{"docid": "', ids, '", "title": "', titles, '", "text": "', lines.texts(part, json_inside))
            passages = put(pc.binary_join_element_wise(*columns, '"}\n', ""))
    return {**facts, "passages": passages, "escaped": lines.escapes(texts=False)}


def write_monot5(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write ``train.tsv`` and ``dev.tsv`` of ``query <tab> positive <tab> negative``, as texts (Nogueira et al. 2020);
    return the choices and what was escaped."""
    lines = Lines(dataset)
    selection = Selection(dataset, options.fine_tuning, options.encoder)
    texts = PassageTexts(lines, one_line)

    def triple(position: int, _: int, good: int, bad: int) -> str:
        return f"{one_line(dataset.question_of[position])}\t{texts.text(good)}\t{texts.text(bad)}\n"

    facts = _write_pairs(selection, folder, "{}.tsv", triple)
    return {**facts, "escaped": lines.escapes(texts=True)}


def write_colbert(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write ``collection.tsv``, ``queries.<split>.tsv``, ``triples.<split>.jsonl`` and ``qrels.<split>.tsv`` with
    integer ids (Khattab and Zaharia 2020); return the choices and what was escaped.

    A passage's integer is its line in the collection, a question's its place in the release. ``passage_ids.tsv`` and
    ``query_ids.tsv`` (``int <tab> id``) lead back to the ids of the other formats.
    """
    lines = Lines(dataset)
    selection = Selection(dataset, options.fine_tuning, options.encoder)
    triple = "[{0}, {2}, {3}]\n".format
    facts = _write_pairs(selection, folder, "triples.{}.jsonl", triple)
    _write_collection(lines, folder)
    qrels = {}
    for split in SPLITS:
        positions = dataset.positions(split)
        queries = (f"{position}\t{one_line(dataset.question_of[position])}\n" for position in positions.tolist())
        write_texts(folder, f"queries.{split}.tsv", queries)
        with line_file(folder, f"qrels.{split}.tsv") as put:
            qrels[split] = 0
            for some in lines.ranges(positions):
                labels = LABELS.take(pa.array(dataset.grades_of(some)))
                owner = _texts(np.repeat(some, dataset.rows.counts[some]))
                columns = [owner, "\t0\t", _texts(dataset.rows.rows(some)), "\t", labels, "\n"]
                qrels[split] = put(pc.binary_join_element_wise(*columns, ""))
    return {**facts, "passages": dataset.passage_count, "qrels": qrels, "escaped": lines.escapes(texts=True)}


def _write_pairs(
    selection: Selection, folder: ExportFolder, file: str, line: Callable[[int, int, int, int], str]
) -> dict[str, Any]:
    """Write a ``line`` of each pair of train and dev: of the question's place, the pair's, and the places of its
    positive and its negative. Return the choices. ``file``: name with room for the split."""
    counts = {}
    for split in training.TUNING_SPLITS:
        pairs = (
            (each.position, place, *pair)
            for each in selection.examples(split)
            for place, pair in enumerate(each.pairs())
        )
        counts[split] = write_texts(folder, file.format(split), starmap(line, pairs))
    return {"triples": counts, "triple_rule": PAIRS, "fine_tuning": selection.facts()}


def _write_collection(lines: Lines, folder: ExportFolder) -> None:
    dataset = lines.dataset
    write_texts(folder, "query_ids.tsv", (f"{number}\t{name}\n" for number, name in enumerate(lines.ids)))
    with line_file(folder, "collection.tsv") as put, line_file(folder, "passage_ids.tsv") as put_id:
        for part in lines.ranges():
            numbers = _texts(dataset.rows.rows(part))
            put(pc.binary_join_element_wise(numbers, "\t", lines.texts(part, one_line), "\n", ""))
            put_id(pc.binary_join_element_wise(numbers, "\t", lines.passage_ids(part), "\n", ""))


def _texts(numbers: np.ndarray) -> pa.StringArray:
    return pa.array(numbers).cast(pa.string())
