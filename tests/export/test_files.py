import errno
import hashlib
import json
from pathlib import Path

import pytest

from quit.errors import InputError, SettingsError, WorkspaceError
from quit.export import export, release_json, verify
from tests.comparing import files_of
from tests.release import small
from tests.running import killed_at, until

JSON = ["release-json"]


def test_the_manifest_names_every_file_with_its_checksum(tables, tmp_path):
    manifests = export(tables, ["release-json", "huggingface", "release-json"], tmp_path)
    assert [one.format for one in manifests] == ["release-json", "huggingface"]
    for manifest in manifests:
        folder = tmp_path / manifest.format
        written = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert written["release_fingerprint"] == tables.fingerprint and written["embedded"] is True
        assert {one["path"] for one in written["files"]} == set(files_of(folder)) - {"manifest.json"}
        for one in written["files"]:
            content = (folder / one["path"]).read_bytes()
            assert (one["sha256"], one["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))
        assert verify(folder) == manifest
    rows = {entry.path: entry.rows for entry in manifests[0].files}
    assert rows == {"train.json": 3, "dev.json": 2, "test.json": 2, "corpus.jsonl": 7 * 325, "CANARY.txt": 1}


def test_verify_names_the_changed_and_the_missing_file(tables, tmp_path):
    (tmp_path / "release-json").mkdir()  # an empty folder is a fine target
    export(tables, JSON, tmp_path)
    dev = tmp_path / "release-json" / "dev.json"
    dev.write_bytes(dev.read_bytes().replace(b"Gold", b"Bold", 1))
    with pytest.raises(InputError, match=r"dev\.json .* was changed"):
        verify(dev.parent)
    with pytest.raises(InputError, match=r"dev\.json .* was changed"):
        export(tables, JSON, tmp_path)  # an equal one that was altered is not taken for done
    dev.unlink()
    with pytest.raises(InputError, match=r"dev\.json .* is missing"):
        verify(dev.parent)
    with pytest.raises(InputError, match="not a complete export"):
        verify(tmp_path)


def _foreign(content):
    def put(target):
        target.mkdir()
        (target / "thesis.tex").write_text("years of work")
        if content is not None:
            (target / "manifest.json").write_text(content)

    return put


CONTENTS = (None, "{}", "[]", "x", '{"made_by": "someone"}')


def _link(target):
    (target.parent / "elsewhere").mkdir()
    target.symlink_to(target.parent / "elsewhere")


@pytest.mark.parametrize(
    ("put", "message"),
    [
        *((_foreign(content), "not an earlier export") for content in CONTENTS),
        (lambda target: target.write_text("a file"), "not a folder"),
        (_link, "not a folder"),
    ],
)
def test_what_is_not_ours_is_never_replaced(tables, tmp_path, put, message):
    put(tmp_path / "release-json")
    before = files_of(tmp_path)
    with pytest.raises(SettingsError, match=message):
        export(tables, ["huggingface", *JSON], tmp_path, overwrite=True)
    assert files_of(tmp_path) == before, "nothing is written, not even the format whose target is free"


@pytest.mark.parametrize(
    ("formats", "below", "error", "message"),
    [
        (["huggingface", "release-jsn"], "out", SettingsError, "Did you mean 'release-json'"),
        ([], "out", SettingsError, "huggingface, release-json"),
        (JSON, "file/out", WorkspaceError, "could not be written"),
    ],
)
def test_what_cannot_be_written_is_one_clear_error(tables, tmp_path, formats, below, error, message):
    (tmp_path / "file").write_text("")
    with pytest.raises(error, match=message):
        export(tables, formats, tmp_path / below)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_of_several_formats_all_that_can_be_written_are(tables, tmp_path):
    absent = tmp_path / "absent"
    with pytest.raises(InputError, match="absent holds no results") as alone:
        export(tables, ["huggingface"], tmp_path / "out", benchmark=absent)
    with pytest.raises(InputError) as later:
        export(tables, ["csv", "huggingface", *JSON], tmp_path / "out", benchmark=absent)
    where = f"huggingface was not written to {tmp_path / 'out'}. Written: csv, release-json."
    assert str(later.value) == f"{alone.value} {where}"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["csv", "release-json"]


def test_an_earlier_export_is_replaced_only_when_asked_and_without_a_users_file(tables, tmp_path):
    export(tables, JSON, tmp_path)
    before, notes = files_of(tmp_path), tmp_path / "release-json" / "notes.md"
    with pytest.raises(SettingsError, match="--overwrite"):
        export(tables, JSON, tmp_path, paper_keys=True)
    assert files_of(tmp_path) == before
    notes.write_text("mine")
    with pytest.raises(SettingsError, match=r"notes\.md"):
        export(tables, JSON, tmp_path, overwrite=True)
    assert notes.read_text() == "mine"
    notes.unlink()
    export(tables, JSON, tmp_path, paper_keys=True, overwrite=True)
    assert b"gemma-3-1b" in (tmp_path / "release-json" / "train.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == JSON


@pytest.mark.parametrize("place", [(release_json, "_write_corpus"), (Path, "rename")], ids=lambda place: place[1])
def test_a_failing_export_or_rename_leaves_the_earlier_one(tables, tmp_path, monkeypatch, place):
    export(tables, JSON, tmp_path)
    before, real = files_of(tmp_path), getattr(*place)

    def full(one, *more):
        if isinstance(one, Path) and not one.name.endswith(".partial"):
            return real(one, *more)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*place, full)
    with pytest.raises(WorkspaceError, match=r"No space left on device.*unchanged"):
        export(tables, JSON, tmp_path, overwrite=True)
    assert files_of(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == JSON


def test_killed_between_the_two_renames_the_earlier_one_comes_back(tables, tmp_path):
    export(tables, JSON, tmp_path)
    (tmp_path / "release-json").rename(tmp_path / ".release-json.replaced")
    with pytest.raises(SettingsError, match="already holds"):
        export(tables, JSON, tmp_path, paper_keys=True)
    assert verify(tmp_path / "release-json")


def test_killed_in_the_second_of_two_formats_the_first_one_stays_as_it_is(tables, tmp_path):
    export(tables, ["beir"], tmp_path)  # as far as a run of two formats got
    first = (tmp_path / "beir").stat().st_ino
    manifests = export(tables, ["beir", "trec"], tmp_path)
    assert [one.format for one in manifests] == ["beir", "trec"] and (tmp_path / "beir").stat().st_ino == first


def test_a_killed_export_leaves_no_complete_looking_folder(tables, tmp_path):
    export(tables, JSON, tmp_path)
    small.freeze(tmp_path / "v1", small.rows())
    arguments = ("export", "-w", tmp_path / "v1", "-f", "release-json", "--out", tmp_path, "--overwrite")
    with killed_at("quit.export.release_json", "_write_corpus", tmp_path, *arguments):
        # A second export meanwhile must not take the first one's folder for a ruin.
        [partial] = tmp_path.glob(".release-json.*.partial")
        assert (partial / "train.json").exists()
        export(tables, JSON, tmp_path, overwrite=True)
        assert partial.exists()
    assert not list(tmp_path.rglob(".*/manifest.json")) and verify(tmp_path / "release-json").files
    # The lock goes with the process, not quite at once.
    until(lambda: export(tables, JSON, tmp_path, overwrite=True) and not partial.exists())
    assert {path.name for path in tmp_path.iterdir()} == {*JSON, "v1", "running"}, "the ruin is gone"
