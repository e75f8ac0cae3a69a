"""``quit models`` and ``quit cache``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quit.engine.planning import check_buildable
from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.models.generation import Completion, GenerationCache
from quit.models.generation.cache import Entry
from quit.settings import load
from quit.settings.loading import STARTING, starting_profile
from tests.paths import ROOT
from tests.running import call_quit
from tests.servers.builds import AT_S, served, write_profile
from tests.servers.rude import Fault, RudeServer, failure

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def server() -> Iterator[str]:
    """The address of an OpenAI-compatible server that has the model ``tiny`` and nothing else."""

    with RudeServer() as served:
        served.models = Fault(body=b'{"data": [{"id": "tiny"}]}')
        yield served.base_url


def _profile(folder: Path, url: str, model: str = "tiny") -> Path:
    return write_profile(folder / "own.toml", served(url, "r", reader={"model": model}))


def test_the_commands_that_start_servers_are_printed(tmp_path: Path) -> None:
    urls = [f"http://127.0.0.1:{port}/v1" for port in (8123, 8124)]
    for flavour in ("vllm", "openai"):
        server = {"flavour": flavour, "concurrency": 7, "base_urls": urls}
        write_profile(tmp_path / f"{flavour}.toml", served("", "r", reader={"model": "org/some model"}, server=server))
    heading, *commands = call_quit("models", "serve", "--profile", tmp_path / "vllm.toml").out.splitlines()
    assert heading == "# r" and "Not known here: your GPUs" in commands[2]
    for port, command in zip((8123, 8124), commands, strict=False):
        assert command.startswith("vllm serve 'org/some model' ") and " --max-num-seqs 7 " in command
        assert f" --host 127.0.0.1 --port {port} " in command
    assert "needs no server" in call_quit("models", "serve", "--profile", "embedded").out
    others = call_quit("models", "serve", "--profile", tmp_path / "openai.toml")
    assert others.out == f"# r\n# not ours to start: {', '.join(urls)}\n"


def test_servers_are_checked(tmp_path: Path, server: str) -> None:
    assert "server of r" in call_quit("doctor", "--profile", _profile(tmp_path, server)).out
    other = call_quit("doctor", "--profile", _profile(tmp_path, server, "large"), code=1)
    assert f"fault server of r: {server} serves tiny, not large" in other.out
    build = {"profile": str(_profile(tmp_path, "http://127.0.0.1:9/v1")), "overrides": [], "sources": []}
    Workspace.create(tmp_path / "W").set_build(build)
    for which in (("--profile", build["profile"]), ("-w", tmp_path / "W")):  # a workspace's own is that of its build
        assert "does not answer" in call_quit("doctor", *which, code=1).out


SERVER = {"flavour": "openai", "batch": True, "concurrency": 1}
TRIED = {"reader": {"price_prompt": 2}, "server": SERVER, "judge": {"name": "j", **AT_S}}


def _reply(payload: Any) -> str:
    return "Yes, it is." if "Yes" in json.dumps(payload["messages"]) else "**Answer:** Lesotho"


def test_each_model_is_tried_once(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 500_000, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}
    with RudeServer(lambda number, payload: Fault(usage=usage), _reply) as server:
        thinks = {"thinking": "drop", "thinking_tokens": 100}
        tried = {role: {**TRIED[role], **thinks} for role in ("reader", "judge")}
        write_profile(tmp_path / "tried.toml", served(server.base_url, "r", server=SERVER, **tried))
        reader, judge = call_quit("models", "try", "-p", "tried.toml", "--json").json()
        shown = call_quit("models", "try", "-p", "tried.toml").out
    sent, asked = (request["messages"] for request in server.answered[:2])
    assert reader == {
        "model": "r", "role": "reader", "messages": sent, "reply": "**Answer:** Lesotho", "read_as": "Lesotho",
        "requests": 1, "prompt_tokens": 500_000, "completion_tokens": 9, "thought_tokens": 4, "cost": 1.0,
    }  # fmt: skip
    assert "completely surrounded by South Africa" in sent[-1]["content"] and "conical straw hat" in sent[-1]["content"]
    assert (judge["messages"], judge["reply"], judge["read_as"], judge["cost"]) == (asked, "Yes, it is.", "Yes", None)
    assert "r (reader)\n" in shown and "  read as: Lesotho\n" in shown and "  cost: 1.0\n" in shown
    assert "  cost: unknown without prices\n" in shown
    assert len(server.answered) == 4, "nothing is kept"
    assert "No replies yet." in call_quit("cache", "stats").out


@pytest.mark.parametrize(("faults", "reply"), [([], ""), ([failure(500)], "Yes"), ([], "Perhaps")])
def test_a_trial_counts_every_request(faults: list, reply: str, tmp_path: Path) -> None:
    with RudeServer(faults, lambda payload: reply) as server:
        write_profile(tmp_path / "tried.toml", served(server.base_url, "r", **TRIED))
        tried = call_quit("models", "try", "-p", "tried.toml", "--json").json()
    assert sum(row["requests"] for row in tried) == len(server.requests) > 2


def test_a_model_that_fails_is_told_beside_the_others(tmp_path: Path) -> None:
    with RudeServer([failure(401)], _reply) as server:
        write_profile(tmp_path / "tried.toml", served(server.base_url, "r", **TRIED))
        tried = call_quit("models", "try", "-p", "tried.toml", code=1)
    assert "refuses the API key of r (HTTP 401" in tried.out and "  read as: Yes\n" in tried.out
    assert call_quit("models", "try", "-p", "embedded").out == "Profile embedded asks no language model.\n"


KINDS = sorted(path.stem for path in STARTING.glob("*.toml"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_printed_profile_has_model_and_address(kind: str) -> None:
    printed = call_quit("models", "profile", kind, "--model", "org/My_Model:1b", "--url", "http://127.0.0.1:9/v1")
    Path("printed.toml").write_text(printed.out)
    settings = {row["key"]: row["value"] for row in call_quit("settings", "-p", "printed.toml", "--json").json()}
    assert (settings["readers.0.name"], settings["readers.0.model"]) == ("my-model-1b", "org/My_Model:1b")
    assert settings["servers.0.base_urls"] == ["http://127.0.0.1:9/v1"]
    check_buildable(load("printed.toml").settings)


def test_a_profile_for_something_else_is_refused() -> None:
    refused = call_quit("models", "profile", "mistral", "--model", "m", code=SettingsError.exit_code)
    assert f"Name one of {', '.join(KINDS)}." in refused.err
    assert all(kind in call_quit("models", "profile", "--help").out for kind in KINDS)


def test_the_recipe_for_openai_is_the_printed_profile() -> None:
    page = (ROOT / "docs" / "howto" / "language-models.md").read_text(encoding="utf-8")
    recipe = page.partition("\n### OpenAI\n")[2].partition("```toml\n")[2].partition("```")[0]
    assert starting_profile("openai", "gpt-4o-mini-2024-07-18") == recipe


def test_replies_are_dropped_by_model_and_server() -> None:
    here, there = "http://a/v1", "http://b/v1"
    ours = [("chat/m:1b", f"{here} root=x"), ("chat/m:1b+0f0f0f0f", here)]
    replies = [*ours, ("chat/m:1b", there), ("transformers/m", "")]
    with GenerationCache() as cache:
        for number, (model, origin) in enumerate(replies):
            reply = Completion("x", "stop", origin=origin)
            cache.add(Entry(number.to_bytes(32, "big"), model, "p", "", 0, reply)).result()
    for wrong in (["m:1"], ["m:1b", "--from", "http://c/v1"]):
        call_quit("cache", "drop", *wrong, code=SettingsError.exit_code)
    steps = ((["m:1b", "--from", f"{here}/"], 2), (["chat/m:1b"], 3), (["m"], 4))
    for chosen, gone in steps:
        call_quit("cache", "drop", *chosen)
        rows = call_quit("cache", "stats", "--json").json()["models"]
        assert sorted((row["model"], row["origin"]) for row in rows) == sorted(replies[gone:])
