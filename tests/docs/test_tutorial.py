"""The tutorial, run from top to bottom as a reader does, with what it prints compared to what it shows."""

import shutil
from pathlib import Path

import pytest

from quit.annotation.server import label_studio_programs
from quit.dataset.statistics import statistics
from quit.errors import MissingDependency
from tests.docs.pages import Reader
from tests.paths import ROOT


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "__defaults__", (None, 50))  # of 500 passages' similarity, the page shows nothing
    shutil.copy(ROOT / "docs" / "tutorial" / "hints.jsonl", tmp_path)
    try:
        label_studio_programs()
    except MissingDependency as error:
        pytest.skip(str(error))
    Reader(tmp_path).read(ROOT / "docs" / "tutorial.md")
    assert (tmp_path / "exports" / "huggingface" / "README.md").is_file()
