"""A small release (three questions, two hints each) and what plugins are made from."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quit.dataset.dataset import Dataset
from quit.qa.benchmark.plugins import PluginContext, collection_of
from quit.qa.benchmark.task import release_task
from quit.qa.settings import load
from tests.release import small


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """q1 and q2 in train, q3 in test; permutations 0, 01, 1, 10 have the labels 2, 2, 1, 1."""
    rows = small.rows()
    for row in rows["splits"]:
        row["split"] = "test" if row["question_id"] == "q3" else "train"
    return small.freeze(tmp_path / "release", rows).path


@pytest.fixture
def world(release: Path, tmp_path: Path) -> Any:
    """The release opened: dataset, task over all questions, and ``context(**changes)``."""
    dataset = Dataset.of_release(release)
    task = release_task(dataset, "all")

    def context(*overrides: str, **changes: Any) -> PluginContext:
        usual = {"passages": task.passages, "models": None, "cache": tmp_path / "cache"}
        usual |= {"settings": load("embedded", overrides).settings, "collection": collection_of(dataset)}
        return PluginContext(**{**usual, **changes})

    return SimpleNamespace(dataset=dataset, task=task, context=context, release=release)
