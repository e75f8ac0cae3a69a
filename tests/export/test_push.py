"""Publishing with the real huggingface_hub, against a server of this machine."""

import shutil

import pytest

from quit.errors import InputError, ServerError, SettingsError
from quit.export import export
from quit.export.push import Published, Target, published_files, push
from quit.settings.card import Card
from tests.comparing import files_of
from tests.export.conftest import make_tables
from tests.export.hub import TOKEN, hub
from tests.servers.serving import serving

FORMAT = "huggingface"
WRONG = "hf_wrong0123456789abcdef"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with hub() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


def test_the_export_and_no_more_is_published_privately_and_replaces_its_own_files(folder, server, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "huggingface")
    (copy / "notes.txt").write_text("not ours")
    assert push(copy, Target("org/data")) == Published(f"{server.address}/datasets/org/data", public=False)
    assert server.repositories == {"org/data": {"private": True, "files": files_of(folder), "tags": {}}}
    assert dict(published_files(folder)) == {name: len(data) for name, data in files_of(folder).items()}
    old = {"passages/train-00001-of-00002.parquet": b"old", "passages/notes.txt": b"theirs"}
    server.repositories["org/data"]["files"] |= old
    push(folder, Target("org/data"))  # shards that are gone are deleted, and nothing else
    assert server.repositories["org/data"]["files"] == {**files_of(folder), "passages/notes.txt": b"theirs"}


def test_nothing_goes_to_a_public_repository_unless_that_is_asked_for(folder, server):
    server.repositories["org/data"] = {"private": False, "files": {}}
    with pytest.raises(SettingsError, match="exists and is public: pass public"):
        push(folder, Target("org/data"))
    assert server.repositories["org/data"]["files"] == {}
    for name in ("org/data", "org/new"):
        push(folder, Target(name, public=True))
        assert server.repositories[name] == {"private": False, "files": files_of(folder), "tags": {}}


def test_a_release_is_a_tag_that_never_moves(folder, tables, server, tmp_path):
    export(tables, [FORMAT], tmp_path, card=Card(name="Another card"))
    first, other = files_of(folder), files_of(tmp_path / FORMAT)
    assert first["README.md"] != other["README.md"]
    there = server.repositories
    for one, tag, tags in (
        (folder, "v1", {"v1": first}),
        (tmp_path / FORMAT, "v1", {"v1": first}),  # the same data under another card
        (tmp_path / FORMAT, "v2", {"v1": first, "v2": other}),
        (folder, "", {"v1": first, "v2": other}),  # no release
    ):
        push(one, Target("org/data", tag=tag))
        assert there["org/data"]["tags"] == tags and there["org/data"]["files"] == files_of(one)
    export(make_tables({"q1": "train", "q2": "test"}), [FORMAT], tmp_path / "new")
    with pytest.raises(SettingsError, match="tag v1 of other data, so nothing was .*hf repos tag delete org/data v1"):
        push(tmp_path / "new" / FORMAT, Target("org/data", tag="v1"))
    assert there["org/data"]["files"] == first and there["org/data"]["tags"]["v1"] == first


@pytest.mark.parametrize("manifest", [None, b"{}", b'{"made_by": "another program", "files": []}'])
def test_files_of_others_are_not_overwritten(folder, server, manifest):
    theirs = {"README.md": b"theirs", "passages/train-00000-of-00001.parquet": b"theirs"}
    theirs |= {"manifest.json": manifest} if manifest else {}
    server.repositories["org/data"] = {"private": True, "files": dict(theirs)}
    with pytest.raises(SettingsError, match="has files, but no manifest.json of QUIT builder.*Choose another name"):
        push(folder, Target("org/data"))
    assert server.repositories["org/data"]["files"] == theirs
    server.repositories["org/empty"] = {"private": True, "files": {".gitattributes": b"*.parquet filter=lfs"}}
    push(folder, Target("org/empty"))
    assert server.repositories["org/empty"]["files"].keys() == {".gitattributes", *files_of(folder)}


@pytest.mark.parametrize(
    ("target", "variables", "failing", "error", "message"),
    [
        ("org/data", {"HF_TOKEN": ""}, 0, SettingsError, "HF_TOKEN is not set"),
        ("org/data", {"HF_TOKEN": "  "}, 0, SettingsError, "HF_TOKEN is not set"),
        ("org/data", {"HF_TOKEN": WRONG}, 0, SettingsError, r"org/data \(401\): it refused the token"),
        ("closed/data", {}, 0, SettingsError, r"closed/data \(403\): the token in HF_TOKEN may not write there"),
        ("org/data", {}, 500, ServerError, r"\(500\)"),
        ("org/data", {"HF_ENDPOINT": "http://127.0.0.1:9"}, 0, ServerError, "could not be reached"),
    ],
)
def test_what_the_hub_refuses_is_told_without_the_token(
    folder, server, monkeypatch, target, variables, failing, error, message
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    server.failing = failing
    with pytest.raises(error, match=message) as caught:
        push(folder, Target(target))
    assert TOKEN not in str(caught.value) and WRONG not in str(caught.value)
    assert not server.asked or variables.get("HF_TOKEN", TOKEN).strip(), "without a token nothing is asked"


def test_a_page_in_the_hubs_place_is_one_line(folder, server, monkeypatch) -> None:
    with serving(lambda *_: (200, b"<html>Sign in</html>", {})) as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        with pytest.raises(SettingsError, match=f"{url} answered with a page"):
            push(folder, Target("org/data"))


@pytest.mark.parametrize(
    ("failing_at", "said"), [("/refs", "before is unchanged"), ("/tag/", "may be there, without the tag")]
)
def test_what_ends_half_way_says_what_is_there_and_is_made_whole_by_another_run(folder, server, failing_at, said):
    server.failing, server.failing_at = 500, failing_at
    with pytest.raises(ServerError, match=rf"\(500\).*{said}.*; run it again"):
        push(folder, Target("org/data", tag="v1"))
    assert server.repositories["org/data"]["files"] == (files_of(folder) if failing_at == "/tag/" else {})
    server.failing = 0
    push(folder, Target("org/data", tag="v1"))
    assert server.repositories["org/data"]["tags"] == {"v1": files_of(folder)}


def test_a_push_that_is_cut_off_between_two_commits_is_made_whole_by_another(folder, server, monkeypatch):
    monkeypatch.setattr("huggingface_hub._upload_pipeline.COMMIT_SIZE_SCALE", [2])
    monkeypatch.setattr("huggingface_hub._upload_pipeline.INITIAL_COMMIT_SIZE_INDEX", 0)
    server.failing, server.failing_at, server.failing_after = 403, "/commit/", 2
    with pytest.raises(SettingsError, match=r"\(403\)"):
        push(folder, Target("org/data"))
    assert 0 < len(server.repositories["org/data"]["files"]) < len(files_of(folder))
    server.failing = 0
    push(folder, Target("org/data"))
    assert server.repositories["org/data"]["files"] == files_of(folder)


def test_a_push_in_between_is_not_mixed_with_this_one(folder, server) -> None:
    push(folder, Target("org/data"))
    before = dict(server.repositories["org/data"]["files"])
    server.head = "2" * 40
    with pytest.raises(SettingsError, match=r"\(412\): another push came in between. Run it again"):
        push(folder, Target("org/data", tag="v1"))
    assert server.repositories["org/data"]["files"] == before and not server.repositories["org/data"]["tags"]


def test_a_changed_file_is_not_published(folder, server, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "huggingface")
    with (copy / "README.md").open("a") as card:
        card.write("changed")
    with pytest.raises(InputError, match=r"README\.md .* was changed"):
        push(copy, Target("org/data"))
    assert server.asked == []


@pytest.mark.parametrize(
    "name", ["data", "org/", "org/a b", "org/a--b", "org/a/b", "../data", "org/x.git", "o" * 99 + "/x"]
)
def test_a_repository_needs_owner_and_name(name):
    with pytest.raises(SettingsError, match="write ORG/NAME"):
        Target(name)


def test_what_is_behind_a_link_is_not_published(folder, server, tmp_path):
    file = next(path for path in folder.rglob("*.parquet"))
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    for publish in (published_files, lambda folder: push(folder, Target("org/name"))):
        with pytest.raises(InputError, match=f"{file} is a link: files outside the export would be published"):
            publish(folder)
