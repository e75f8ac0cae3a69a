"""What vendors, servers and open models mean by the words that they choose: one table, ``vendors.txt``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_NO_LETTER = re.compile(r"[\W_]+")
_PREFIX = re.compile("^(finishreason|batchstate|jobstate)")
_MARKED = re.compile(r"[<\[◁]|\A\s*(?:assistant|analysis|commentary|thought)|here.{1,2}s my", re.IGNORECASE)


def meaning(kind: str, word: str) -> str | None:
    """Return what a word of a kind (``finish``, ``batch``) means; None for one that is not known."""
    return _table(kind).get(_plain(word.partition(":")[0]))


def family(model: str) -> str:
    """Return a model's family by its name, folder or identity: the last word of it that names one, else the first word.

    >>> family("gpt-eval-5/chat/NousResearch/Hermes-3-Llama-3.1-8B@main|judge@9fd524b72bae|8 tokens")
    'llama'
    """
    words = re.findall("[a-z]+", re.split(r"[|@#]", model)[0].rstrip("/").rpartition("/")[2].casefold())
    families = [*filter(None, (meaning("family", word) for word in words))]
    return families[-1] if families else next(iter(words), model)


def refusal(text: str) -> str | None:
    """Return what the code or message of an error says: ``withheld``, ``long``, ``loading`` or ``waiting``, or None."""
    plain = _plain(text)
    return next((what for piece, what in _table("refusal").items() if piece in plain), None)


def parted(text: str) -> tuple[str, str]:
    """Return the answer and the thoughts in a reply's text; the text as it is where no mark is in it.

    A thought may lack an end: all is thought before one that was not opened, and after one that is not closed. Of
    several turns the first in which the model says something counts.
    """
    marks = [*_marks().finditer(text)] if _MARKED.search(text) else []
    if not marks:
        return text, ""
    thoughts: list[str] = []
    turns, state = [text[: marks[0].start()]], "turn"
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)], strict=True):
        kind = str(mark.lastgroup).partition("_")[0]
        if kind == "close" and state != "open":
            thoughts, turns = [*thoughts, *turns], []
        if kind in ("turn", "other") or not turns:
            turns.append("")
        if kind == "thought":
            thoughts.append(mark[0])
        state = "turn" if kind in ("close", "thought") else kind
        if state == "open":
            thoughts.append(text[mark.end() : end])
        elif state == "turn":
            turns[-1] += "\n" + text[mark.end() : end]
    return next(filter(None, map(str.strip, turns)), ""), "\n".join(filter(str.strip, thoughts))


def _plain(word: str) -> str:
    return _PREFIX.sub("", _NO_LETTER.sub("", word.casefold()))


@cache
def _table(kind: str) -> dict[str, str]:
    return {word if kind == "mark" else _plain(word): what for name, word, what in _rows() if name == kind}


@cache
def _marks() -> re.Pattern[str]:
    kinds = enumerate(_table("mark").items())
    return re.compile("|".join(f"(?P<{kind}_{number}>{mark})" for number, (mark, kind) in kinds), re.IGNORECASE)


def _rows() -> Iterator[list[str]]:
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")[:3]
