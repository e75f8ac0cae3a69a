"""What an export or a release says of the workspace it was made from."""

from pathlib import Path

import pytest

from quit.dataset.workspace import provenance_of
from tests.building import carry_out, plan_build


def test_the_origin_is_the_same_from_every_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = plan_build(tmp_path / "W", f"models.bem_checkpoint={tmp_path}/bem")
    carry_out(pipeline, "collect")
    default = plan_build(tmp_path / "W")
    here = provenance_of(default)
    monkeypatch.chdir(tmp_path)
    (tmp_path / here["settings"]["models"]["bem_checkpoint"]).mkdir(parents=True)
    assert provenance_of(default) == here
    assert provenance_of(pipeline)["settings"]["models"]["bem_checkpoint"] == "bem"
