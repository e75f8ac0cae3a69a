"""The dataset card (README.md) of a Hugging Face export: YAML that ``datasets`` reads, and ``card.md`` with facts.

The same tables and options give the same text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import yaml
from jinja2 import Environment, StrictUndefined, Template

from quit.dataset.dataset import FULLY, SPLITS, Dataset
from quit.export.card_facts import (
    CITATION,
    METRICS,
    PAPER,
    CardFacts,
    cell,
    code,
    licence_header,
    prose,
    source_list,
    title,
)
from quit.render.table import short_identity, table_1
from quit.review.audit import audit_pieces
from quit.settings.card import Card
from quit.settings.construction import Collect, Leakage, Probe, Split
from quit.settings.section import Section
from quit.text.words import counted

LISTED = 6
"""Rows at most of what may be long: sources, people, differing labels. A card has at most 200 lines."""
SYSTEMS = 8
"""Systems at most of the baselines."""
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_ITEM = re.compile(r"^(?:-|\d+\.) |\n\n", re.MULTILINE)
_BINS = ("easy", "medium", "hard")
_TEMPLATES = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
_SECTIONS: Mapping[str, type[Section]] = {"collect": Collect, "leakage": Leakage, "probe": Probe, "split": Split}
_UNKNOWN: Mapping[str, Any] = {
    **dict.fromkeys(("release", "content_id", "program_version", "imported", "reviews", "verification")),
    **{"settings": {}, "replies": {}, "waivers": ()},
}
_TEMPLATES.filters |= {
    "cell": cell,
    "code": code,
    "prose": prose,
    "short": lambda identity: code(short_identity(identity)),
    "counted": counted,
    "n": "{:,}".format,
    "percent": "{:.1%}".format,
    "figure": lambda value, form, missing="–": missing if value is None else form.format(value),
}


def card(facts: CardFacts) -> str:
    """Return README.md."""
    return f"---\n{header(facts)}---\n\n{fill_template('card.md', **_context(facts)._asdict())}"


class Responsible(NamedTuple):
    """How the data was made, by whom, and its limits, without Markdown. ``activities``: name -> text, in the order in
    which they were done; ``fields``: field of Croissant's vocabulary on responsible AI -> paragraphs or items of a
    list."""

    activities: Mapping[str, str]
    fields: Mapping[str, Sequence[str]]


def responsible(facts: CardFacts) -> Responsible:
    """Return what stands in ``card.md`` within ``call activity(NAME)``, and in the blocks of it and of
    ``responsible.md``."""
    activities: dict[str, str] = {}
    fields: dict[str, list[str]] = {}

    def activity(name: str, caller: Callable[[], str]) -> str:
        activities[name] = _plain(text := caller())
        return text

    values = _context(facts)._asdict()
    _template("card.md").render(values, activity=activity)
    for template in map(_template, ("card.md", "responsible.md")):
        context = template.new_context(values)
        for name, block in template.blocks.items():
            items = _ITEM.split("".join(block(context)))
            fields.setdefault(name, []).extend(_plain(item) for item in items if item.strip())
    return Responsible(activities, fields)


def _plain(text: str) -> str:
    without_links = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return unescape(" ".join(re.sub(r"`|\*\*|\\(?=[^\w\s])", "", without_links).split()))


class _Context(NamedTuple):
    """What ``card.md`` and ``responsible.md`` name.

    ``given``: the provenance, and ``settings``: those of :data:`_SECTIONS`; None for what is not known. ``pairs``:
    kappa of two readers and their names. ``empty``: splits without questions; ``split``: the last one with passages.
    """

    facts: CardFacts
    dataset: Dataset
    card: Card
    title: str
    given: Mapping[str, Any]
    settings: Mapping[str, Mapping[str, Any]]
    sources: Sequence[Mapping[str, Any]]
    licences: Sequence[str]
    pairs: Sequence[tuple[float, str, str]]
    replies: Sequence[str]
    citations: Sequence[str]
    empty: Sequence[str]
    split: str


def _context(facts: CardFacts) -> _Context:
    dataset, sources = facts.dataset, source_list(facts.dataset)
    given = {**_UNKNOWN, **dataset.provenance}
    return _Context(
        facts=facts,
        dataset=dataset,
        card=facts.card,
        title=title(dataset, facts.card),
        given=given,
        settings={
            name: {**dict.fromkeys(section.model_fields), **given["settings"].get(name, {})}
            for name, section in _SECTIONS.items()
        },
        sources=sources,
        licences=sorted({str(licence) for source in sources if (licence := source.get("licence"))}),
        pairs=sorted((pair.kappa, pair.first, pair.second) for pair in facts.agreement.pairs if pair.kappa is not None),
        replies=[
            f"{code(model)}: {counted(number, 'reply', 'replies')} from "
            f"{cell(origin.partition(' ')[0] or 'this program')}"
            for model, origins in given["replies"].items()
            for origin, number in origins.items()
        ],
        citations=_citations(facts),
        empty=[f"`{split}`" for split in SPLITS if not facts.of("questions", split)],
        split=[split for split in SPLITS if facts.of("passages", split)][-1],
    )


def fill_template(name: str, **values: Any) -> str:
    """Return a Markdown template of this package filled with values; no more than one blank line in a row."""
    return re.sub(r"\n{3,}", "\n\n", _template(name).render(values)).strip() + "\n"


def _template(name: str) -> Template:
    return _TEMPLATES.from_string((Path(__file__).parent / name).read_text(encoding="utf-8"))


def _producers(identities: list[str]) -> str:
    names = dict.fromkeys(map(short_identity, identities))
    return "by " + ", ".join(code(name) for name in list(names)[:3]) if names else "by an unknown model"


def _citations(facts: CardFacts) -> list[str]:
    """Return how to cite the dataset, the method and the sources."""
    texts = [facts.card.citation.strip(), CITATION]
    texts += [str(source.get("citation") or "") for source in source_list(facts.dataset)]
    return [text for text in dict.fromkeys(texts) if text]


def _shares(table: pa.Table, column: str) -> list[tuple[Any, float, int]]:
    """Return each group with its share of label 2 and the number of its passages; bins of difficulty from easy to
    hard."""
    rows = [row for row in table.to_pylist() if row["split"] == "all"]
    passages: Counter[Any] = Counter()
    for row in rows:
        passages[row[column]] += row["passages"]
    fully = [row for row in rows if row["label"] == FULLY]
    fully.sort(key=lambda row: _BINS.index(row[column]) if row[column] in _BINS else 0)
    return [(row[column], row["share"], passages[row[column]]) for row in fully]


_TEMPLATES.globals |= {
    "names": lambda readers: ", ".join(code(info.name) for info in readers),
    "producers": _producers,
    "table_1": table_1,
    "shares": _shares,
    "audit": audit_pieces,
    "activity": lambda name, caller: caller(),
    **{"METRICS": METRICS, "SPLITS": SPLITS, "PAPER": PAPER, "LISTED": LISTED, "SYSTEMS": SYSTEMS},
}


def header(facts: CardFacts) -> str:
    """Return the YAML, without its dashes. A config has one line in each list."""
    passages = sum(shard.rows for shard in facts.shards if shard.config == "passages")
    tags = ["inferential-question-answering", "hints", "information-retrieval", "relevance-judgements"]
    people = bool(facts.dataset.provenance.get("verification") or facts.dataset.provenance.get("reviews"))
    fields = {
        "pretty_name": title(facts.dataset, facts.card),
        "language": list(facts.card.languages),
        **licence_header(facts.dataset, facts.card),
        "annotations_creators": ["machine-generated"] + people * ["expert-generated"],  # the hub's words
        "task_categories": ["question-answering", "text-retrieval"],
        "size_categories": [next((name for limit, name in _SIZES if passages < limit), "10M<n<100M")],
        "tags": tags + people * ["human-verified"] + facts.dataset.embedded * ["embedded-readers"],
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
