"""What looks like a mistake in a user's own questions, though it can be used as it is: for ``quit check``."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from quit.errors import InputError
from quit.records import RawQuestion
from quit.sources.fields import quote
from quit.sources.files import line_items

READ = ("id", "question", "answers", "hints", "candidates", "question_type", "difficulty")
READ_OF_HINT = ("hint", "text", "rank", "convergence", "url", "scores")
LONG_HINT, LONG_ANSWER = 500, 100
"""Characters from which a hint or an answer is said to be long."""

_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")
_URL = re.compile(r"\s*(?:https?://|www\.)\S+\s*", re.IGNORECASE)


def notes(question: RawQuestion) -> Iterator[str]:
    """Yield a sentence for each thing that is odd about a usable record, with the field it is in."""
    for number, hint in enumerate(question.hints, 1):
        if len(hint.text) > LONG_HINT:
            yield f"Hint {number} has {len(hint.text):,} characters: is it one hint? {quote(hint.text)}"
        if found := _MARKUP.search(hint.text):
            yield f"Hint {number} holds markup, {quote(found.group())}: readers will see it as text. Take it out."
    if found := _MARKUP.search(question.question):
        yield f"The question holds markup, {quote(found.group())}: readers will see it as text. Take it out."
    for answer in question.answers:
        if _URL.fullmatch(answer):
            yield f"The answer {quote(answer)} is an address: readers can hardly give it. Write the name that is meant."
        elif len(answer) > LONG_ANSWER:
            yield f"An answer has {len(answer):,} characters: readers answer in a few words. {quote(answer)}"


def unread_keys(path: Path) -> Iterator[str]:
    """Yield a sentence for each key of a JSON Lines file that the schema does not name, with the key that may be meant.

    Only keys that come near one of the schema are told: a file may hold what it likes besides.
    """
    found: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    try:
        for item in line_items(path, "JSON Lines"):
            if not isinstance(item.value, dict):
                continue
            inner = [hint for hint in item.value.get("hints") or () if isinstance(hint, dict)]
            for keys, known in ((item.value.keys(), READ), *((hint.keys(), READ_OF_HINT) for hint in inner)):
                for key in keys - set(known):
                    near = get_close_matches(key.lower(), [name for name in known if name not in keys], n=1, cutoff=0.7)
                    if near:
                        found[key, near[0]] += 1
                        first.setdefault((key, near[0]), item.where)
    except (InputError, TypeError, json.JSONDecodeError):
        return
    for (key, near), count in sorted(found.items()):
        times = "once" if count == 1 else f"{count:,} times"
        yield f"{first[key, near]}: The key {quote(key)} ({times}) is not read: did you mean {near!r}?"
