"""Probable mistakes in a user's usable questions, for ``quit check``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from quit.errors import InputError
from quit.sources.fields import quote
from quit.sources.items import line_items
from quit.sources.jsonl import READ
from quit.sources.leftovers import left_over
from quit.sources.records import RawQuestion
from quit.text.english import not_english
from quit.text.tokens import STOP_WORDS, words

READ_OF_HINT = ("hint", "text", "rank", "convergence", "url", "scores", "candidate_answers")
READ_OF_TYPE = ("coarse", "fine")
LONG_HINT, LONG_ANSWER = 500, 100
"""Characters from which a hint or an answer is said to be long."""

_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")
_SIGN = re.compile(r"\w[^\w\s]\w")
_LIST = re.compile(r"[^,;|]+[,;|][^,;|]+")
_URL = re.compile(r"\s*(?:https?://|www\.)\S+\s*", re.IGNORECASE)


def notes(question: RawQuestion) -> Iterator[str]:
    """Yield a sentence for each probable mistake in a usable record, with its field."""
    for hint in question.hints:
        if len(hint.text) > LONG_HINT:
            yield f"A hint has {len(hint.text):,} characters: is it one hint? {quote(hint.text)}"
        if markup := _MARKUP.search(hint.text):
            where = f"The hint {quote(hint.text)} holds markup, {quote(markup.group())}"
            yield f"{where}: readers will see it as text. Take it out."
    if markup := _MARKUP.search(question.question):
        yield f"The question holds markup, {quote(markup.group())}: readers will see it as text. Take it out."
    if not_english(" ".join([question.question, *(hint.text for hint in question.hints)])):
        yield "The question and its hints are not English: the embedded models read no other language."
    if len(question.candidates) == 1 and _LIST.search(question.candidates[0]):
        yield f"The only candidate is {quote(question.candidates[0])}: are these several? Write a list, one text each."
    yield from leftovers(question.question, question.answers, question.candidates)
    for answer in question.answers:
        parts = words(answer)
        if not parts:
            yield f"The answer {quote(answer)} has no letter or digit: readers can hardly give it. Write it in words."
        elif all(part.casefold() in STOP_WORDS for part in parts) and not _SIGN.search(answer):
            yield f"The answer {quote(answer)} is a common word, which most hints hold by chance. Write the full name."
        if _URL.fullmatch(answer):
            yield f"The answer {quote(answer)} is an address: readers can hardly give it. Write the name that is meant."
        elif len(answer) > LONG_ANSWER:
            yield f"An answer has {len(answer):,} characters: readers answer in a few words. {quote(answer)}"


def leftovers(question: str, answers: Iterable[str], candidates: Iterable[str] = ()) -> Iterator[str]:
    """Yield a sentence for each text here that a spreadsheet or a data frame seems to have left."""
    if "\ufffd" in question:
        yield f"The question has a character that could not be read (U+FFFD): {quote(question)}. Write it anew."
    for what, texts in (("answer", answers), ("candidate", candidates)):
        for text in texts:
            if meaning := left_over(text):
                yield f"The {what} {quote(text)} looks like {meaning}. Write the {what} that is meant."


def key_notes(path: Path) -> Iterator[str]:
    """Yield a sentence for each key of a JSON Lines file that an object has twice, or that the schema does not name.

    Of the latter, only keys that come near one of the schema are reported: a file may hold what it likes besides.
    """
    wheres: dict[tuple[str, str], list[str]] = defaultdict(list)
    twice: list[str] = []

    def pairs(read: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(read)
        if len(value) < len(read):
            twice.extend(key for key, count in Counter(key for key, _ in read).items() if count > 1)
        return value

    try:
        for item in line_items(path, "JSON Lines", pairs):
            for key in twice:
                wheres[key, ""].append(item.where)
            twice.clear()
            if not isinstance(item.value, dict):
                continue
            hints, kind = item.value.get("hints"), item.value.get("question_type")
            inner = [(hint, READ_OF_HINT) for hint in (hints if isinstance(hints, list) else ())]
            read = [(item.value, READ), (kind, READ_OF_TYPE), *inner]
            for keys, schema in ((value.keys(), names) for value, names in read if isinstance(value, dict)):
                for key in keys - set(schema):
                    near = get_close_matches(
                        key.lower(), [name for name in schema if name not in keys], n=1, cutoff=0.7
                    )
                    if near:
                        wheres[key, near[0]].append(item.where)
    except InputError:  # a build says where; the notes on what is before it help too
        pass
    for (key, meant), positions in sorted(wheres.items()):
        times = "once" if len(positions) == 1 else f"{len(positions):,} times"
        if meant:
            yield f"{positions[0]}: The key {quote(key)} ({times}) is not read: did you mean {meant!r}?"
        else:
            yield f"{positions[0]}: The key {quote(key)} is in an object twice ({times}): only the last one is read."
