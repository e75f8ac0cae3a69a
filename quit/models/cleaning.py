"""From an LLM reader's raw reply to its answer (paper, section 3.2.2)."""

from __future__ import annotations

import re

from quit.models.protocols import NO_ANSWER

VERSION = 1

_LABEL = re.compile(r"^(?:the\s+)?(?:final\s+)?(?:answer|a)\s*[:：]\s*", re.IGNORECASE)
_OPENING = "(\"'`“”‘’«*_ \t"
_CLOSING = "\"'`“”‘’»*_ \t"
_VERBS = frozenset(
    "is are was were am has have had does do did can could will would may might must should cannot isn't aren't "
    "wasn't weren't don't doesn't didn't can't couldn't won't wouldn't refers became won wrote".split()
)
_STARTS = frozenset("i i'm it's there this that based sorry unfortunately he's she's".split())


def clean_answer(raw: str) -> str:
    """Return the answer in a reply, or ``NO ANSWER``.

    The last line that is not empty counts; a leading ``(``, quotes and emphasis around it are not part of the answer,
    nor is an ``Answer:`` before it. No text, anything that contains "no answer", and a full sentence are ``NO
    ANSWER``.
    """
    lines = [line.strip() for line in raw.splitlines() if line.strip()]
    if not lines:
        return NO_ANSWER
    text = lines[-1].lstrip(_OPENING).rstrip(_CLOSING)
    text = _LABEL.sub("", text).lstrip(_OPENING).rstrip(_CLOSING)
    if raw.strip().startswith("(") and text.endswith(")") and "(" not in text:
        text = text[:-1].rstrip(_CLOSING)
    if not text.strip(".,;:!?- ") or "no answer" in text.casefold() or is_sentence(text):
        return NO_ANSWER
    return text


def is_sentence(text: str) -> bool:
    """Return whether a reply is a full sentence and not a phrase.

    At least four words, closing punctuation, and a finite verb in lower case or a sentence's opening word. Titles
    such as "Who Wants to Be a Millionaire?" and abbreviations such as "Washington D.C." are no sentences.
    """
    words = text.replace("’", "'").split()
    if len(words) < 4 or text[-1] not in ".!?":
        return False
    if words[0].strip(",").casefold() in _STARTS:
        return True
    return any(word.strip(",;:.!?") in _VERBS for word in words[1:])
