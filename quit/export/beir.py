"""BEIR (Thakur et al. 2021): ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/{train,dev,test}.tsv``.

Titles are empty: BEIR's models read title and text together, and anything that names the question would give the
relevant passages away.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quit.common.safe import json_text
from quit.dataset.dataset import SPLITS, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines, line_file


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the corpus, all queries and the labels of each split; return rows and what was escaped."""
    lines = Lines(dataset)
    passages = lines.write_passages(folder, "corpus.jsonl", '{"_id": "', '", "title": "", "text": "', '"}')
    queries = [
        json_text({"_id": name, "text": text, "metadata": {"split": split}}) + "\n"
        for name, text, split in zip(lines.ids, dataset.question_of, dataset.split_names, strict=True)
    ]
    with line_file(folder, "queries.jsonl") as put:
        put(pa.array(queries))
    parts = ("", "\t", "\t", "")
    qrels = {
        split: lines.write_qrels(folder, f"qrels/{split}.tsv", split, parts, "query-id\tcorpus-id\tscore\n")
        for split in SPLITS
    }
    return {"passages": passages, "queries": len(queries), "qrels": qrels, "escaped": lines.escapes(texts=False)}
