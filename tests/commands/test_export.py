"""``quit export`` as it is typed: the card's settings, and publishing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.export.hub import TOKEN, hub
from tests.release import small

pytest.importorskip("datasets")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return small.freeze(tmp_path / "v1", small.rows()).path


def test_a_dry_run_lists_files_with_sizes_and_needs_no_token(call, release, monkeypatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    done = call("export", "--release", release, "--out", "E", "--push", "org/rivers", "--dry-run")
    assert done.code == 0, done.err
    folder = Path("E/huggingface")
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    listed = [line.split() for line in done.out.splitlines() if line.startswith(" ")]
    *files, total = listed
    assert {name: int(size.replace(",", "")) for size, name in files} == sizes
    assert " ".join(total) == f"{sum(sizes.values()):,} bytes in {len(sizes)} files would go to org/rivers (private)"
    assert 'load_dataset("org/rivers", "passages"' in (folder / "README.md").read_text()


def test_it_is_published_and_told(call, release, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    given = ("export", "--release", release, "--out", "E", "-f", "huggingface", "--push", "org/rivers", "--public")
    with hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        done = call(*given, "--json")
        assert done.code == 0, done.err
        again = call(*given)
    published = json.loads(done.out)["published"]
    assert (published["url"], published["visibility"]) == (f"{server.address}/datasets/org/rivers", "public")
    assert {file["path"]: file["bytes"] for file in published["files"]} == {
        name: len(data) for name, data in server.repositories["org/rivers"]["files"].items()
    }
    assert f"{server.address}/datasets/org/rivers (public): {len(published['files'])} files" in again.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--push", "org/x"], "HF_TOKEN is not set"),
        (["--push", "x"], "--push 'x': write ORG/NAME"),
        (["--push", "org/x", "-f", "beir"], "--push publishes the format huggingface"),
        (["--public"], "--public goes with --push"),
        (["--dry-run"], "--dry-run goes with --push"),
        (["--card", "none.toml"], "There is no profile 'none.toml'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(call, release, monkeypatch, arguments, said) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    done = call("export", "--release", release, "--out", "E", *arguments)
    assert done.code == 4 and said in done.err and len(done.err.splitlines()) == 1
    assert not Path("E").exists()


def test_a_card_of_a_file_goes_before_that_of_the_release(call, tmp_path) -> None:
    frozen = small.freeze(tmp_path / "v1", small.rows(), card={"name": "Frozen", "licence": "mit", "later": "x"})
    Path("card.toml").write_text('[card]\nname = "Given"\n')
    assert call("export", "--release", frozen.path, "-f", "huggingface,mteb", "--out", "E").code == 0
    for name in ("huggingface", "mteb"):
        text = (Path("E") / name / "README.md").read_text()
        assert "license: mit\n" in text and "# Frozen\n" in text
    refused = call("export", "--release", frozen.path, "-f", "huggingface", "--out", "E", "--card", "card.toml")
    assert refused.code == 4 and "--overwrite" in refused.err
    done = call(
        "export", "--release", frozen.path, "-f", "huggingface", "--out", "E", "--card", "card.toml", "--overwrite"
    )
    assert done.code == 0 and "# Given\n" in Path("E/huggingface/README.md").read_text()
