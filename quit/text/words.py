"""Numbers in sentences, and lists of names."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(1, "person", "people"), counted(1_234, "hint")
    ('1 person', '1,234 hints')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]
