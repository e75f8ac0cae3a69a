"""The dataset card (README.md) of a Hugging Face export: YAML that ``datasets`` reads, and ``card.md`` with facts.

The same tables and options give the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quit.dataset.dataset import Dataset
from quit.dataset.description import Source
from quit.evaluate.labels import SPLITS
from quit.export.card_facts import CITATION, CardFacts, title
from quit.export.card_header import header
from quit.export.templates import cell, code, fill_template
from quit.settings.card import Card
from quit.settings.construction import Collect, Leakage, Probe, Split
from quit.settings.section import Section
from quit.text.words import counted

_SECTIONS: Mapping[str, type[Section]] = {"collect": Collect, "leakage": Leakage, "probe": Probe, "split": Split}
_UNKNOWN: Mapping[str, Any] = {
    **dict.fromkeys(("release", "content_id", "program_version", "imported", "reviews", "verification")),
    **{"settings": {}, "replies": {}, "waivers": ()},
}


def card(facts: CardFacts) -> str:
    """Return README.md."""
    return f"---\n{header(facts)}---\n\n{fill_template('card.md', **card_context(facts)._asdict())}"


class CardContext(NamedTuple):
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
    sources: Sequence[Source]
    licences: Sequence[str]
    pairs: Sequence[tuple[float, str, str]]
    replies: Sequence[str]
    citations: Sequence[str]
    empty: Sequence[str]
    split: str


def card_context(facts: CardFacts) -> CardContext:
    """Return what these facts come to in ``card.md`` and ``responsible.md``."""
    dataset, sources = facts.dataset, facts.dataset.provenance.get("sources", ())
    given = {**_UNKNOWN, **dataset.provenance}
    return CardContext(
        facts=facts,
        dataset=dataset,
        card=facts.card,
        title=title(dataset.provenance, facts.card),
        given=given,
        settings={
            name: {**dict.fromkeys(section.model_fields), **given["settings"].get(name, {})}
            for name, section in _SECTIONS.items()
        },
        sources=sources,
        licences=sorted({licence for source in sources if (licence := source.get("licence"))}),
        pairs=sorted((pair.kappa, pair.first, pair.second) for pair in facts.agreement.pairs if pair.kappa is not None),
        replies=[
            f"{code(model)}: {counted(number, 'reply', 'replies')} from "
            f"{cell(origin.partition(' ')[0] or 'this program')}"
            for model, origins in given["replies"].items()
            for origin, number in origins.items()
        ],
        citations=_citations(facts),
        empty=[f"`{split}`" for split in SPLITS if not facts.of("questions", split)],
        split=next((split for split in reversed(SPLITS) if facts.of("passages", split)), SPLITS[-1]),
    )


def _citations(facts: CardFacts) -> list[str]:
    """Return how to cite the dataset, the method and the sources."""
    texts = [facts.card.citation.strip(), CITATION]
    texts += [source.get("citation") or "" for source in facts.dataset.provenance.get("sources", ())]
    return [text for text in dict.fromkeys(texts) if text]
