"""What was found in a question's hints before, kept by content: the next update checks only what changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple

from quit.common.cache import ContentStore, content_key
from quit.models.protocols import Encoder, Equivalence
from quit.settings import Leakage
from quit.stages.leaks.find import RULES_IDENTITY, WORDS_IDENTITY, Finding, LeakItem, find_leaks_of

VERSION = 1
"""Rises where ``find`` finds something else with the same rules and models."""


def kept_leaks_of(
    items: Sequence[LeakItem],
    equivalence: Equivalence | None,
    encoder: Encoder | None,
    settings: Leakage,
    store: ContentStore | None,
) -> list[list[list[Finding]]]:
    """Return what :func:`find_leaks_of` returns; only items that the store lacks are checked.

    A key is the hash of all that an item's findings depend on: its texts, what people said of them, settings, models
    and rules. Without ``store`` or models nothing is kept.
    """
    if store is None or equivalence is None or encoder is None:
        return find_leaks_of(items, equivalence, encoder, settings)
    models = (RULES_IDENTITY, WORDS_IDENTITY, equivalence.identity, encoder.identity, settings.model_dump_json())
    keys = [content_key(f"leaks/{VERSION}", *models, _item_text(item)) for item in items]
    findings_of = {
        key: [[Finding(*leak) for leak in leaks] for leaks in json.loads(value)]
        for key, value in store.read(keys).items()
    }
    fresh = {key: item for key, item in zip(keys, items, strict=True) if key not in findings_of}
    if fresh:
        checked = find_leaks_of([*fresh.values()], equivalence, encoder, settings)
        new = dict(zip(fresh, checked, strict=True))
        store.write(
            {
                key: json.dumps([[astuple(leak) for leak in leaks] for leaks in rows]).encode()
                for key, rows in new.items()
            }
        )
        findings_of |= new
    return [findings_of[key] for key in keys]


def _item_text(item: LeakItem) -> str:
    overrides_of_hints = [[astuple(one) for one in overrides] for overrides in item.said()]
    return json.dumps([item.question, [*item.answers], [*item.hints], overrides_of_hints])
