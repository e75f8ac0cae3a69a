"""MTEB's retrieval layout, the hub's convention: configs ``corpus``, ``queries`` and ``default``, as Parquet.

``corpus`` (_id, title, text) and ``queries`` (_id, text) have one split each, named like the config; ``default``
(query-id, corpus-id, score) has train, dev and test, without those that hold no question. Titles are empty, as in
``beir``; ids are as they are, since Parquet needs no escapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from quit.dataset.dataset import SPLITS, Dataset
from quit.export.card import filled
from quit.export.card_facts import CITATION, licence_header, source_list, title
from quit.export.files import ExportFolder, Options
from quit.export.huggingface import ParquetShard
from quit.export.lines import Lines
from quit.settings.card import Card

CONFIGS: dict[str, pa.Schema] = {
    "corpus": pa.schema({"_id": pa.string(), "title": pa.string(), "text": pa.string()}),
    "queries": pa.schema({"_id": pa.string(), "text": pa.string()}),
    "default": pa.schema({"query-id": pa.string(), "corpus-id": pa.string(), "score": pa.int32()}),
}


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the three configs and the card; return rows by config and split."""
    lines = Lines(dataset, escaped=False)
    files: dict[str, dict[str, list[str]]] = {"corpus": {"corpus": []}, "queries": {}, "default": {}}
    rows: dict[str, dict[str, int]] = {"corpus": {"corpus": 0}, "queries": {}, "default": {}}

    shards = lines.shards()
    for number, shard in enumerate(shards):
        name = f"corpus/corpus-{number:05d}-of-{len(shards):05d}.parquet"
        with _shard(folder, name, "corpus") as writer:
            for some in lines.ranges(shard):
                ids = lines.passage_ids(some)
                titles = pa.array([""]).take(pa.array(np.zeros(len(ids), np.int8)))
                writer.write({"_id": ids, "title": titles, "text": lines.texts(some, str)})
        files["corpus"]["corpus"].append(name)
        rows["corpus"]["corpus"] += writer.rows

    name = "queries/queries-00000-of-00001.parquet"
    with _shard(folder, name, "queries") as writer:
        writer.write({"_id": pa.array(dataset.ids), "text": pa.array(dataset.question_of)})
    files["queries"]["queries"], rows["queries"]["queries"] = [name], writer.rows

    for split in SPLITS:
        if not len(positions := dataset.positions(split)):
            continue
        name = f"default/{split}-00000-of-00001.parquet"
        with _shard(folder, name, "default") as writer:
            for some in lines.ranges(positions):
                labels = pa.array(dataset.labels_of(some).ravel().astype(np.int32))
                columns = (lines.question_ids(some), lines.passage_ids(some), labels)
                writer.write(dict(zip(CONFIGS["default"].names, columns, strict=True)))
        files["default"][split], rows["default"][split] = [name], writer.rows

    text = _card(dataset, files, options.card)
    folder.path("README.md").write_text(text, encoding="utf-8")
    folder.done("README.md", text.count("\n"))
    return {"rows": rows, "empty_splits": [split for split in SPLITS if split not in rows["default"]]}


def _shard(folder: ExportFolder, name: str, config: str) -> ParquetShard:
    return ParquetShard(folder, name, CONFIGS[config], ("_id", "text", "corpus-id"))


def _card(dataset: Dataset, files: dict[str, dict[str, list[str]]], card: Card) -> str:
    header = {
        "language": list(card.languages),
        **licence_header(dataset, card),
        "multilinguality": "monolingual",
        "task_categories": ["text-retrieval"],
        "task_ids": ["document-retrieval"],
        "tags": ["mteb", "text", *(["embedded-readers"] if dataset.embedded else [])],
        "configs": [
            {
                "config_name": config,
                **({"default": True} if config == "default" else {}),
                "data_files": [{"split": split, "path": paths} for split, paths in by_split.items()],
            }
            for config, by_split in files.items()
        ],
        "dataset_info": [
            {"config_name": config, "features": [{"name": field.name, "dtype": str(field.type)} for field in schema]}
            for config, schema in CONFIGS.items()
        ],
    }
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=10**6)}---\n\n" + filled(
        "mteb.md", dataset=dataset, card=card, title=title(dataset, card), sources=source_list(dataset), paper=CITATION
    )
