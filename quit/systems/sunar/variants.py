"""The systems and ablations that the paper compares, by name: which settings make each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quit.errors import SettingsError, did_you_mean
from quit.settings import Sunar

_PLAIN: dict[str, Any] = {"asu": False, "mer": False}
_READ: dict[str, Any] = {"planner": "none", **_PLAIN}
_THINK: dict[str, Any] = {"reading": "chain-of-thought", **_READ}

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sunar": ("SUNAR", {"retrieval": "nar", "asu": True, "mer": True}),
    "no-asu": ("SUNAR -ASU", {"retrieval": "nar", "asu": False, "mer": True}),
    "no-mer": ("SUNAR -MER", {"retrieval": "nar", "asu": True, "mer": False}),
    "sunar-r": ("SUNAR_R: -ASU -MER", {"retrieval": "nar", **_PLAIN}),
    "rerank": ("plain re-ranking of every sub-question's documents", {"retrieval": "rerank", **_PLAIN}),
    "first": ("every sub-question's first-stage documents", {"retrieval": "first", **_PLAIN}),
    "prf": ("re-ranking with pseudo-relevance feedback", {"retrieval": "prf", **_PLAIN}),
    "read": ("retrieve and read", {"retrieval": "first", **_READ}),
    "rerank-read": ("retrieve, re-rank and read", {"retrieval": "rerank", **_READ}),
    "prf-read": ("feedback, re-rank and read", {"retrieval": "prf", **_READ}),
    "zero-shot": ("zero-shot chain of thought", {"retrieval": "first", **_READ, "reading": "zero-shot"}),
    "chain-of-thought": ("few-shot chain of thought", {"retrieval": "first", **_THINK}),
    "chain-of-thought-prf": ("the same with feedback", {"retrieval": "prf", **_THINK}),
    "chain-of-thought-nar": ("the same with NAR", {"retrieval": "nar", **_THINK}),
    "gold-evidence": ("the same on relevant documents, an oracle", {"retrieval": "gold", **_THINK}),
    "nar-read": ("SUNAR_R without query understanding", {"retrieval": "nar", **_READ}),
    "react": ("ReAct with SUNAR", {"retrieval": "nar", "asu": True, "mer": True, "planner": "react"}),
    "searchain": ("SearChain with SUNAR", {"retrieval": "nar", "asu": True, "mer": True, "planner": "searchain"}),
    "react-first": ("ReAct on the first stage", {"retrieval": "first", "planner": "react", **_PLAIN}),
    "react-rerank": ("ReAct with re-ranking", {"retrieval": "rerank", "planner": "react", **_PLAIN}),
    "decomp-first": ("Decomp on the first stage", {"retrieval": "first", "planner": "decomp", **_PLAIN}),
    "decomp-rerank": ("Decomp with re-ranking", {"retrieval": "rerank", "planner": "decomp", **_PLAIN}),
    "ircot": (
        "IRCoT on the first stage",
        {"retrieval": "first", "planner": "ircot", "reading": "chain-of-thought", **_PLAIN},
    ),
    "searchain-first": ("SearChain on the first stage", {"retrieval": "first", "planner": "searchain", **_PLAIN}),
    "searchain-rerank": ("SearChain with re-ranking", {"retrieval": "rerank", "planner": "searchain", **_PLAIN}),
    "as-set": ("the settings as they are", {}),
}
"""Name -> (what it is, settings over the profile's)."""


def effective(settings: Sunar, name: str) -> Sunar:
    """Return the settings that a variant runs with, over those of a profile; ``planner`` is never ``auto``.

    Raises :class:`SettingsError` for another name.
    """
    if name not in VARIANTS:
        raise SettingsError(f"There is no variant {name!r}.{did_you_mean(name, list(VARIANTS))}")
    how = settings.model_copy(update=dict(VARIANTS[name][1]))
    if how.planner == "auto":
        how = how.model_copy(update={"planner": "self-ask" if how.language_model else "gold"})
    if how.retrieval in ("rerank", "prf") and how.rerank_first:
        how = how.model_copy(update={"first": how.rerank_first, "c": how.rerank_first})
    return how
