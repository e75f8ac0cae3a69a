"""The dataset card (README.md) of a Hugging Face export: YAML that ``datasets`` reads, and prose made from the data.

The same tables and options give the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import yaml

from quit.dataset.dataset import SPLITS
from quit.export import card_data as data
from quit.export import card_origin as origin
from quit.export.card_facts import CardFacts, cell, licence_header

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def card(facts: CardFacts) -> str:
    """Return README.md."""
    return f"---\n{header(facts)}---\n\n" + "\n\n".join(text for text in sections(facts) if text) + "\n"


def sections(facts: CardFacts) -> Iterator[str]:
    """Yield the sections; an empty text where there is nothing to say."""
    yield f"# {cell(facts.title)}"
    yield data.warning(facts)
    yield data.summary(facts)
    yield "## Load it\n\n" + data.loading(facts)
    yield "## Example\n\n" + data.example(facts)
    yield "## Before you compare figures\n\n" + data.bounds(facts)
    yield data.baselines(facts)
    yield "## Statistics\n\n" + data.statistics(facts)
    yield "## How it was made\n\n" + origin.making(facts)
    yield "## Who verified it\n\n" + origin.verification(facts)
    yield "## Intended use and limits\n\n" + origin.limits(facts)
    yield "## Sources, licences, provenance\n\n" + origin.sources(facts)
    yield origin.provenance(facts)
    yield "## Citation\n\n" + origin.citations(facts)


def header(facts: CardFacts) -> str:
    """Return the YAML, without its dashes. A config has one line in each list."""
    passages = sum(shard.rows for shard in facts.shards if shard.config == "passages")
    tags = ["inferential-question-answering", "hints", "information-retrieval", "relevance-judgements"]
    fields = {
        "pretty_name": facts.title,
        "language": list(facts.card.languages),
        **licence_header(facts.tables, facts.card),
        "annotations_creators": ["machine-generated"],
        "task_categories": ["question-answering", "text-retrieval"],
        "size_categories": [next((name for limit, name in _SIZES if passages < limit), "10M<n<100M")],
        "tags": tags + (["embedded-readers"] if facts.tables.embedded else []),
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
        "data_files": [entry for entry in files if entry["path"]],
    }


def _info(facts: CardFacts, config: str) -> dict[str, Any]:
    splits = [
        {
            "name": split,
            "num_bytes": sum(part.loaded_bytes for part in parts),
            "num_examples": sum(part.rows for part in parts),
        }
        for split in SPLITS
        if (parts := facts.of(config, split))
    ]
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
