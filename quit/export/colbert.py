"""ColBERT (Khattab and Zaharia 2020): integer ids, ``collection.tsv``, ``queries.<split>.tsv``,
``triples.<split>.jsonl``.

A passage's integer is its line in the collection, a question's its place in the release. ``passage_ids.tsv`` and
``query_ids.tsv`` (``int <tab> id``) lead back to the ids of the other formats; ``qrels.<split>.tsv`` has integers too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.safe import one_line
from quit.dataset import dataset as data
from quit.export.files import ExportFolder, Options
from quit.export.lines import LABELS, Lines, line_file
from quit.export.training import PAIRS, SPLITS, Selection


def write(dataset: data.Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write collection, queries, triples, labels and the two lists of ids; return the choices and what was escaped."""
    lines = Lines(dataset)
    selection = Selection(dataset, options.fine_tuning, options.encoder)
    triples = {}
    for split in SPLITS:
        with line_file(folder, f"triples.{split}.jsonl") as put:
            triples[split] = 0
            for example in selection.examples(split):
                triple_lines = [f"[{example.position}, {good}, {bad}]\n" for good, bad in example.pairs()]
                triples[split] = put(pa.array(triple_lines))
    facts = selection.facts()
    _write_collection(lines, folder)
    qrels = {}
    for split in data.SPLITS:
        positions = dataset.positions(split)
        with line_file(folder, f"queries.{split}.tsv") as put:
            put(
                pa.array(
                    [f"{position}\t{one_line(dataset.question_of[position])}\n" for position in positions.tolist()],
                    pa.string(),
                )
            )
        with line_file(folder, f"qrels.{split}.tsv") as put:
            qrels[split] = 0
            for some in lines.ranges(positions):
                labels = LABELS.take(pa.array(dataset.labels_of(some).ravel()))
                owner = _texts(np.repeat(some, len(dataset.permutations)))
                columns = [owner, "\t0\t", _texts(passage_numbers(dataset, some)), "\t", labels, "\n"]
                qrels[split] = put(pc.binary_join_element_wise(*columns, ""))
    return {
        "passages": dataset.passage_count,
        "triples": triples,
        "triple_rule": PAIRS,
        "qrels": qrels,
        "fine_tuning": facts,
        "escaped": lines.escapes(texts=True),
    }


def passage_numbers(dataset: data.Dataset, positions: np.ndarray) -> np.ndarray:
    """Return the integers of all passages of some questions: int64, question after question."""
    size = len(dataset.permutations)
    return (positions[:, None] * size + np.arange(size)).ravel()


def _write_collection(lines: Lines, folder: ExportFolder) -> None:
    dataset = lines.dataset
    with line_file(folder, "query_ids.tsv") as put:
        put(pa.array([f"{number}\t{name}\n" for number, name in enumerate(lines.ids)]))
    with line_file(folder, "collection.tsv") as put, line_file(folder, "passage_ids.tsv") as put_id:
        for some in lines.ranges():
            numbers = _texts(passage_numbers(dataset, some))
            put(pc.binary_join_element_wise(numbers, "\t", lines.texts(some, one_line), "\n", ""))
            put_id(pc.binary_join_element_wise(numbers, "\t", lines.passage_ids(some), "\n", ""))


def _texts(numbers: np.ndarray) -> pa.StringArray:
    return pa.array(numbers).cast(pa.string())
