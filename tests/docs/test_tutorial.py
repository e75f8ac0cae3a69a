"""The tutorial, run from top to bottom as a reader does, with what it prints compared to what it shows."""

import shutil
from pathlib import Path

import pytest

from quit.annotation.server import label_studio_programs
from quit.errors import MissingDependency
from tests.docs.pages import Reader, missing
from tests.paths import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"


@pytest.mark.parametrize(
    ("shown", "printed", "line"),
    [
        ("a 10 b", "x\n a  10 b ", None),
        ("a 100 b\n...\nc", "a 109 b\nz\nc", None),
        ("a 100 b", "a 111 b", "a 100 b"),
        ("a 3 b", "a 4 b", "a 3 b"),
        ("a ... b", "a anything at all b", None),
        ("b\na", "a\nb", "a"),
        ("1,000.5 x", "1,000.4 x", None),
        ("a", "ab", "a"),
    ],
)
def test_what_is_printed_is_compared_with_what_is_shown(shown: str, printed: str, line: str | None) -> None:
    assert missing(shown, printed) == line


def _without_label_studio() -> str | None:
    """Return why Label Studio cannot be started here; None if it can."""
    try:
        label_studio_programs()
    except MissingDependency as error:
        return str(error)
    return None


def _lines_of(heading: str) -> range:
    """Return the lines of a section of the tutorial."""
    lines = TUTORIAL.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, 1) if line.startswith(f"## {heading}"))
    after = (number for number, line in enumerate(lines, 1) if number > first and line.startswith("## "))
    return range(first, next(after))


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "tutorial" / "hints.jsonl", tmp_path)
    reason = _without_label_studio()
    left_out = _lines_of("5. ") if reason else range(0)
    Reader(tmp_path).read(TUTORIAL, left_out=left_out)
    assert (tmp_path / "exports" / "huggingface" / "README.md").is_file()
    if reason:
        pytest.skip(f"all but section 5 was run: {reason}")
