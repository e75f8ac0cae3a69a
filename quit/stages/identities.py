"""What the results of a stage's models and rules depend on, for fingerprints. Nothing is loaded, so that an up-to-date
workspace is recognised at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from quit.models.factory import IDENTITIES
from quit.settings import Settings


def _leak_rules_identity(settings: Settings) -> str:
    from quit.stages.leaks.find import RULES_IDENTITY, WORDS_IDENTITY

    return WORDS_IDENTITY if settings.leakage.method == "bem" else RULES_IDENTITY


def _candidates_identity(settings: Settings) -> str:
    from quit.stages.questions.candidates import VERSION

    return f"collection/{VERSION}"


def difficulty_identity(settings: Settings) -> str:
    """Return the version of difficulty, and the corpus if the settings name one.

    Reads the corpus once, to hash it; raises :class:`quit.errors.InputError` when there is none.
    """
    from quit.retrieval.corpus import corpus_checksum
    from quit.stages.questions.difficulty import VERSION

    named = settings.difficulty.corpus
    corpus = f"corpus@{corpus_checksum(Path(named))}" if named else "hints"
    return f"retrieval-complexity/{VERSION}/{corpus}"


_IDENTITIES: dict[str, Callable[[Settings], str]] = IDENTITIES | {
    "leak_rules": _leak_rules_identity,
    "candidates": _candidates_identity,
    "difficulty": difficulty_identity,
}


def identities(settings: Settings, names: Sequence[str]) -> list[str]:
    """Return what the results of the named models and rules depend on, in order."""
    return [_IDENTITIES[name](settings) for name in names]
