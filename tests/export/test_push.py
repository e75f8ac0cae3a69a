"""Publishing with the real huggingface_hub, against a server of this machine."""

import pytest

from quit.errors import InputError, ServerError, SettingsError
from quit.export import export
from quit.export.push import Published, Target, published_files, push
from tests.comparing import files_of
from tests.export.hub import TOKEN, hub


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("push")
    export(tables, ["huggingface"], out)
    return out / "huggingface"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with hub() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


def test_the_whole_export_is_published_privately(folder, server):
    (folder / "notes.txt").write_text("not ours")
    try:
        assert push(folder, Target("org/data")) == Published(f"{server.address}/datasets/org/data", public=False)
    finally:
        (folder / "notes.txt").unlink()
    assert server.repositories == {"org/data": {"private": True, "files": files_of(folder)}}
    assert dict(published_files(folder)) == {name: len(data) for name, data in files_of(folder).items()}


def test_a_second_upload_deletes_shards_that_are_gone_and_nothing_else(folder, server):
    push(folder, Target("org/data"))
    old = {"passages/train-00001-of-00002.parquet": b"old", "passages/notes.txt": b"theirs"}
    server.repositories["org/data"]["files"] |= old
    push(folder, Target("org/data"))
    assert server.repositories["org/data"]["files"] == {**files_of(folder), "passages/notes.txt": b"theirs"}


def test_nothing_goes_to_a_public_repository_unless_that_is_asked_for(folder, server):
    server.repositories["org/data"] = {"private": False, "files": {}}
    with pytest.raises(SettingsError, match="exists and is public: pass public"):
        push(folder, Target("org/data"))
    assert server.repositories["org/data"]["files"] == {}
    push(folder, Target("org/data", public=True))
    push(folder, Target("org/new", public=True))
    assert server.repositories["org/new"]["private"] is False
    assert server.repositories["org/data"]["files"] == files_of(folder)


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


@pytest.mark.parametrize("value", ["", "  "])
def test_a_missing_token_is_named(folder, server, monkeypatch, value):
    monkeypatch.setenv("HF_TOKEN", value)
    with pytest.raises(SettingsError, match="HF_TOKEN is not set"):
        push(folder, Target("org/data"))
    assert server.asked == []


@pytest.mark.parametrize(
    ("target", "token", "failing", "error", "said"),
    [
        ("org/data", "hf_wrong0123456789abcdef", 0, SettingsError, r"org/data \(401\): it refused the token"),
        ("closed/data", TOKEN, 0, SettingsError, r"closed/data \(403\): the token in HF_TOKEN may not write there"),
        ("org/data", TOKEN, 500, ServerError, r"\(500\)"),
    ],
)
def test_what_the_hub_refuses_is_told_without_the_token(
    folder, server, monkeypatch, target, token, failing, error, said
):
    monkeypatch.setenv("HF_TOKEN", token)
    server.failing = failing
    with pytest.raises(error, match=said) as caught:
        push(folder, Target(target))
    assert token not in str(caught.value)


def test_a_server_that_is_not_there(folder, server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ServerError, match="could not be reached"):
        push(folder, Target("org/data"))


def test_a_changed_file_is_not_published(folder, server):
    card = folder / "README.md"
    text = card.read_text()
    card.write_text(text + "changed")
    try:
        with pytest.raises(InputError, match=r"README\.md .* was changed"):
            push(folder, Target("org/data"))
    finally:
        card.write_text(text)
    assert server.asked == []


@pytest.mark.parametrize(
    "name", ["data", "org/", "org/a b", "org/a--b", "org/a/b", "../data", "org/x.git", "o" * 99 + "/x"]
)
def test_a_repository_needs_owner_and_name(name):
    with pytest.raises(SettingsError, match="write ORG/NAME"):
        Target(name)
