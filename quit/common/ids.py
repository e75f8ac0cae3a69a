"""Ids and keyed hashes. Everything here is a pure function of its arguments, stable across machines and versions."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from quit.text.normalize import normalize_question

_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


def content_hash(*parts: Any, size: int = 16) -> str:
    """Return a hexadecimal hash of JSON-like values (``2 * size`` digits); key order of mappings does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def content_key(question: str) -> str:
    """Return the hash of a normalised question: the same whatever source it came from."""
    return content_hash("question", normalize_question(question), size=8)


def question_id(source: str, record_id: str) -> str:
    """Return ``source-record_id`` in characters that every file format, URL and shell leaves alone.

    An id with other characters than ASCII's ends in a hash of it, so that such ids stay distinct.

    >>> question_id("wikihint", "test 1/a"), question_id("wikihint", "Zürich")
    ('wikihint-test_1_a', 'wikihint-Z_rich-52e0fd15ae458249')
    """
    safe = _UNSAFE.sub("_", str(record_id)).strip("_")
    if not safe or not str(record_id).isascii():
        safe += f"{'-' if safe else ''}{content_hash(record_id, size=8)}"
    return f"{source}-{safe}"


def hint_id(question: str, position: int) -> str:
    """Return the id of the hint at ``position`` among a question's pooled hints."""
    return f"{question}-h{position:02d}"


HINT_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz" + "".join(map(chr, range(0x4E00, 0x4E00 + 1000 - 36)))
"""What permutations call a question's hints, in rank order: only given passages are more than 36."""


def given_id(question: str, passage: str) -> str:
    """Return the id that a given passage has as a hint. Its own id, ``passage``, follows the question's and ``:``."""
    return f"{question}:{passage}"


def is_given(question: str, hint_id: str) -> bool:
    """Return whether an id of a question's hint is that of a given passage."""
    return hint_id.startswith(f"{question}:")


def own_id(question: str, hint_id: str) -> str:
    """Return the own id of a given passage: the reverse of :func:`given_id`."""
    return hint_id[len(question) + 1 :]


def passage_id(question: str, permutation: str) -> str:
    """Return ``{question id}_{subset}_{permutation}``, the paper's release format (``..._024_402``)."""
    return f"{question}_{''.join(sorted(permutation))}_{permutation}"


def draw(key: str, seed: str) -> float:
    """Return a number in [0, 1) that follows from ``key`` and ``seed`` alone (a keyed hash, 53 bits)."""
    digest = hashlib.blake2b(key.encode(), key=seed.encode()[:64], digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53
