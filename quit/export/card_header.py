"""The YAML of a dataset card: what ``datasets`` and the hub read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import yaml

from quit.evaluate.labels import SPLITS
from quit.export.card_facts import CardFacts, title
from quit.export.licences import licence_header

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def header(facts: CardFacts) -> str:
    """Return the YAML, without its dashes. A config has one line in each list."""
    passages = sum(shard.rows for shard in facts.shards if shard.config == "passages")
    tags = ["inferential-question-answering", "hints", "information-retrieval", "relevance-judgements"]
    people = "review" in facts.dataset.verdicts["basis"].to_pylist()
    of_some = {"human-verified": people, "embedded-readers": facts.dataset.embedded}
    fields = {
        "pretty_name": title(facts.dataset.provenance, facts.card),
        "language": list(facts.card.languages),
        **licence_header(facts.dataset.provenance, facts.card),
        "annotations_creators": ["machine-generated", *(["expert-generated"] if people else [])],  # the hub's words
        "task_categories": ["question-answering", "text-retrieval"],
        "size_categories": [next((name for limit, name in _SIZES if passages < limit), "10M<n<100M")],
        "tags": [*tags, *(tag for tag, holds in of_some.items() if holds)],
    }
    text = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=10**6, default_flow_style=None)
    for name, describe in (("configs", _data_files), ("dataset_info", _info)):
        lines = (
            yaml.safe_dump(describe(facts, config), sort_keys=False, width=10**6, default_flow_style=True)
            for config in facts.schemas
        )
        text += f"{name}:\n" + "".join(f"- {line}" for line in lines)
    return text


def _data_files(facts: CardFacts, config: str) -> dict[str, Any]:
    files = [{"split": split, "path": [part.path for part in facts.of(config, split)]} for split in SPLITS]
    return {
        "config_name": config,
        **({"default": True} if config == "questions" else {}),
        "description": f"Data {facts.digest}",
        "data_files": [entry for entry in files if entry["path"]],
    }


def _info(facts: CardFacts, config: str) -> dict[str, Any]:
    splits: list[dict[str, Any]] = []
    for split in SPLITS:
        if parts := facts.of(config, split):
            size, rows = sum(part.loaded_bytes for part in parts), sum(part.rows for part in parts)
            splits.append({"name": split, "num_bytes": size, "num_examples": rows})
    return {
        "config_name": config,
        "features": [_feature(field) for field in facts.schemas[config]],
        "splits": splits,
        "download_size": sum(shard.bytes for shard in facts.shards if shard.config == config),
        "dataset_size": sum(split["num_bytes"] for split in splits),
    }


def _feature(field: pa.Field) -> dict[str, str]:
    if pa.types.is_list(field.type):
        return {"name": field.name, "list": _dtype(field.type.value_type)}
    return {"name": field.name, "dtype": _dtype(field.type)}


def _dtype(kind: pa.DataType) -> str:
    return {"double": "float64"}.get(str(kind), str(kind))
