"""The systems and ablations that the paper compares, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from quit.errors import check_known
from quit.qa.settings import Sunar


class Changes(TypedDict, total=False):
    """Settings of :class:`quit.qa.settings.Sunar` that a system has over the profile's."""

    retrieval: str
    planner: str
    reading: str
    asu: bool
    mer: bool


class Variant(NamedTuple):
    """A system. ``title``: what it is."""

    title: str
    changes: Changes


_FULL: Changes = {"retrieval": "nar", "asu": True, "mer": True}
_NAR: Changes = {"retrieval": "nar", "asu": False, "mer": False}
_FIRST: Changes = {"retrieval": "first", "asu": False, "mer": False}
_RERANK: Changes = {"retrieval": "rerank", "asu": False, "mer": False}
_PRF: Changes = {"retrieval": "prf", "asu": False, "mer": False}
_READ: Changes = {"planner": "none"}
_THINK: Changes = {"reading": "chain-of-thought", "planner": "none"}

VARIANTS: Mapping[str, Variant] = {
    "sunar": Variant("SUNAR", _FULL),
    "no-asu": Variant("SUNAR -ASU", {**_FULL, "asu": False}),
    "no-mer": Variant("SUNAR -MER", {**_FULL, "mer": False}),
    "sunar-r": Variant("SUNAR_R: -ASU -MER", _NAR),
    "rerank": Variant("plain re-ranking of every sub-question's documents", _RERANK),
    "first": Variant("every sub-question's first-stage documents", _FIRST),
    "prf": Variant("re-ranking with pseudo-relevance feedback", _PRF),
    "read": Variant("retrieve and read", {**_FIRST, **_READ}),
    "rerank-read": Variant("retrieve, re-rank and read", {**_RERANK, **_READ}),
    "prf-read": Variant("feedback, re-rank and read", {**_PRF, **_READ}),
    "zero-shot": Variant("zero-shot chain of thought", {**_FIRST, **_READ, "reading": "zero-shot"}),
    "chain-of-thought": Variant("few-shot chain of thought", {**_FIRST, **_THINK}),
    "chain-of-thought-prf": Variant("the same with feedback", {**_PRF, **_THINK}),
    "chain-of-thought-nar": Variant("the same with NAR", {**_NAR, **_THINK}),
    "gold-evidence": Variant("the same on relevant documents, an oracle", {**_FIRST, **_THINK, "retrieval": "gold"}),
    "nar-read": Variant("SUNAR_R without query understanding", {**_NAR, **_READ}),
    "react": Variant("ReAct with SUNAR", {**_FULL, "planner": "react"}),
    "searchain": Variant("SearChain with SUNAR", {**_FULL, "planner": "searchain"}),
    "react-first": Variant("ReAct on the first stage", {**_FIRST, "planner": "react"}),
    "react-rerank": Variant("ReAct with re-ranking", {**_RERANK, "planner": "react"}),
    "decomp-first": Variant("Decomp on the first stage", {**_FIRST, "planner": "decomp"}),
    "decomp-rerank": Variant("Decomp with re-ranking", {**_RERANK, "planner": "decomp"}),
    "ircot": Variant("IRCoT on the first stage", {**_FIRST, "planner": "ircot", "reading": "chain-of-thought"}),
    "searchain-first": Variant("SearChain on the first stage", {**_FIRST, "planner": "searchain"}),
    "searchain-rerank": Variant("SearChain with re-ranking", {**_RERANK, "planner": "searchain"}),
    "as-set": Variant("the settings as they are", {}),
}


def effective(settings: Sunar, name: str) -> Sunar:
    """Return the settings that a variant runs with, over those of a profile; ``planner`` is never ``auto``.

    Raises :class:`SettingsError` for another name.
    """
    check_known(name, VARIANTS, "variant")
    values: dict[str, Any] = {**settings.model_dump(), **VARIANTS[name].changes}
    if values["planner"] == "auto":
        values["planner"] = "self-ask" if settings.language_model else "gold"
    if values["retrieval"] in ("rerank", "prf") and settings.rerank_first:
        values["first"] = values["c"] = settings.rerank_first
    return Sunar.model_validate(values)
