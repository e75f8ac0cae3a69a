"""`quit cache`: what is kept is shown and emptied; replies stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quit.cli import app
from quit.common.cache import equivalence_store, vector_store


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path))


def test_stores_are_shown_and_emptied_by_name() -> None:
    vector_store().write({b"a": bytes(1000), b"b": bytes(1000)})
    equivalence_store().write({b"c": bytes(8)})
    shown = json.loads(CliRunner().invoke(app, ["cache", "stats", "--json"]).stdout)["stores"]
    assert (shown["vectors"]["entries"], shown["equivalence"]["entries"]) == (2, 1)
    assert "vectors: 2 entries deleted" in CliRunner().invoke(app, ["cache", "clear", "vectors"]).stdout
    assert (vector_store().facts()["entries"], equivalence_store().facts()["entries"]) == (0, 1)
    assert CliRunner().invoke(app, ["cache", "clear"]).exit_code == 0
    assert equivalence_store().facts()["entries"] == 0


def test_replies_cannot_be_cleared() -> None:
    cleared = CliRunner().invoke(app, ["cache", "clear", "replies"])
    assert cleared.exit_code != 0 and "no cache" in str(cleared.exception)
