"""A workspace and two releases made by an earlier program (commit f4930a3) are still what they were.

``tests/earlier/f4930a3.tar.gz`` holds a workspace of fourteen questions of the starter collection (profile
``embedded``, two shards), reviewed and updated, with the releases v1 (before the review) and v2 (after it).
``f4930a3.json`` holds what that program made of them: the SHA-256 of every exported file, and the comparison of the
releases.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.release.diff import diff
from quit.release.release import verify
from quit.settings import load
from quit.sources import parse_source
from tests.conftest import call_quit

EARLIER = Path(__file__).parent / "earlier"
EXPECTED = json.loads((EARLIER / "f4930a3.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the workspace ``W`` and its source ``small.jsonl``."""
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(EARLIER / "f4930a3.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _is_of_the_card(file: str) -> bool:
    """Whether a file is the card, describes it, or lists its checksum."""
    folder, _, name = file.partition("/")
    return name in ("README.md", "settings.json", "croissant.json") or (
        folder in ("huggingface", "mteb") and name == "manifest.json"
    )


def test_releases_verify_and_compare_as_before(earlier: Path) -> None:
    releases = earlier / "W" / "releases"
    assert [verify(releases / name).content_id[:8] for name in ("v1", "v2")] == ["cd07048e", "19ecbfbf"]
    assert json.loads(json.dumps(diff(releases / "v1", releases / "v2").to_dict())) == EXPECTED["diff"]


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_releases_export_to_the_same_bytes(earlier: Path, name: str, tmp_path: Path) -> None:
    """The data, not the card and its files, which are written by today's program.

    Formats for fine-tuning are left out: their default negatives are others since.
    """
    expected = {
        file: checksum
        for file, checksum in EXPECTED["exports"][name].items()
        if not file.startswith(("colbert", "monot5", "tevatron")) and not _is_of_the_card(file)
    }
    formats = sorted({file.partition("/")[0] for file in expected})
    release = earlier / "W" / "releases" / name
    done = call_quit("export", "--release", str(release), "-f", ",".join(formats), "--out", str(tmp_path), "-q")
    assert done.returncode == 0, done.stderr
    exported = {file: checksum for file, checksum in _checksums(tmp_path).items() if not _is_of_the_card(file)}
    assert exported == expected


def test_tables_are_undamaged_and_status_counts_them(earlier: Path) -> None:
    workspace = Workspace.open(earlier / "W")
    assert workspace.damaged() == []
    rows = {stage["run"]: stage["rows"] for stage in json.loads(_quit("status", "--json", workspace))["stages"]}
    assert rows["label"] == {"labels": 4225, "valid_answers": 23} and rows["update"]["changes"] == 238


def test_labels_update_and_exports_follow_from_its_answers_and_verdicts(
    earlier: Path, prefect_home: Path, tmp_path: Path
) -> None:
    """Its tables down to the verdicts are put where this program would have made them; the build makes the rest of
    them."""
    before = Workspace.open(earlier / "W")
    shutil.copytree(before.path / "reviews", tmp_path / "W" / "reviews")
    workspace = Workspace(tmp_path / "W")
    workspace.make()
    settings = load("embedded", ["run.shards=2"]).settings
    pipeline = Pipeline(workspace, settings, [parse_source(f"jsonl:{earlier / 'small.jsonl'}")])
    made_anew = {"label", "update"}
    for run in pipeline.runs:
        if run.key not in made_anew:
            current = before.current()  # where the probe ran once for all readers
            folder, _ = current[run.key if run.key in current else run.stage.name]
            shutil.copytree(folder, pipeline.folder(run), ignore=shutil.ignore_patterns("manifest.json"))
            pipeline.finish(run)
    assert {run.key for run in pipeline.runs if not pipeline.is_done(run)} == made_anew
    _quit("build", "-q", workspace, "--source", f"jsonl:{earlier / 'small.jsonl'}", "--shards", "2")
    for table in ("labels", "valid_answers", "verdicts", "splits", "changes"):
        assert workspace.read(table).equals(before.read(table)), table
    out = tmp_path / "exports"
    _quit("export", workspace, "-f", "release-json,paper-index,beir", "--paper-keys", "--out", str(out), "-q")
    assert _data(_checksums(out)) == _data(EXPECTED["exports"]["workspace"])


def _data(checksums: dict[str, str]) -> dict[str, str]:
    """Leave out the manifests, which name the fingerprints of the stages."""
    return {file: checksum for file, checksum in checksums.items() if not file.endswith("manifest.json")}


def _quit(command: str, *arguments: str | Workspace) -> str:
    texts = [part for text in arguments for part in (["-w", str(text)] if isinstance(text, Workspace) else [text])]
    done = call_quit(command, *texts)
    assert done.returncode == 0, done.stderr
    return done.stdout
