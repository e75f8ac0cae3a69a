"""Exports: what is refused before tables are read, and whose card is whose."""

from pathlib import Path

import pytest

import quit
from quit.errors import SettingsError
from quit.export import verify
from quit.library import exporting, jobs
from tests.release import small


def _release(folder: Path) -> quit.Tables:
    return quit.open(small.freeze(folder, small.rows()).path)


@pytest.mark.parametrize(
    ("formats", "options", "message"),
    [
        (["huggingfcae"], {}, "no export format 'huggingfcae'. Did you mean 'huggingface'"),
        (["huggingface", "x"], {}, "no export format 'x'. Known: huggingface, release-json"),
        ([], {}, "No export format was named"),
        (["csv"], {"evaluation": True}, "eval is for huggingface"),
        (["csv"], {"benchmark": "B"}, "benchmark is for huggingface"),
        (["csv"], {"push": "org/x"}, "push publishes the format huggingface"),
        (None, {"public": True}, "public goes with push"),
    ],
)
def test_what_cannot_be_is_refused_before_tables_are_read(formats, options, message, tmp_path, monkeypatch) -> None:
    release = _release(tmp_path / "v1")
    monkeypatch.setattr(exporting, "_labelled", lambda *_: pytest.fail("The tables are read."))
    monkeypatch.setattr(exporting, "_encoder", lambda *_: pytest.fail("An encoder is made."))
    with pytest.raises(SettingsError, match=message):
        release.export(formats, tmp_path / "E", progress=False, **options)


def test_only_a_card_that_is_named_has_to_be_read_by_a_format(tmp_path: Path) -> None:
    """The dataset's own goes where a card is, and nowhere else."""
    release = _release(tmp_path / "v1")
    release._opened.facts["card"] = {"name": "Rivers"}
    release.export(["csv", "mteb"], tmp_path / "E", progress=False)
    release.export("csv", tmp_path / "alone", progress=False)
    assert "Rivers" in (tmp_path / "E/mteb/README.md").read_text()
    assert verify(tmp_path / "E/csv").files == verify(tmp_path / "alone/csv").files
    jobs._export(release._opened, ["csv"], tmp_path / "job", False, None)  # type: ignore[arg-type]
    (tmp_path / "card.toml").write_text("[card]\nname = 'Lakes'\n")
    with pytest.raises(SettingsError, match="card is for huggingface or mteb"):
        release.export("csv", tmp_path / "F", card=tmp_path / "card.toml", progress=False)
