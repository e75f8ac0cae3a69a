"""The systems and ablations that the paper compares, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from quit.errors import check_known
from quit.qa.settings import Sunar


class Variant(NamedTuple):
    """A system. ``title``: what it is; ``changes``: its settings over the profile's."""

    title: str
    changes: Mapping[str, Any]


_FULL: dict[str, Any] = {"asu": True, "mer": True}
_PLAIN: dict[str, Any] = {"asu": False, "mer": False}
_READ: dict[str, Any] = {"planner": "none", **_PLAIN}
_THINK: dict[str, Any] = {"reading": "chain-of-thought", **_READ}

VARIANTS: Mapping[str, Variant] = {
    "sunar": Variant("SUNAR", {"retrieval": "nar", **_FULL}),
    "no-asu": Variant("SUNAR -ASU", {"retrieval": "nar", "asu": False, "mer": True}),
    "no-mer": Variant("SUNAR -MER", {"retrieval": "nar", "asu": True, "mer": False}),
    "sunar-r": Variant("SUNAR_R: -ASU -MER", {"retrieval": "nar", **_PLAIN}),
    "rerank": Variant("plain re-ranking of every sub-question's documents", {"retrieval": "rerank", **_PLAIN}),
    "first": Variant("every sub-question's first-stage documents", {"retrieval": "first", **_PLAIN}),
    "prf": Variant("re-ranking with pseudo-relevance feedback", {"retrieval": "prf", **_PLAIN}),
    "read": Variant("retrieve and read", {"retrieval": "first", **_READ}),
    "rerank-read": Variant("retrieve, re-rank and read", {"retrieval": "rerank", **_READ}),
    "prf-read": Variant("feedback, re-rank and read", {"retrieval": "prf", **_READ}),
    "zero-shot": Variant("zero-shot chain of thought", {"retrieval": "first", **_READ, "reading": "zero-shot"}),
    "chain-of-thought": Variant("few-shot chain of thought", {"retrieval": "first", **_THINK}),
    "chain-of-thought-prf": Variant("the same with feedback", {"retrieval": "prf", **_THINK}),
    "chain-of-thought-nar": Variant("the same with NAR", {"retrieval": "nar", **_THINK}),
    "gold-evidence": Variant("the same on relevant documents, an oracle", {"retrieval": "gold", **_THINK}),
    "nar-read": Variant("SUNAR_R without query understanding", {"retrieval": "nar", **_READ}),
    "react": Variant("ReAct with SUNAR", {"retrieval": "nar", "planner": "react", **_FULL}),
    "searchain": Variant("SearChain with SUNAR", {"retrieval": "nar", "planner": "searchain", **_FULL}),
    "react-first": Variant("ReAct on the first stage", {"retrieval": "first", "planner": "react", **_PLAIN}),
    "react-rerank": Variant("ReAct with re-ranking", {"retrieval": "rerank", "planner": "react", **_PLAIN}),
    "decomp-first": Variant("Decomp on the first stage", {"retrieval": "first", "planner": "decomp", **_PLAIN}),
    "decomp-rerank": Variant("Decomp with re-ranking", {"retrieval": "rerank", "planner": "decomp", **_PLAIN}),
    "ircot": Variant(
        "IRCoT on the first stage", {"retrieval": "first", "planner": "ircot", "reading": "chain-of-thought", **_PLAIN}
    ),
    "searchain-first": Variant(
        "SearChain on the first stage", {"retrieval": "first", "planner": "searchain", **_PLAIN}
    ),
    "searchain-rerank": Variant("SearChain with re-ranking", {"retrieval": "rerank", "planner": "searchain", **_PLAIN}),
    "as-set": Variant("the settings as they are", {}),
}


def effective(settings: Sunar, name: str) -> Sunar:
    """Return the settings that a variant runs with, over those of a profile; ``planner`` is never ``auto``.

    Raises :class:`SettingsError` for another name.
    """
    check_known(name, VARIANTS, "variant")
    values = {**settings.model_dump(), **VARIANTS[name].changes}
    if values["planner"] == "auto":
        values["planner"] = "self-ask" if settings.language_model else "gold"
    if values["retrieval"] in ("rerank", "prf") and settings.rerank_first:
        values["first"] = values["c"] = settings.rerank_first
    return Sunar.model_validate(values)
