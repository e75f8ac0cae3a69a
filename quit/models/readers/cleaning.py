"""From an LLM reader's raw reply to its answer (paper, section 3.2.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from quit.models.protocols import NO_ANSWER
from quit.text.invisible import without_invisible
from quit.text.normalize import fold
from quit.text.vendors import parted

VERSION = 4

Sentences = Literal["drop", "judge"]
"""Treatment of replies that are sentences: ``drop`` makes them ``NO ANSWER``, ``judge`` leaves them to the judge."""

_LABEL = re.compile(r"^(?:\d+[.)]\s+)?(?:the\s+)?(?:final\s+)?(?:answer|a)\s*[:：]\s*", re.IGNORECASE)
_CONTROLS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # a terminal's escape sequences, with their links
    r"|[^\t\n\r -~\xa0-\u2029\u202f-\u2065\u206a-\U0010ffff]"  # others, and what reverses the direction of text
)
_NO_ANSWER = re.compile(r"\bno[\s_\u2010-\u2015-]*answer")
_BOX = re.compile(r"\$*\\boxed\{(?:\\text\{([^{}]*)\}|([^{}]*))\}\$*")
_FENCE = re.compile(r"`{3,}\w*|~{3,}\w*")
_REASON = re.compile(r"(?:explanation|reason(?:ing)?|justification|note)\s*[:：]", re.IGNORECASE)
_OPENING = "(\"'`“”‘’«*_ \t"
_CLOSING = "\"'`“”‘’»*_ \t"
_SHORTEST = 4  # words of a sentence without a pronoun as its subject
_VERBS = frozenset(
    "is are was were am has have had does do did can could will would may might must should cannot isn't aren't "
    "wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't won't wouldn't refers became won wrote "
    "began came took gave went sang got ran contains includes describes mentions says suggests indicates provides "
    "consists belongs appears becomes comes takes plays sings goes gets gives makes means lies borders remains seems "
    "asks appeared died lived occurred happened existed".split()
)
_PAST = frozenset("lost held made led found built left told fought met kept sold taught brought bought said".split())
_PARTICIPLES = frozenset("named called titled entitled dubbed nicknamed considered".split())
_DETERMINERS = frozenset("a an the his her its their this these those".split())
_PRONOUNS = frozenset("it he she they we you i this that there".split())
_RELATIVE = frozenset("who which that where when whose whom what".split())
_STARTS = frozenset("i'm it's he's she's they're sorry unfortunately".split())
_OPENERS = frozenset("i there this that based according given".split())
_SMALL = frozenset("a an the of in on at to for and or but with by from".split())


def cleaning_identity(sentences: Sentences) -> str:
    """Return what cleaned answers depend on, beside the reply: a part of a reader's identity."""
    return f"clean-{VERSION}{'+sentences' if sentences == 'judge' else ''}"


def clean_answer(raw: str, finish_reason: str = "stop", sentences: Sentences = "drop", stop: Sequence[str] = ()) -> str:
    """Return the answer in a reply, or ``NO ANSWER``.

    The last line that is not empty counts, of several the last that is whole, and not a fence nor an ``Explanation:``
    after others; a leading ``(``, quotes and emphasis around it are not part of the answer, nor is an ``Answer:``
    before it. Thoughts, marks of turns, ``\\boxed{}`` and invisible characters are left out. No text,
    ``N/A`` and anything that contains "no answer" in any spelling are ``NO ANSWER``, and so is a sentence, unless
    ``sentences`` leaves it to the judge.
    ``finish_reason``: ``length`` where the reply ran into the token limit, so that a sentence may lack its end; else
    ``stop``. ``stop``: the strings before which replies end; one with a full stop in it takes that of a sentence.
    """
    raw = without_invisible(without_controls(raw))
    raw = _BOX.sub(lambda box: box[1] or box[2] or "", parted(raw)[0])
    lines = [line.strip() for line in raw.splitlines() if line.strip() and not _FENCE.fullmatch(line.strip())]
    if finish_reason == "length" and len(lines) > 1 and raw[-1] not in "\r\n":
        del lines[-1]
    while len(lines) > 1 and _REASON.match(lines[-1]):
        del lines[-1]
    if not lines:
        return NO_ANSWER
    text = lines[-1].lstrip(_OPENING).rstrip(_CLOSING)
    text = _LABEL.sub("", text).lstrip(_OPENING).rstrip(_CLOSING)
    if raw.strip().startswith("(") and text.endswith(")") and "(" not in text:
        text = text[:-1].rstrip(_CLOSING)
    bare = text.strip(".,;:!?- ")
    if not bare or says_no_answer(text) or fold(bare) == "n/a":
        return NO_ANSWER
    cut = finish_reason == "length" or any(mark in string for string in stop for mark in ".!?")
    return NO_ANSWER if sentences == "drop" and is_sentence(text, cut=cut) else text


def as_written(raw: str) -> str:
    """Return what a judge sees of a reply to a question alone: all of it, since a sentence may be right; ``NO ANSWER``
    where the reply begins with that."""
    text = without_controls(raw).strip()
    return NO_ANSWER if says_no_answer(" ".join(text.lstrip("(\"'*").split()[:2])) else text


def without_controls(text: str) -> str:
    """Return a model's text without escape sequences and control characters except tabs and line ends."""
    return _CONTROLS.sub("", text)


def says_no_answer(text: str) -> bool:
    """Return whether a text contains "no answer", in any case, width and spacing, or with an underscore."""
    return _NO_ANSWER.search(fold(text)) is not None


def is_sentence(text: str, *, cut: bool = False) -> bool:
    """Return whether a reply is a sentence and not a phrase.

    It has closing punctuation, unless it was cut, and a finite verb in lower case outside of relative clauses, or the
    words in which an assistant begins. Titles such as "Who Wants to Be a Millionaire?", abbreviations such as
    "Washington D.C." and phrases such as "the man who was king." are no sentences.
    """
    words = text.replace("’", "'").split()
    if not words or not (cut or words[-1][-1] in ".!?"):
        return False
    bare = [word.strip(',;:.!?"') for word in words]
    first, *rest = bare
    if first.casefold() in _PRONOUNS and rest and rest[0] in _VERBS:
        return True
    if len(words) < _SHORTEST:
        return False
    if first.casefold() in _STARTS:
        return True
    if first.casefold() in _OPENERS and any(word.islower() and word not in _SMALL for word in rest):
        return True
    return any(
        _is_verb(bare, at) and _RELATIVE.isdisjoint(word.casefold() for word in bare[max(1, at - 2) : at])
        for at in range(1, len(bare))
    )


def _is_verb(words: list[str], at: int) -> bool:
    """Return whether a word is a finite verb: one of the list, or a past tense before a determiner or between names
    (a participle has a preposition or nothing after it)."""
    word, before, after = words[at], words[at - 1], words[at + 1] if at + 1 < len(words) else ""
    if word in _VERBS:
        return True
    if not (word in _PAST or (word.islower() and word.endswith("ed"))) or word in _PARTICIPLES:
        return False
    between_names = before[:1].isupper() and before.casefold() not in _DETERMINERS and after[:1].isupper()
    return after in _DETERMINERS or between_names
