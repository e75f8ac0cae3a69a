"""Numbers in sentences, lists of names, paths in commands, abbreviations, and what docstrings say."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

ABBREVIATED = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Gen|Col|Lt|Rev|Prof|Inc|Co|U\.S|b|d|c|ca)\.)$")
"""The end of a text whose last full stop ends no sentence."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(1, "person", "people"), counted(1_234, "hint")
    ('1 person', '1,234 hints')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def first_names(names: Sequence[str], limit: int = 3) -> str:
    """Return the first names of a list, and how many more there are.

    >>> first_names(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def shell_word(path: object) -> str:
    """Return a path, or what stands for one, as it is typed in a command.

    >>> shell_word("my data"), shell_word("data")
    ("'my data'", 'data')
    """
    return shlex.quote(str(path))


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says above its ``Args``, and of each parameter."""
    text, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
    entries = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", rest.partition("\n\n")[0], re.MULTILINE)
    return text, {name: " ".join(words.split()) for name, words in entries}
