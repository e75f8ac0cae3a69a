"""A request decomposed by a language model (bandit paper, A.1): half definitional sub-queries, half specialised."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import PromptTemplate
from quit.qa.settings.bandits import Bandits
from quit.retrieval.records import clean
from quit.text.normalize import normalize_question

FIELDS = frozenset({"request", "context", "count", "date"})
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.):])\s+(.+)$", re.MULTILINE)

QUERY_TOKENS = 32
"""Reply tokens allowed a sub-query."""
MAX_LENGTH = 24
"""Words of a sub-query in a list without quotes."""
_SENTENCE = 5
"""Words from which an item with a full stop is a sentence, and not "capital of the U.S."."""
_EXAMPLE = frozenset({"first query", "second query", "third query"})


@dataclass(frozen=True, slots=True)
class DecompositionRequest:
    """A request to decompose; ``context``: texts of documents, which both prompts see."""

    request_id: str
    text: str
    context: tuple[str, ...] = ()


class LLMDecomposition:
    """Writes at most K sub-queries per request.

    Each prompt is asked for K; half of K are taken from each reply, more where the other gave fewer. A reply that holds
    no list is asked for again; a request of which nothing can be read keeps itself as its only arm. ``counts``:
    ``replies``, of which ``unread`` held no list and ``cut`` ran into the limit of tokens; ``decompositions``, of which
    ``without_sub_queries`` are the request itself.
    """

    def __init__(
        self, generator: CachedGenerator, definitional: PromptTemplate, specialised: PromptTemplate, settings: Bandits
    ) -> None:
        self._generator = generator
        self._prompts = (definitional, specialised)
        self._settings = settings
        self.counts: Counter[str] = Counter()

    def sub_queries(self, asks: Sequence[DecompositionRequest], sample: int = 0) -> list[list[str]]:
        """Return the sub-queries of each request: definitional first, no two alike. ``sample`` numbers repetitions."""
        count = self._settings.arms
        replies = [self._write(asks, prompt, count, sample) for prompt in self._prompts]
        lists = []
        for ask, broad, narrow in zip(asks, *replies, strict=True):
            queries = merge_queries(broad, narrow, count)
            self.counts.update(decompositions=1, without_sub_queries=int(not queries))
            lists.append(queries or [ask.text])
        return lists

    def _write(
        self, asks: Sequence[DecompositionRequest], prompt: PromptTemplate, count: int, sample: int
    ) -> list[list[str]]:
        lists: list[list[str]] = [[] for _ in asks]
        for attempt in range(self._settings.attempts):
            empty_positions = [position for position, queries in enumerate(lists) if not queries]
            if not empty_positions:
                break
            requests = [
                ChatRequest(
                    prompt,
                    {
                        "request": asks[position].text,
                        "context": "\n".join(asks[position].context),
                        "count": str(count),
                        "date": self._settings.date,
                    },
                    QUERY_TOKENS * count,
                    self._settings.temperature,
                    sample=sample * self._settings.attempts + attempt,
                    group=asks[position].request_id,
                )
                for position in empty_positions
            ]
            for position, reply in zip(empty_positions, self._generator.complete(requests), strict=True):
                cut = reply.finish_reason == "length"
                lists[position] = parse_queries(reply.text, cut)
                self.counts.update(replies=1, unread=int(not lists[position]), cut=int(cut))
        return lists


def parse_queries(reply: str, cut: bool = False) -> list[str]:
    """Return the sub-queries of a reply: the longest JSON list of strings in it, else its list items, else none.

    The prompt's own example is none, nor is a list item that states something (it has a full stop, or more than
    :data:`MAX_LENGTH` words). A list that the token limit ``cut`` off counts up to its last whole string or item.
    """
    best: list[str] = []
    for start in (place for place, character in enumerate(reply) if character == "["):
        for text in (reply[start:], _close(reply[start:])):
            try:
                values, _ = json.JSONDecoder().raw_decode(text)
            except (ValueError, RecursionError):
                continue
            queries = [clean(value) for value in values if isinstance(value, str) and value.strip()]
            queries = [query for query in queries if query not in _EXAMPLE]
            best = max(best, queries, key=len)
            break
    items = [" ".join(item.split()).strip("\"'") for item in _ITEM.findall(reply)]
    return best or [item for item in (items[:-1] if cut else items) if _is_query(item)]


def _is_query(item: str) -> bool:
    words = len(item.split())
    return words <= MAX_LENGTH and (words < _SENTENCE or not item.endswith((".", "!", ":")))


def _close(text: str) -> str:
    """Return an unfinished JSON list, closed after its last whole string."""
    end = max(text.rfind('",'), text.rfind('"\n'))
    return text[: end + 1] + "]"


def merge_queries(broad: Sequence[str], narrow: Sequence[str], count: int) -> list[str]:
    """Return half of ``count`` from each list, more from one where the other has fewer; equal queries count once."""
    keys: set[str] = set()

    def new(queries: Sequence[str]) -> list[str]:
        distinct = []
        for query in queries:
            key = normalize_question(query)
            if key and key not in keys:
                keys.add(key)
                distinct.append(query)
        return distinct

    first, second = new(broad), new(narrow)
    half = max(count - count // 2, count - len(second))
    first = first[:half]
    return first + second[: count - len(first)]
