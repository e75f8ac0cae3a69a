"""Pyserini and Anserini: ``corpus/docs-*.jsonl`` of ``{"id", "contents"}``, topics and labels.

The folder ``corpus`` is what ``pyserini.index.lucene --collection JsonCollection --input`` takes.
"""

from __future__ import annotations

from typing import Any

from quit.dataset.dataset import SPLITS, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the sharded collection, and ``topics.<split>.tsv`` and ``qrels.<split>.txt``; return rows and escapes."""
    lines = Lines(dataset)
    layout = ('{"id": "', '", "contents": "', '"}')
    passages = sum(
        lines.write_passages(folder, f"corpus/docs-{number:05d}.jsonl", *layout, shard)
        for number, shard in enumerate(lines.shards())
    )
    topics = {split: lines.write_queries(folder, f"topics.{split}.tsv", dataset.positions(split)) for split in SPLITS}
    qrels = {split: lines.write_trec_qrels(folder, f"qrels.{split}.txt", split) for split in SPLITS}
    return {"passages": passages, "topics": topics, "qrels": qrels, "escaped": lines.escapes(texts=True)}
