"""The support bundle: useful, and without a secret, a name or a text of the dataset."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest

from quit.common.secrets import anonymous
from quit.errors import InputError
from quit.operations.support import bundle
from tests.report import tiny


def _texts(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_no_secret_no_name_and_no_text_of_the_dataset(tmp_path, monkeypatch) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    server = workspace.path / "reviews" / "server"
    server.mkdir(parents=True)
    (server / "account.json").write_text('{"token": "tok-in-a-file-123456"}')
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "tok-in-the-environment")
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv")
    monkeypatch.setenv("PREFECT_API_URL", "http://someone:hunter22@prefect.example/api")
    (workspace.path / "usage.jsonl").write_text('{"run": "read", "model": "m", "note": "tok-in-the-environment"}\n')
    names = bundle(tmp_path / "b.zip", workspace.path, "embedded")
    texts = _texts(tmp_path / "b.zip")
    assert list(texts) == names
    everything = "\n".join(texts.values())
    for secret in ("tok-in-", "hf_abc", "hunter22", "someone", "ada@x.org", "bob@x.org", "Picasso", "evil.example"):
        assert secret not in everything, secret
    assert str(Path.home()) + "/" not in everything
    assert json.loads(texts["environment.json"])["LABEL_STUDIO_API_KEY"] == "set"
    assert stat.S_IMODE((tmp_path / "b.zip").stat().st_mode) == 0o600


def test_it_tells_what_helpers_ask_for(tmp_path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    bundle(tmp_path / "b.zip", workspace.path, "embedded")
    texts = _texts(tmp_path / "b.zip")
    facts = json.loads(texts["workspace.json"])
    assert {stage["run"]: stage["state"] for stage in facts["stages"]}["label"] == "complete"
    assert facts["damaged"] == []
    assert facts["size"]["tables"]["files"] > 10
    assert json.loads(texts["versions.json"])["packages"]["duckdb"]
    settings = {row["key"]: row["value"] for row in json.loads(texts["settings.json"])}
    assert settings["convergence.hints"] == 5
    assert settings["labels.max_new_tokens"]


def test_a_broken_workspace_is_told_of_in_its_place(tmp_path) -> None:
    (tmp_path / "W").mkdir()
    (tmp_path / "W" / "workspace.json").write_text("{")
    bundle(tmp_path / "b.zip", tmp_path / "W", "no-such-profile")
    texts = _texts(tmp_path / "b.zip")
    assert "cannot be read" in json.loads(texts["workspace.json"])["fault"]
    assert "fault" in json.loads(texts["settings.json"])
    with pytest.raises(InputError, match="exists"):
        bundle(tmp_path / "b.zip", None, "embedded")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x s3cr3t-value y", "x (MY_TOKEN) y"),
        ("http://me:pw@host/x", "http://host/x"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: [secret]"),
        ("mail to ann.other+x@uni.example.org now", "mail to [e-mail] now"),
        ("/home/ann/data", "~/data"),
        ("model a/b, 12 tokens", "model a/b, 12 tokens"),
    ],
)
def test_what_is_struck_out(text, wanted, monkeypatch) -> None:
    held = {"MY_TOKEN": "s3cr3t-value", "SHORT_KEY": "a", "HOME": "/home/ann", "PATH": "model"}
    monkeypatch.setattr("os.environ", held)
    assert anonymous(text) == wanted
