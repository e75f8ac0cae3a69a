"""Yes or No from the replies of a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from quit.models.generation.base import ChatRequest, Completing
from quit.text.normalize import fold

VERSION = 6
"""Of how replies are read (:func:`parse_verdict`), a part of identities."""
CHOICES = ("Yes", "No")
REPLY_TOKENS, ATTEMPTS = 8, 3
"""Tokens of a reply, and how often at most it is asked for, where no setting says so."""

_OF_THE_ANSWER = "".join(rf"(?<!\b{word} )" for word in ("gold", "golden", "reference", "expected", "true"))
_LABEL = rf"{_OF_THE_ANSWER}\b(?<!not )(?:answer|verdict|judge?ment|decision|conclusion|result|correct|boxed)\b"
_ON = "as|because|but|he|i|it|its|she|since|that|the|these|they|this|you"
_GOES_ON = rf"(?!-\w|\. *\d)(?= *(?:[^\w\s]|_|\s*\Z|\s*\n|\t| (?:{_ON})\b))"
"""After a verdict; another word makes a phrase or a title of it (*no idea*, *No Country for Old Men*, *No. 5*)."""
_VERDICT = re.compile(rf"(?:\A|{_LABEL}(?:[^.?\n]{{0,40}}(?:\bis\b|[:={{>]| [-–—] )|\s*\n))[\W_]*(yes|no)\b{_GOES_ON}")
_ALONE = re.compile(r"\byes\b|\bno\b(?! +\w)")  # "there is no doubt" is no second verdict
_EITHER = re.compile(r"\byes\b\W*(?:\b(?:or|and)\b|[/|&])\W*\bno\b")


class ReadVerdict(NamedTuple):
    """``correct``: None where no reply could be read. ``raw``: the last reply."""

    correct: bool | None
    raw: str


def parse_verdict(reply: str) -> bool | None:
    """Return True for a reply that begins with Yes or says that its answer is Yes, False for No, None for any other.

    A reply that also has the other word on its own (``Yes or No?``) is no verdict.
    """
    text = fold(reply)
    match = _VERDICT.search(text)
    if match is None or len(set(_ALONE.findall(text)) | {match[1]}) > 1 or _EITHER.search(text):
        return None
    return match[1] == "yes"


def read_verdicts(generator: Completing, requests: Sequence[ChatRequest], samples: Sequence[int]) -> list[ReadVerdict]:
    """Return the verdict on each request. Those without a verdict are made again, once per sample."""
    verdicts = [ReadVerdict(None, "")] * len(requests)
    for sample in samples:
        unread = [row for row, verdict in enumerate(verdicts) if verdict.correct is None]
        if not unread:
            break
        again = [replace(requests[row], sample=sample) for row in unread]
        for row, reply in zip(unread, generator.complete(again), strict=True):
            verdicts[row] = ReadVerdict(parse_verdict(reply.text), reply.text)
    return verdicts
