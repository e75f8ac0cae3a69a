"""Cache of findings by content: an update checks only questions that changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple

from quit.common.cache import ContentStore, content_key
from quit.models.protocols import Encoder, Equivalence
from quit.settings import Leakage
from quit.stages.leaks import RULES_IDENTITY, WORDS_IDENTITY
from quit.stages.leaks.find import Finding, LeakItem, find_leaks_of

VERSION = 1
"""Rises with every change of ``find`` that changes findings under the same rules and models."""


def cached_leaks_of(
    items: Sequence[LeakItem],
    equivalence: Equivalence | None,
    encoder: Encoder | None,
    settings: Leakage,
    store: ContentStore | None,
) -> list[list[list[Finding]]]:
    """Return what :func:`find_leaks_of` returns; only items that the store lacks are checked.

    A key is the hash of all that an item's findings depend on: its texts, their overrides, settings, models and
    rules. Without ``store`` or models nothing is kept.
    """
    if store is None or equivalence is None or encoder is None:
        return find_leaks_of(items, equivalence, encoder, settings)
    models = (RULES_IDENTITY, WORDS_IDENTITY, equivalence.identity, encoder.identity, settings.model_dump_json())
    keys = [content_key(f"leaks/{VERSION}", *models, _item_text(item)) for item in items]
    findings_of = {
        key: [[Finding(*leak) for leak in leaks] for leaks in json.loads(value)]
        for key, value in store.read(keys).items()
    }
    missing = {key: item for key, item in zip(keys, items, strict=True) if key not in findings_of}
    if missing:
        results = find_leaks_of([*missing.values()], equivalence, encoder, settings)
        findings_of_missing = dict(zip(missing, results, strict=True))
        store.write(
            {
                key: json.dumps([[astuple(leak) for leak in leaks] for leaks in rows]).encode()
                for key, rows in findings_of_missing.items()
            }
        )
        findings_of |= findings_of_missing
    return [findings_of[key] for key in keys]


def _item_text(item: LeakItem) -> str:
    return json.dumps([item.question, [*item.answers], [*item.hints], [*item.rulings()]])
