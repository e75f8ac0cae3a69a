"""Numbers in sentences, lists of names, and paths in commands."""

from __future__ import annotations

import shlex


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(1, "person", "people"), counted(1_234, "hint")
    ('1 person', '1,234 hints')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def shell_word(path: object) -> str:
    """Return a path, or what stands for one, as it is typed in a command.

    >>> shell_word("my data"), shell_word("data")
    ("'my data'", 'data')
    """
    return shlex.quote(str(path))
