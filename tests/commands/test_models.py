"""``quit models`` and ``quit cache``."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quit.models.generation import Completion, GenerationCache
from quit.models.generation.cache import Entry
from tests.servers.rude import Fault, RudeServer


@pytest.fixture
def server() -> Iterator[str]:
    """The address of an OpenAI-compatible server that has the model ``tiny`` and nothing else."""

    with RudeServer() as served:
        served.models = Fault(body=b'{"data": [{"id": "tiny"}]}')
        yield served.base_url


def _profile(folder: Path, url: str, model: str = "tiny", flavour: str = "vllm") -> Path:
    path = folder / "own.toml"
    path.write_text(
        f'[[servers]]\nname = "s"\nflavour = "{flavour}"\nbase_urls = ["{url}"]\nconcurrency = 7\n'
        f'[[readers]]\nname = "r"\nrole = "labeler"\nkind = "server"\nserver = "s"\nmodel = "{model}"\n'
    )
    return path


def test_the_commands_that_start_servers_are_printed(call, tmp_path: Path) -> None:
    profile = _profile(tmp_path, "http://127.0.0.1:8123/v1", "org/some model")
    shown = call("models", "serve", "--profile", profile)
    assert shown.code == 0
    heading, command, *plans = shown.out.splitlines()
    assert heading == "# r" and command.startswith("CUDA_VISIBLE_DEVICES=0 vllm serve ")
    assert command.endswith(" --gpu-memory-utilization 0.9")  # it has the GPU to itself
    assert [line for line in plans if "GPU" in line.partition(",")[0]][1:] == [
        "# 1 GPU, together: r on 0 (0.90)",
        "# 2 GPUs, together: r on 0 (0.90)",
        "# 8 GPUs, together: r on 0 (0.90)",
    ]
    for part in ("vllm serve 'org/some model' ", " --host 127.0.0.1 --port 8123 ", " --max-num-seqs 7 "):
        assert part in command
    assert "needs no server" in call("models", "serve", "--profile", "embedded").out
    others = call("models", "serve", "--profile", _profile(tmp_path, "http://127.0.0.1:8123/v1", flavour="openai"))
    assert others.out == "# r\n# not ours to start: http://127.0.0.1:8123/v1\n"
    failed = call("models", "serve", "--profile", profile, "--start", "q")
    assert failed.code == 4 and "used by 'q'" in failed.err


def test_the_command_that_is_started_is_the_one_that_is_printed(call, tmp_path: Path, monkeypatch) -> None:
    profile = _profile(tmp_path, "http://127.0.0.1:8123/v1")
    printed = call("models", "serve", "--profile", profile).out.splitlines()[1]
    started: list[list[str]] = []

    def instead(program: str, arguments: tuple[str, ...]) -> None:
        started.append([os.environ["CUDA_VISIBLE_DEVICES"], program, *arguments])
        raise FileNotFoundError

    monkeypatch.setattr("os.execvp", instead)
    failed = call("models", "serve", "--profile", profile, "--start", "r")
    assert failed.code == 4 and "no program `vllm`" in failed.err
    assert started == [["0", "vllm", *printed.split()[1:]]]


def test_servers_are_checked(call, tmp_path: Path, server: str) -> None:
    assert "server of r" in call("doctor", "--profile", _profile(tmp_path, server)).out
    other = call("doctor", "--profile", _profile(tmp_path, server, "large"))
    assert other.code == 1 and f"fault server of r: {server} serves tiny, not large" in other.out
    down = call("doctor", "--profile", _profile(tmp_path, "http://127.0.0.1:9/v1"))
    assert down.code == 1 and "does not answer" in down.out


def test_replies_move_from_one_cache_to_another(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = {n.to_bytes(32, "big"): Completion(f"reply {n}", "stop", 10, 2) for n in (1, 2)}
    assert "No replies yet." in call("cache", "stats").out
    with GenerationCache() as cache:
        for key, reply in replies.items():
            cache.add(Entry(key, "model", "probe", "q", 0, reply)).result()
    [row] = call("cache", "stats", "--json").json()["models"]
    assert (row["model"], row["replies"], row["prompt_tokens"], row["completion_tokens"]) == ("model", 2, 20, 4)
    assert "2 replies written" in call("cache", "export", tmp_path / "replies.jsonl").out
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "another"))
    assert call("cache", "import", tmp_path / "replies.jsonl").out == "2 replies added, 0 were there already\n"
    assert call("cache", "import", tmp_path / "replies.jsonl").out == "0 replies added, 2 were there already\n"
    with GenerationCache() as cache:
        assert cache.find([*replies]) == replies
    failed = call("cache", "import", tmp_path / "absent.jsonl")
    assert failed.code == 3 and "absent.jsonl" in failed.err
