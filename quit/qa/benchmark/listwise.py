"""A language model as listwise reranker (RankGPT, Sun et al. 2023): it orders a window of passages, from the last
window to the first.

The reply of a model that rambles still gives an order: identifiers are taken as they come, repeated and unknown ones
are skipped, and passages it did not name keep their order behind those it did.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from quit.errors import SettingsError
from quit.models.generation.base import ChatRequest
from quit.models.language_models import generator_identity
from quit.models.prompting import load_prompt
from quit.qa.benchmark.plugins import PluginContext
from quit.qa.opening import language_model_settings

VERSION = 2
FIELDS = frozenset({"count", "passages", "question"})
REPLY_TOKENS = 160
"""Longest reply, in tokens."""
_BRACKETED = re.compile(r"\[(\d+)\]")
_NUMBER = re.compile(r"\d+")
_BARE = re.compile(r"[\d\s>,;.()-]+$")
_REPEATED = re.compile(r"\s*(?:\d+[.)]\s*)?\[\d+\](?:\s+[^\s\[\]]+){5}")
"""A line of five words and more after an identifier."""


class ListwiseReranker:
    """``listwise:NAME``, NAME being a reader or judge of the profile that is a language model.

    Raises ``SettingsError`` for another name. ``counts``: of ``windows``, those whose reply was a ``permutation``, was
    ``unread`` because it named no passage (the window keeps its order), or was ``cut`` at the limit of tokens; replies
    that named some are the rest.
    """

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings
        self._window, self._stride = settings.benchmark.window, settings.benchmark.stride
        if self._stride > self._window:
            raise SettingsError(
                f"benchmark.stride is {self._stride}, more than benchmark.window ({self._window}): "
                "passages would be left out."
            )
        spec = language_model_settings(context.argument, settings, f"listwise:{context.argument}")
        self._prompt = load_prompt(settings.benchmark.rank_prompt, FIELDS)
        self._models, self._spec = context.models, spec
        self.counts: Counter[str] = Counter()
        self.identity = (
            f"listwise/{VERSION}/{generator_identity(spec)}|{self._prompt.identity}"
            f"|{self._window}/{self._stride}|{REPLY_TOKENS}"
        )

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return n for the best of n texts down to 1, float64; ``texts`` are in the first stage's order."""
        order = list(range(len(texts)))
        for start in windows(len(texts), self._window, self._stride):
            part = order[start : start + self._window]
            order[start : start + self._window] = [
                part[position] for position in self._order(query, [texts[i] for i in part])
            ]
        scores = np.zeros(len(texts))
        scores[order] = np.arange(len(texts), 0, -1)
        return scores

    def _order(self, query: str, texts: Sequence[str]) -> list[int]:
        passages = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
        fields = {"count": str(len(texts)), "passages": passages, "question": query}
        request = ChatRequest(self._prompt, fields, REPLY_TOKENS, group=query)
        [completion] = self._models.generator(self._spec).complete([request])
        order, named_count = read_order(completion.text, len(texts))
        self.counts.update(
            windows=1,
            permutation=named_count == len(texts),
            unread=not named_count,
            cut=completion.finish_reason == "length",
        )
        return order


def replies_in_words(counts: Mapping[str, int]) -> str:
    """Return what a reranker counted, in words."""
    windows, full, unread = (counts.get(name, 0) for name in ("windows", "permutation", "unread"))
    return (
        f"{windows} windows: {full} replies order all passages, {windows - full - unread} some, {unread} none (their "
        f"windows keep their order); {counts.get('cut', 0)} were cut at {REPLY_TOKENS} tokens"
    )


def windows(count: int, size: int, stride: int) -> list[int]:
    """Return the starts of the windows, last one first; the first one always starts at 0.

    >>> windows(25, 20, 10)
    [5, 0]
    """
    starts = list(range(max(0, count - size), 0, -stride))
    return [*starts, 0] if count > 1 else []


def read_order(reply: str, count: int) -> tuple[list[int], int]:
    """Return the places 0 to count - 1 in the order of a reply such as ``[2] > [1]``, and how many of them it named.

    Passages that the reply repeats with their numbers (``[1] It is ...``) are no order, nor is a numbered list of
    sentences; numbers without brackets count in a line that holds nothing else.

    >>> read_order("[2] > [9] > [2], well", 3)
    ([1, 0, 2], 1)
    """
    lines = [line for line in reply.splitlines() if not _REPEATED.match(line)]
    identifiers = [number for line in lines for number in _BRACKETED.findall(line)]
    identifiers = identifiers or [number for line in lines if _BARE.match(line) for number in _NUMBER.findall(line)]
    positions = list(dict.fromkeys(int(text) - 1 for text in identifiers if len(text) < 9 and 1 <= int(text) <= count))
    return [*positions, *(position for position in range(count) if position not in set(positions))], len(positions)
