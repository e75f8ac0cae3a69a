"""``quit export`` as it is typed: the card's settings, and publishing."""

from pathlib import Path

import pytest

from quit.engine.location import Location
from tests.export.hub import TOKEN, hub
from tests.release import small
from tests.running import call_quit

pytestmark = pytest.mark.usefixtures("own_folder")

pytest.importorskip("datasets")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return small.freeze(tmp_path / "v1", small.rows()).path


def test_a_dry_run_lists_files_with_sizes_and_needs_no_token(release, monkeypatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    result = call_quit("export", "-w", release, "--out", "E", "--eval", "--push", "org/rivers", "--dry-run")
    folder = Path("E/huggingface")
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    lines = [line.split() for line in result.out.splitlines() if line.startswith(" ")]
    assert result.out.startswith(f"E/huggingface: {len(sizes)} files, ")
    assert "The licence is unknown: set licence in a [card] block" in result.out
    *files, total = lines
    assert {name: int(size.replace(",", "")) for size, name in files} == sizes
    expected = f"{sum(sizes.values()):,} bytes in {len(sizes)} files would go to org/rivers (private), tag v1"
    assert " ".join(total) == expected
    assert 'load_dataset("org/rivers", "passages"' in (folder / "README.md").read_text()
    assert '\ndataset_path: "org/rivers"\n' in (folder / "lm_eval" / "quit_passage.yaml").read_text()


def test_it_is_published_and_told(release, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    command = ("export", "-w", release, "--out", "E", "-f", "huggingface", "--push", "org/rivers", "--public")
    with hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        result = call_quit(*command, "--json")
        again = call_quit(*command)
        server.repositories["org/mine"] = {"private": True, "files": {}}
        private = call_quit(*["org/mine" if word == "org/rivers" else word for word in command])
    published = result.json()["published"]
    assert (published["url"], published["visibility"]) == (f"{server.address}/datasets/org/rivers", "public")
    sizes = {name: len(data) for name, data in server.repositories["org/rivers"]["files"].items()}
    assert {file["path"]: file["bytes"] for file in published["files"]} == sizes
    assert f"{server.address}/datasets/org/rivers (public): {len(published['files'])} files, tag v1" in again.out
    assert server.repositories["org/rivers"]["tags"]["v1"].keys() == sizes.keys() and published["tag"] == "v1"
    # The export is made again: its card names the repository. What was private stays so, and that is said.
    assert f"{server.address}/datasets/org/mine (private): " in private.out, private.err
    assert "It existed and stays private." in private.out and server.repositories["org/mine"]["private"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--push", "org/x"], "HF_TOKEN is not set"),
        (["--push", "org/x", "-f", "beir"], "push publishes the format huggingface"),
        (["--eval", "-f", "beir"], "eval is for huggingface: name that format too"),
        (
            ["--paper-keys", "-f", "huggingface"],
            "paper-keys is for release-json or paper-index or tevatron",
        ),
        (["--benchmark", "DIR", "-f", "csv"], "benchmark is for huggingface: name that format too"),
        (["--card", "card.toml", "-f", "csv"], "card is for huggingface or mteb: name that format too"),
        (["--positives", "7", "-f", "huggingface"], "or huggingface --eval: name that format too"),
        (["--negatives", "5", "-f", "beir"], "a choice of positives and negatives is for tevatron or colbert or"),
        (["--public"], "public goes with push"),
        (["--dry-run"], "dry-run goes with push"),
        (["--card", "none.toml"], "The file none.toml does not exist"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(release, monkeypatch, arguments, message) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    Path("card.toml").write_text("[card]\nname = 'A name'\n")
    result = call_quit("export", "-w", release, "--out", "E", *arguments, code=4)
    assert message in result.err and len(result.err.splitlines()) == 1
    assert not Path("E").exists()


@pytest.mark.parametrize(
    ("words", "folder"),
    [("export -w", "workspace/releases/v9"), ("release show", "not-there"), ("release show", "workspace")],
)
def test_what_is_no_release_is_told_with_the_commands_that_list_and_make_one(
    words: str, folder: str, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Location.create("workspace")
    result = call_quit(*words.split(), folder, code=3)
    assert "There is no release at " in result.err and f"{folder}. " in result.err
    assert "quit release list" in result.err and "quit release create" in result.err


def test_a_card_of_a_file_goes_before_that_of_the_release(tmp_path) -> None:
    card = {"name": "Frozen", "licence": "mit", "later": "x"}
    frozen = small.freeze(tmp_path / "v1", small.rows(), beside={"card": card})
    Path("card.toml").write_text('[card]\nname = "Given"\n')
    call_quit("export", "-w", frozen.path, "-f", "huggingface,mteb", "--out", "E")
    for name in ("huggingface", "mteb"):
        text = (Path("E") / name / "README.md").read_text()
        assert "license: mit\n" in text and "# Frozen\n" in text
    command = ("export", "-w", frozen.path, "-f", "huggingface", "--out", "E")
    refused = call_quit(*command, "--card", "card.toml", code=4)
    assert "an export of this release with another card or other options" in refused.err
    call_quit(*command, "--card", "card.toml", "--overwrite")
    assert "# Given\n" in Path("E/huggingface/README.md").read_text()
