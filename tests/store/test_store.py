"""Stores: whole objects or none, created once, and faults told for what they are."""

import errno
import os
import sys
import time
import uuid
from functools import partial
from pathlib import Path

import pytest

from quit.errors import ServerError, SettingsError, WorkspaceError
from quit.release.remote import fetched_release
from quit.settings.settings import Remote
from quit.store import open_store
from quit.store.faults import endpoint
from quit.store.objects import open_objects
from quit.store.remote import copy_folder
from tests.running import call_quit, run_process, together
from tests.servers.ports import free_port


def test_objects_come_back_as_they_were(place: str, tmp_path: Path) -> None:
    store = open_objects(place + "/")
    assert store.url == place and store.listing() == {} and store.read("a/b") is None
    store.write("a/b", b"123")
    (tmp_path / "file").write_bytes(b"4567")
    store.write("a/c", tmp_path / "file")
    assert store.listing() == {"a/b": 3, "a/c": 4} and store.listing("a") == store.listing()
    assert store.fetch("a/b", tmp_path / "fetched") and (tmp_path / "fetched").read_bytes() == b"123"
    assert not store.fetch("a/d", tmp_path / "nothing")
    assert not store.create("a/b", b"other") and store.create("a/b", b"123")  # a repeated request meets its own object
    assert store.read("a/b") == b"123"
    store.delete(["a/b", "a/b", "never"])
    assert store.listing() == {"a/c": 4}
    assert open_objects(place.removesuffix("/W")).listing() == {"W/a/c": 4}


def test_an_object_whose_name_leads_out_of_the_copy_is_refused(machine, tmp_path: Path) -> None:
    machine("here")
    url = f"memory://{uuid.uuid4().hex}/v1"
    store, outside = open_objects(url), tmp_path / "outside" / "file"
    outside.parent.mkdir()
    store.write("release.json", b"{}")
    up = "/".join([".."] * len(copy_folder(store).parts))
    store.write(f"{up}{outside}", b"hostile")
    with pytest.raises(WorkspaceError, match="leads elsewhere"):
        fetched_release(url)
    assert not outside.exists()


def test_a_store_that_keeps_silent_is_named_once_a_minute(place: str, monkeypatch, capsys) -> None:
    store = open_objects(place, Remote(attempts=3))
    store.write("a", b"123")
    monkeypatch.setattr("quit.store.objects._SAY_SECONDS", 0.05)
    slow = store._files.cat_file
    monkeypatch.setattr(store._files, "cat_file", lambda path: (time.sleep(0.3), slow(path))[1])
    assert store.read("a") == store.read("a") == b"123"
    said = f"{place}: a request to read it has no whole reply within 0.05 s."
    assert capsys.readouterr().err.splitlines() == [f"{said} After 60 s without data it is sent again (3 attempts)."]


@pytest.mark.parametrize("kind", ["folder", "memory", "file"])
def test_a_folder_and_a_shared_store_keep_the_same_promises(kind: str, machine, tmp_path: Path) -> None:
    shared = {"memory": f"memory://{uuid.uuid4().hex}/W", "file": f"file://{tmp_path}/shared/W"}
    url = shared.get(kind, f"{tmp_path}/W")
    store = open_store(url)
    names = ("state.json", "tables/02_filter/f/a/p", "reviews/part-00001.parquet")
    small, part, log = (store.path / name for name in names)
    assert not list(store.below(store.path)) and store.holder() is None and store.address == url
    for text in ("1", "2"):
        store.write(small, lambda path, text=text: path.write_text(f'{{"a": "{text}"}}'))
    store.add(part, lambda path: path.write_text("part"))
    assert store.create(log, lambda path: path.write_text("first"))
    assert not store.create(log, lambda path: path.write_text("second"))
    with store.changing(store.path / "usage.jsonl") as path, path.open("a") as file:
        file.write("line")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "release.json").write_text("release")
    (store.path / "releases").mkdir(parents=True)
    store.add_folder(tmp_path / "made", store.path / "releases" / "v1", "release.json")
    machine("second")
    there = open_store(url)
    contents = {'{"a": "2"}', "part", "first", "line", "release"}
    paths = dict.fromkeys(path for path, _ in there.below(there.path))
    there.fetch(paths)
    assert {path.read_text() for path in paths} == contents
    with pytest.raises(WorkspaceError, match="is missing"):
        there.fetch({there.path / "tables" / "nothing": None})
    with there.lock(10, lambda _: None):
        assert there.holder()["pid"] == os.getpid()
        there.remove([there.path / part.relative_to(store.path), there.path / "never"])
    assert store.holder() is None and not store.has(part, now=True)


def test_of_many_who_create_one_object_exactly_one_is_told_so(place: str) -> None:
    created: dict[bytes, bool] = {}

    def work(value: bytes) -> None:
        created[value] = open_objects(place).create("one", value)

    together(*(partial(work, b"%d" % number) for number in range(8)))
    [winner] = [value for value, won in created.items() if won]
    assert open_objects(place).read("one") == winner and len(created) == 8


def test_a_shared_folder_never_shows_half_a_file(tmp_path: Path) -> None:
    store = open_objects(f"file://{tmp_path}/shared")
    store.write("a", b"x" * 10)
    (tmp_path / "shared" / ".a.1234.tmp").write_bytes(b"half")
    assert store.listing() == {"a": 10}
    with pytest.raises(Exception, match="missing"):
        store.write("b", tmp_path / "missing")
    assert store.listing() == {"a": 10}


def test_a_file_system_without_hard_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)  # as exFAT does
    with pytest.raises(WorkspaceError, match="no hard links"):
        open_objects(f"file://{tmp_path}/shared").create("a", b"1")
    assert open_objects(f"file://{tmp_path}/shared").listing() == {}


OTHER_TOOLS = ("export --out", "report --out", "release create --name v1 --out", "workspace backup -w W",
               "benchmark run --release v1 --out", "index build -c C --out", "workspace restore b.tar -w")  # fmt: skip


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("status -w s3://", "names no bucket"),
        ("status -w s4://bucket/x", "'s3'"),
        ("status -w https://example.org/x", "not a known store"),
        ("status -w s3://me:secret@bucket/x", "s3://bucket/x: a URL must hold no credentials"),
        ("status -w file://shared/x", "file:///srv/shared/quit"),
        *((f"{command} s3://bucket/x", "to a folder of this machine. Name one,") for command in OTHER_TOOLS),
    ],
)
def test_a_url_that_is_none_or_no_place_for_other_tools_is_one_clear_line(command: str, message: str) -> None:
    result = call_quit(*command.split(), code=3 if "restore" in command else 4)
    assert message in result.err and result.err.count("\n") == 1 and "secret" not in result.err
    assert not Path("s3:").exists()


def test_a_missing_package_is_named() -> None:
    code = "import sys; sys.modules['s3fs'] = None; from quit.cli import main; main(['status', '-w', 's3://bucket/x'])"
    result = run_process(sys.executable, "-c", code, code=5)
    assert result.err.count("\n") == 1
    assert "pip install -c constraints.txt -e '.[object-store]'" in result.err


def test_an_unreachable_endpoint_is_a_server_to_try_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://me:secret@store.example:9000/s3/")
    assert endpoint() == "https://store.example:9000/s3"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "identity")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    store = open_objects("s3://bucket/x")
    store.use(Remote(attempts=1))
    assert store._files.config_kwargs["retries"]["max_attempts"] == 1  # the settings of a run reach the client
    with pytest.raises(ServerError, match="AWS_ENDPOINT_URL") as error:
        store.listing()
    assert error.value.retryable and "hush" not in str(error.value)


def test_missing_credentials_are_told_with_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(SettingsError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"):
        open_objects("s3://bucket/x", Remote(attempts=1)).listing()
