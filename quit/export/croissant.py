"""Croissant 1.0 metadata (JSON-LD; https://docs.mlcommons.org/croissant/docs/croissant-spec.html) of a Hugging Face
export: what search engines and loaders of datasets read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quit.export.card_facts import CITATION, CardFacts, licence_header, title
from quit.export.files import FileEntry

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    **{
        name: f"cr:{name}"
        for name in (
            "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty fileObject fileSet "
            "format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex "
            "repeated replace samplingRate separator source subField transform"
        ).split()
    },
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
_TYPES = {"string": "sc:Text", "bool": "sc:Boolean", "double": "sc:Float"}
"""Of Arrow's types; all others here are integers."""


def croissant(facts: CardFacts, files: Sequence[FileEntry]) -> dict[str, Any]:
    """Return the metadata: a file object for each of ``files`` (the Parquet shards), a file set and a record set for
    each config.

    Addresses are relative, since the files lie beside the metadata. The field ``split`` of a record set is taken from
    the files' names.
    """
    card = facts.card
    about = {
        "description": card.description
        or "Questions whose answers must be inferred from hints, with labelled passages.",
        "license": card.licence_link or card.licence or licence_header(facts.dataset, card)["license"],
        "url": card.homepage or (card.repository and f"https://huggingface.co/datasets/{card.repository}"),
        "creator": [{"@type": "sc:Person", "name": name} for name in card.authors],
        "datePublished": card.published,
        "inLanguage": list(card.languages),
        "version": facts.dataset.provenance.get("release"),
        "citeAs": card.citation.strip() or CITATION,
    }
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": title(facts.dataset, facts.card),
        **{name: value for name, value in about.items() if value},
        "distribution": [*map(_file, files), *(_file_set(config, files) for config in facts.schemas)],
        "recordSet": [_record_set(config, schema) for config, schema in facts.schemas.items()],
    }


def _file(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.path,
        "name": entry.path,
        "contentUrl": entry.path,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": entry.sha256,
    }


def _file_set(config: str, files: Sequence[FileEntry]) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"files/{config}",
        "name": f"files/{config}",
        "containedIn": [{"@id": entry.path} for entry in files if entry.path.startswith(f"{config}/")],
        "encodingFormat": "application/x-parquet",
        "includes": f"{config}/*.parquet",
    }


def _record_set(config: str, schema: pa.Schema) -> dict[str, Any]:
    source = {"fileSet": {"@id": f"files/{config}"}}
    of_name = {"extract": {"fileProperty": "fullpath"}, "transform": {"regex": ".*(train|dev|test)-[0-9]+-of-.*"}}
    split = {"@type": "cr:Field", "@id": f"{config}/split", "name": "split", "dataType": "sc:Text"}
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "field": [{**split, "source": {**source, **of_name}}, *(_field(config, field, source) for field in schema)],
    }


def _field(config: str, field: pa.Field, source: dict[str, Any]) -> dict[str, Any]:
    several = pa.types.is_list(field.type)
    kind = str(field.type.value_type if several else field.type)
    return {
        "@type": "cr:Field",
        "@id": f"{config}/{field.name}",
        "name": field.name,
        "dataType": _TYPES.get(kind, "sc:Integer"),
        **({"repeated": True} if several else {}),
        "source": {**source, "extract": {"column": field.name}},
    }
