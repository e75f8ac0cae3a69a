"""Flows that find nothing new say so by their state's name, and do nothing: release, label update."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow, State

from quit.dataset.release import verify
from quit.export import verify as verify_export
from quit.flows.release import release
from quit.flows.review import label_update

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]


def test_releases_and_label_updates_are_not_made_twice(built: Path, tmp_path: Path) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")

    def run(flow: Flow, *arguments: str, **settings: Any) -> list[str]:
        state: State = flow(str(workspace), *arguments, **settings, return_state=True)
        return [state.name or "", state.message or ""]

    assert run(release, "nightly-%Y", formats=["trec"], out=str(workspace / "at-once"))[0] == "Completed"
    name, message = run(release, "again-%Y")
    assert name == "Nothing new" and "holds these very tables" in message
    [frozen] = (workspace / "releases").iterdir()
    assert verify(frozen).facts["statistics"]["summary"][-1]["semantic_similarity"] is not None
    # Frozen before, exported only now: what a retry does after an export that failed.
    exports = {"formats": ["release-json"], "out": str(workspace / "exports")}
    assert [run(release, "late-%Y", **exports)[0] for _ in range(2)] == ["Completed", "Nothing new"]
    assert all(verify_export(workspace / name).files for name in ("exports/release-json", "at-once/trec"))
    assert run(label_update)[0] == "Nothing new"  # nobody has reviewed anything
