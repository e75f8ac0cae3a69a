"""Tevatron (Gao et al. 2022): ``train.jsonl`` and ``dev.jsonl`` with positives and negatives, ``corpus.jsonl``,
queries.

Titles are empty, as in ``beir``, and for the same reason.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quit.common.safe import json_inside, json_text
from quit.dataset import dataset as data
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines, PassageTexts, line_file
from quit.export.training import SPLITS, Selection


def write(dataset: data.Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write training records of train and dev, the whole corpus and the queries of each split; return the choices."""
    lines = Lines(dataset)
    selection = Selection(dataset, options.fine_tuning, options.encoder)
    texts = PassageTexts(lines, json_inside)
    rows = {}
    for split in SPLITS:
        with line_file(folder, f"{split}.jsonl") as put:
            rows[split] = 0
            for example in selection.examples(split):
                head = json_text(
                    {"query_id": lines.ids[example.position], "query": dataset.question_of[example.position]}
                )
                positive = ", ".join(_passage(texts, passage) for passage in example.positives)
                negative = ", ".join(_passage(texts, passage) for passage in example.negatives)
                line = f'{head[:-1]}, "positive_passages": [{positive}], "negative_passages": [{negative}]}}\n'
                rows[split] = put(pa.array([line]))
    for split in data.SPLITS:
        with line_file(folder, f"queries.{split}.jsonl") as put:
            query_lines = [
                json_text({"query_id": lines.ids[position], "query": dataset.question_of[position]}) + "\n"
                for position in dataset.positions(split)
            ]
            put(pa.array(query_lines, pa.string()))
    passages = lines.write_passages(folder, "corpus.jsonl", '{"docid": "', '", "title": "", "text": "', '"}')
    return {
        "passages": passages,
        "examples": rows,
        "fine_tuning": selection.facts(),
        "escaped": lines.escapes(texts=False),
    }


def _passage(texts: PassageTexts, number: int) -> str:
    return f'{{"docid": "{texts.id(number)}", "title": "", "text": "{texts.text(number)}"}}'
