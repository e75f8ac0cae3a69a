"""Croissant 1.1 metadata (JSON-LD; https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html) of a Hugging Face
export, with the responsible-AI fields (https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html): what search
engines and loaders of datasets read, and what NeurIPS asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit.dataset.description import Provenance, Source
from quit.evaluate.labels import SPLITS
from quit.export.card_facts import CITATION, CardFacts, title
from quit.export.files import FileEntry
from quit.export.licences import licence_urls
from quit.export.responsible import responsible
from quit.settings.card import Card

Node = dict[str, Any]
"""An object of JSON-LD."""
_CONTEXT: Node = json.loads(Path(__file__).with_name("croissant_context.json").read_text(encoding="utf-8"))
"""The specification's own context."""
_TYPES = {
    **{"string": "sc:Text", "bool": "sc:Boolean", "double": "sc:Float"},
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "sc:Integer"),
}
"""Of Arrow's types that tables have."""
_PARQUET = "application/x-parquet"
_SPLITS = {"train": "cr:TrainingSplit", "dev": "cr:ValidationSplit", "test": "cr:TestSplit"}
_REFERENCES = {
    **dict.fromkeys(("question_id", "query-id"), "questions/id"),
    **dict.fromkeys(("passage_id", "corpus-id"), "passages/id"),
    "split": "splits/name",
}


def croissant(facts: CardFacts, files: Sequence[FileEntry]) -> Node:
    """Return the metadata: a file object for each of ``files`` (the Parquet shards), a file set and a record set for
    each config, a record set of the splits.

    Files are in the hub's repository if the card names one, as the hub's own metadata has it; else beside the metadata.
    The field ``split`` of a record set is taken from the files' names.
    """
    inside = {"containedIn": {"@id": "repo"}} if facts.card.repository else {}
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        **origin_metadata(facts.dataset.provenance, facts.card),
        **_responsible(facts),
        "distribution": [
            *([_repository(facts.card)] if inside else []),
            *(_file(entry, **inside) for entry in files),
            *(
                _node("FileSet", f"files/{config}", encodingFormat=_PARQUET, includes=f"{config}/*.parquet", **inside)
                for config in facts.schemas
            ),
        ],
        "recordSet": [
            _split_set([split for split in SPLITS if facts.of("questions", split)]),
            *(_record_set(config, schema) for config, schema in facts.schemas.items()),
        ],
    }


def hub_page(card: Card) -> str:
    """Return the dataset's address on the hub; empty where the card names no repository."""
    return f"https://huggingface.co/datasets/{card.repository}" if card.repository else ""


def origin_metadata(provenance: Provenance, card: Card) -> Node:
    """Return the fields that say what the dataset is and where it is from, without those that are not known."""
    about = {
        "name": title(provenance, card),
        "description": card.description
        or "Questions whose answers must be inferred from hints, with labelled passages.",
        "license": licence_urls(provenance, card) or card.licence,
        "url": card.homepage or hub_page(card),
        "creator": [{"@type": "sc:Person", "name": name} for name in card.authors],
        "datePublished": card.published,
        "inLanguage": list(card.languages),
        "version": semantic_version(provenance.get("release") or ""),
        "citeAs": card.citation.strip() or CITATION,
        "prov:wasDerivedFrom": [_source(source) for source in provenance.get("sources", ())],
        "rai:personalSensitiveInformation": card.personal_information,
        "rai:dataSocialImpact": card.social_impact,
    }
    return {name: value for name, value in about.items() if value}


def semantic_version(release: str) -> str | None:
    """Return the version of a release by its name: one to three numbers, after a ``v`` or not; None for other names.

    >>> semantic_version("v1"), semantic_version("2.1"), semantic_version("spring")
    ('1.0.0', '2.1.0', None)
    """
    numbers = re.fullmatch(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", release)
    return ".".join(str(int(number or 0)) for number in numbers.groups()) if numbers else None


def _source(source: Source) -> Node:
    names = {"url": "url", "licence": "license", "checksum": "sha256", "citation": "citation"}
    label = " ".join(filter(None, (source.get("name"), source.get("file"))))
    fields = {field: value for name, field in names.items() if (value := source.get(name))}
    return {"@type": "prov:Entity", "prov:label": label, **fields}


def _responsible(facts: CardFacts) -> Node:
    """Return how the data was collected and labelled, by whom, and its limits, mostly in the card's words."""
    activities, fields = responsible(facts)
    before = [text for name, text in activities.items() if name not in ("Labels", "Verification")]
    texts = {**fields, "dataPreprocessingProtocol": before, "dataAnnotationProtocol": [activities["Labels"]]}
    return {
        **{f"rai:{name}": items if len(items) > 1 else items[0] for name, items in sorted(texts.items()) if items},
        "rai:hasSyntheticData": True,  # labels, answers and the texts of passages are made by programs
        "prov:wasGeneratedBy": [
            {"@type": "prov:Activity", "prov:label": name, "description": text} for name, text in activities.items()
        ],
    }


def _node(kind: str, identifier: str, **more: Any) -> Node:
    return {"@type": f"cr:{kind}", "@id": identifier, "name": identifier, **more}


def _repository(card: Card) -> Node:
    none = "https://github.com/mlcommons/croissant/issues/80"  # what the hub writes, since a repository has no checksum
    return _node("FileObject", "repo", contentUrl=hub_page(card), encodingFormat="git+https", sha256=none)


def _file(entry: FileEntry, **more: Any) -> Node:
    size, path = f"{entry.bytes} B", entry.path
    more |= {"contentUrl": path, "contentSize": size, "encodingFormat": _PARQUET, "sha256": entry.sha256}
    return _node("FileObject", path, **more)


def _split_set(splits: Sequence[str]) -> Node:
    names = [_node("Field", f"splits/{name}", dataType=kind) for name, kind in (("name", "sc:Text"), ("url", "sc:URL"))]
    data = [{"splits/name": split, "splits/url": _SPLITS[split]} for split in splits]
    return _node("RecordSet", "splits", dataType="cr:Split", key={"@id": "splits/name"}, field=names, data=data)


def _record_set(config: str, schema: pa.Schema) -> Node:
    source = {"fileSet": {"@id": f"files/{config}"}}
    name = {"extract": {"fileProperty": "fullpath"}, "transform": {"regex": f"(?:.*/)?({'|'.join(SPLITS)})(?:-.*)?$"}}
    fields = [_field(config, pa.field("split", pa.string()), {**source, **name})]
    fields += [_field(config, field, {**source, "extract": {"column": field.name}}) for field in schema]
    key = {"key": {"@id": f"{config}/id"}} if "id" in schema.names else {}
    return _node("RecordSet", config, **key, field=fields)


def _field(config: str, field: pa.Field, source: Node) -> Node:
    several = pa.types.is_list(field.type)
    more: Node = {"isArray": True, "arrayShape": "-1"} if several else {}
    if reference := _REFERENCES.get(field.name):
        more["references"] = {"field": {"@id": reference}}
    kind = _TYPES[str(field.type.value_type if several else field.type)]
    return _node("Field", f"{config}/{field.name}", name=field.name, dataType=kind, source=source, **more)
