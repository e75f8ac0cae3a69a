"""MTEB's retrieval layout, the hub's convention: configs ``corpus``, ``queries`` and ``default``, as Parquet.

``corpus`` (_id, title, text) and ``queries`` (_id, text) have one split each; ``default`` (query-id, corpus-id, score)
has train, dev and test, without those that hold no question. MTEB's metrics count every label above 0 as relevant, so
its subset ``fully`` (configs ``fully-corpus``, ``fully-queries``: the same files; ``fully-qrels``) has label 2 alone; a
dataset without that label lacks it. Titles are empty, as in ``beir``; ids are as they are, since Parquet needs no
escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import yaml

from quit.common.rows import grouped
from quit.dataset.dataset import Dataset
from quit.evaluate.labels import SPLITS
from quit.export.card_facts import CITATION, title
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.licences import licence_header
from quit.export.lines import Lines, PassageIds, question_shards
from quit.export.parquet_shards import QRELS, ParquetShard, Shard, fully_relevant_qrels, row_counts, row_groups
from quit.export.templates import fill_template
from quit.settings.card import Card

_CORPUS = pa.schema({"_id": pa.string(), "title": pa.string(), "text": pa.string()})
_QUERIES = pa.schema({"_id": pa.string(), "text": pa.string()})
CONFIGS: dict[str, pa.Schema] = {
    "corpus": _CORPUS,
    "queries": _QUERIES,
    "default": QRELS,
    "fully-corpus": _CORPUS,
    "fully-queries": _QUERIES,
    "fully-qrels": QRELS,
}


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write the files of the configs and the card; return rows by config and split."""
    lines = Lines(PassageIds(dataset, escaped=False))
    shards: list[Shard] = []

    def add(config: str, split: str, groups: Iterable[Mapping[str, pa.Array]], number: int = 0, count: int = 1) -> None:
        distinct = ("_id", "text", "corpus-id")
        with ParquetShard(folder, config, split, CONFIGS[config], distinct, number, count) as writer:
            for columns in groups:
                writer.write(columns)
        shards.extend(writer.shards)

    parts = question_shards(np.arange(len(dataset.ids)))
    for number, part in enumerate(parts):
        add("corpus", "corpus", (_passages(lines, group) for group in row_groups(dataset, part)), number, len(parts))
    add("queries", "queries", [{"_id": pa.array(dataset.ids), "text": pa.array(dataset.question_of)}])
    for split in SPLITS:
        if len(positions := dataset.positions(split)):
            add("default", split, (_qrels(lines, part) for part in row_groups(dataset, positions)))
            add(
                "fully-qrels",
                split,
                (fully_relevant_qrels(_qrels(lines, part)) for part in row_groups(dataset, positions)),
            )
    if any(shard.config == "fully-qrels" for shard in shards):
        shared = [shard for shard in shards if shard.config in ("corpus", "queries")]
        shards += [shard._replace(config=f"fully-{shard.config}") for shard in shared]
    folder.text("README.md", _card(dataset, shards, options.card, folder.digest()))
    rows: dict[str, dict[str, int]] = {**{config: {} for config in CONFIGS}, **row_counts(shards)}
    return {"rows": rows, "empty_splits": [split for split in SPLITS if split not in rows["default"]]}


def _passages(lines: Lines, positions: np.ndarray) -> dict[str, pa.Array]:
    ids, texts = lines.documents(positions, str)
    return {"_id": ids, "title": pa.repeat("", len(ids)), "text": texts}


def _qrels(lines: Lines, positions: np.ndarray) -> dict[str, pa.Array]:
    labels = pa.array(lines.dataset.grades_of(positions).astype(np.int32))
    columns = (lines.ids.of_questions(positions), lines.ids.of(positions), labels)
    return dict(zip(QRELS.names, columns, strict=True))


def _card(dataset: Dataset, shards: Sequence[Shard], card: Card, digest: str) -> str:
    by_config = grouped((shard.config, (shard.split, shard.path)) for shard in shards)
    files = {config: grouped(by_config.get(config, ())) for config in CONFIGS}
    header = {
        "language": list(card.languages),
        **licence_header(dataset.provenance, card),
        "multilinguality": "monolingual",
        "task_categories": ["text-retrieval"],
        "task_ids": ["document-retrieval"],
        "tags": ["mteb", "text", *(["embedded-readers"] if dataset.embedded else [])],
        "configs": [
            {
                "config_name": config,
                **({"default": True} if config == "default" else {}),
                "description": f"Data {digest}",
                "data_files": [{"split": split, "path": paths} for split, paths in by_split.items()],
            }
            for config, by_split in files.items()
            if by_split
        ],
        "dataset_info": [
            {"config_name": config, "features": [{"name": field.name, "dtype": str(field.type)} for field in schema]}
            for config, schema in CONFIGS.items()
            if files[config]
        ],
    }
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=10**6)}---\n\n" + fill_template(
        "mteb.md",
        dataset=dataset,
        card=card,
        title=title(dataset.provenance, card),
        sources=dataset.provenance.get("sources", ()),
        paper=CITATION,
    )
