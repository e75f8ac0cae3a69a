"""The release flow as a schedule would call it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quit.export import verify as verify_export
from quit.release.release import verify
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def test_the_flow_freezes_and_exports(built: Path, tmp_path: Path, prefect_home: Path) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")
    call = f"from flows.release import release; release({str(workspace)!r}, 'v1', formats=['release-json'], out={str(tmp_path / 'out')!r})"
    environment = {**os.environ, "PREFECT_HOME": str(prefect_home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    release = verify(workspace / "releases" / "v1")
    assert release.facts["statistics"]["summary"][-1]["semantic_similarity"] is not None
    assert verify_export(tmp_path / "out" / "release-json").files
