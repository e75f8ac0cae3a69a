import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quit.errors import InputError, SettingsError, WorkspaceError
from quit.export import FORMATS, export, release_json, verify
from tests.comparing import files_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_release_gives_the_same_bytes(tables, release, tmp_path, name):
    for out in ("one", "two"):
        export(tables, [name], tmp_path / out)
    export(release.as_dictionaries(tables, 777), [name], tmp_path / "three")  # other chunks, other encoding
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two") == files_of(tmp_path / "three")
    assert list((tmp_path / "one").iterdir()) == [tmp_path / "one" / name], "nothing temporary is left"


def test_the_manifest_names_every_file_with_its_checksum(tables, tmp_path):
    manifests = export(tables, ["release-json", "huggingface", "release-json"], tmp_path)
    assert [one.format for one in manifests] == ["release-json", "huggingface"]
    for manifest in manifests:
        folder = tmp_path / manifest.format
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert found["release_fingerprint"] == tables.fingerprint and found["embedded"] is True
        assert {one["path"] for one in found["files"]} == set(files_of(folder)) - {"manifest.json"}
        for one in found["files"]:
            content = (folder / one["path"]).read_bytes()
            assert (one["sha256"], one["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))
        assert verify(folder) == manifest
    rows = {entry.path: entry.rows for entry in manifests[0].files}
    assert rows == {"train.json": 3, "dev.json": 2, "test.json": 2, "corpus.jsonl": 7 * 325}


def test_a_split_without_questions_has_empty_files_or_none(release, tmp_path):
    formats = ["release-json", "paper-index", "beir", "trec", "squad", "csv"]
    export(release.make({"q1": "train", "q2": "test"}), formats, tmp_path)
    empty = {name: path for name, path in files_of(tmp_path).items() if "dev" in name}
    assert empty == {
        "release-json/dev.json": b"[]\n",
        **dict.fromkeys(("paper-index/dev/index.jsonl", "paper-index/dev/retriever.jsonl"), b""),
        "beir/qrels/dev.tsv": b"query-id\tcorpus-id\tscore\n",
        **dict.fromkeys(("trec/qrels.dev.txt", "trec/topics.dev.tsv", "trec/topics.dev.txt"), b""),
    }
    corpus = (tmp_path / "paper-index" / "corpus.jsonl").read_text().splitlines()
    assert len(corpus) == 650 and len((tmp_path / "beir" / "corpus.jsonl").read_text().splitlines()) == 650


def test_verify_names_the_changed_and_the_missing_file(tables, tmp_path):
    export(tables, ["release-json"], tmp_path)
    folder = tmp_path / "release-json"
    text = (folder / "dev.json").read_bytes()
    (folder / "dev.json").write_bytes(text.replace(b"Gold", b"Bold", 1))
    with pytest.raises(InputError, match=r"dev\.json .* was changed"):
        verify(folder)
    (folder / "dev.json").unlink()
    with pytest.raises(InputError, match=r"dev\.json .* cannot be read"):
        verify(folder)
    with pytest.raises(InputError, match="not a complete export"):
        verify(tmp_path)


def test_unknown_formats_are_named_with_the_nearest(tables, tmp_path):
    with pytest.raises(SettingsError, match="Did you mean 'release-json'"):
        export(tables, ["huggingface", "release-jsn"], tmp_path)
    with pytest.raises(SettingsError, match="huggingface, release-json"):
        export(tables, [], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_ours_is_never_replaced(tables, tmp_path):
    target = tmp_path / "release-json"
    target.mkdir()
    (target / "thesis.tex").write_text("years of work")
    for content in (None, "{}", "[]", "not json", '{"made_by": "someone"}'):
        if content is not None:
            (target / "manifest.json").write_text(content)
        before = files_of(tmp_path)
        with pytest.raises(SettingsError, match="not an earlier export"):
            export(tables, ["huggingface", "release-json"], tmp_path, overwrite=True)
        assert files_of(tmp_path) == before, "nothing is written, not even the format whose target is free"


def test_a_file_or_a_link_as_target_is_refused(tables, tmp_path):
    (tmp_path / "release-json").write_text("a file")
    with pytest.raises(SettingsError, match="not a folder"):
        export(tables, ["release-json"], tmp_path, overwrite=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "huggingface").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingsError, match="not a folder"):
        export(tables, ["huggingface"], tmp_path, overwrite=True)


def test_an_empty_folder_is_a_fine_target(tables, tmp_path):
    (tmp_path / "release-json").mkdir()
    export(tables, ["release-json"], tmp_path)
    assert verify(tmp_path / "release-json")


def test_an_earlier_export_is_replaced_only_when_asked(tables, tmp_path):
    export(tables, ["release-json"], tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(SettingsError, match="--overwrite"):
        export(tables, ["release-json"], tmp_path, paper_keys=True)
    assert files_of(tmp_path) == before
    export(tables, ["release-json"], tmp_path, paper_keys=True, overwrite=True)
    assert b"gemma-3-1b" in (tmp_path / "release-json" / "train.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["release-json"]


def test_a_users_file_in_an_earlier_export_is_not_deleted(tables, tmp_path):
    export(tables, ["release-json"], tmp_path)
    (tmp_path / "release-json" / "notes.md").write_text("mine")
    with pytest.raises(SettingsError, match=r"notes\.md"):
        export(tables, ["release-json"], tmp_path, overwrite=True)
    assert (tmp_path / "release-json" / "notes.md").read_text() == "mine"


@pytest.mark.parametrize("place", [(release_json, "_write_corpus"), (Path, "rename")], ids=lambda place: place[1])
def test_a_failing_export_or_rename_leaves_the_earlier_one(tables, tmp_path, monkeypatch, place):
    export(tables, ["release-json"], tmp_path)
    before, real = files_of(tmp_path), getattr(*place)

    def full(one, *more):
        if isinstance(one, Path) and not one.name.endswith(".partial"):
            return real(one, *more)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*place, full)
    with pytest.raises(WorkspaceError, match=r"No space left on device.*unchanged"):
        export(tables, ["release-json"], tmp_path, overwrite=True)
    assert files_of(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["release-json"]


def test_killed_between_the_two_renames_the_earlier_one_comes_back(tables, tmp_path):
    export(tables, ["release-json"], tmp_path)
    (tmp_path / "release-json").rename(tmp_path / ".release-json.replaced")
    with pytest.raises(SettingsError, match="already holds"):
        export(tables, ["release-json"], tmp_path, paper_keys=True)
    assert verify(tmp_path / "release-json")


def test_killed_in_the_second_of_two_formats_the_first_one_stays_as_it_is(tables, tmp_path):
    export(tables, ["beir"], tmp_path)  # as far as a run of two formats got
    first = (tmp_path / "beir").stat().st_ino
    made = export(tables, ["beir", "trec"], tmp_path)
    assert [one.format for one in made] == ["beir", "trec"] and (tmp_path / "beir").stat().st_ino == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beir", "trec"]


def test_an_equal_export_that_was_altered_is_named_and_not_taken_for_done(tables, tmp_path):
    export(tables, ["beir"], tmp_path)
    corpus = tmp_path / "beir" / "corpus.jsonl"
    corpus.write_bytes(corpus.read_bytes()[:-2] + b"!\n")
    with pytest.raises(InputError, match=r"corpus.jsonl .* was changed"):
        export(tables, ["beir"], tmp_path)


KILLED = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from pathlib import Path
from conftest import make_tables
from quit.export import export, release_json
def hang(*_):
    print("writing", flush=True)
    time.sleep(60)
release_json._write_corpus = hang
export(make_tables({{"q1": "train"}}), ["release-json"], Path({out!r}), overwrite=True)
"""


@pytest.mark.parametrize("earlier", [False, True])
def test_a_killed_export_leaves_no_complete_looking_folder(tables, tmp_path, earlier):
    if earlier:
        export(tables, ["release-json"], tmp_path)
    script = KILLED.format(root=str(ROOT), tests=str(Path(__file__).parent), out=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ})
    assert process.stdout.readline() == b"writing\n"
    # A second export meanwhile must not take the first one's folder for a ruin.
    partial = list(tmp_path.glob(".release-json.*.partial"))
    assert len(partial) == 1 and (partial[0] / "train.json").exists()
    export(tables, ["release-json"], tmp_path, overwrite=True)
    assert partial[0].exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not list(tmp_path.rglob(".*/manifest.json"))
    assert verify(tmp_path / "release-json").files
    for _ in range(50):  # the lock goes with the process, not quite at once
        export(tables, ["release-json"], tmp_path, overwrite=True)
        if not partial[0].exists():
            break
        time.sleep(0.1)
    assert [path.name for path in tmp_path.iterdir()] == ["release-json"], "the ruin is gone"


def test_an_unwritable_folder_is_one_clear_error(tables, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="could not be written"):
        export(tables, ["release-json"], tmp_path / "file" / "out")
