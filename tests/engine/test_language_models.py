"""A build whose reader and judge are a language model on a real vLLM: killed, resumed, counted on the server's side.
What the model says is not asserted, only what the program makes of it."""

from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from tests.comparing import files_of
from tests.paths import starter_file
from tests.running import call_quit
from tests.servers.builds import AT_S, TWO_HINTS, kept_replies, kill_when, served, start_build, write_profile
from tests.servers.vllm import VllmServer

pytestmark = pytest.mark.slow
QUESTIONS = 2
PASSAGES = 4
"""Of a question: its ordered selections of two hints."""
REPETITIONS = 2


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return starter_file(tmp_path_factory.mktemp("source") / "two.jsonl", 1, 4, 2)


@pytest.fixture(scope="module")
def profile(real_model: VllmServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Concurrency 1: greedy replies of a real server can depend on what shares their batch.
    sections = {"probe": {"repetitions": REPETITIONS}, "labels": {"max_new_tokens": 10}, **TWO_HINTS}
    sections["run"] = {"shard_questions": 1, "workers": 1}
    sections["judge"] = {"name": "judge", **AT_S, "model": real_model.name, "constrained": True}
    more = {"reader": {"model": real_model.name}, "server": {"concurrency": 1}}
    profile = tmp_path_factory.mktemp("profile") / "smollm.toml"
    return write_profile(profile, served(real_model.base_url, "reader-a", **more, **sections))


@pytest.fixture(scope="module")
def interrupted(
    real_model: VllmServer, profile: Path, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, float]:
    """A build killed twice and then finished: (workspace, cache folder, requests the server answered)."""
    folder, cache = tmp_path_factory.mktemp("killed"), tmp_path_factory.mktemp("cache")
    workspace, log = folder / "W", folder / "W.log"
    before = real_model.metrics().get("request_success", 0.0)

    def answered() -> float:
        return real_model.metrics().get("request_success", 0.0) - before

    for after in (3, 8):  # of 12 replies of the reader
        process = start_build(workspace, profile, f"jsonl:{source}", cache)
        assert kill_when(process, lambda after=after: kept_replies(cache) >= after), log.read_text()
    process = start_build(workspace, profile, f"jsonl:{source}", cache)
    assert process.wait(timeout=900) == 0, log.read_text()
    return workspace, cache, answered()


def _build(workspace: Path, profile: Path, source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build in this process, with a generation cache of that folder."""
    monkeypatch.setenv("QUIT_CACHE", str(cache))
    call_quit("build", "-w", str(workspace), "-p", str(profile), "-s", f"jsonl:{source}")


def test_every_passage_is_answered_exactly_once_and_nothing_is_paid_for_twice(interrupted) -> None:
    workspace, cache, answered = interrupted
    opened = Workspace.open(workspace)
    passages, answers = opened.read("passages"), opened.read("answers")
    key = ["question_id", "permutation"]
    assert len(passages) == PASSAGES * QUESTIONS
    assert answers.select(key).equals(passages.select(key))
    replies = kept_replies(cache)
    assert replies >= PASSAGES * QUESTIONS + QUESTIONS * REPETITIONS
    # At concurrency 1 each kill can have one request in flight; every other request was answered once and kept.
    assert replies <= answered <= replies + 2


def test_a_disturbed_build_has_the_bytes_of_an_undisturbed_one_and_is_not_paid_again(
    interrupted, real_model, profile, source, tmp_path, monkeypatch
):
    _build(tmp_path / "W", profile, source, tmp_path / "cache", monkeypatch)
    assert files_of(tmp_path / "W" / "tables", "*.parquet") == files_of(interrupted[0] / "tables", "*.parquet")
    before = real_model.metrics()["request_success"]
    _build(tmp_path / "V", profile, source, interrupted[1], monkeypatch)
    assert real_model.metrics()["request_success"] == before
    assert files_of(tmp_path / "V" / "tables", "*.parquet") == files_of(interrupted[0] / "tables", "*.parquet")


def test_usage_and_plan_tell_what_it_took(interrupted, monkeypatch) -> None:
    workspace, cache, _ = interrupted
    monkeypatch.setenv("QUIT_CACHE", str(cache))
    status = call_quit("status", "-w", str(workspace), "--json").json()
    reader = status["language_models"]["reader-a"]
    assert reader["requests"] and reader["seconds"] > 0 and reader["prompt_tokens"] > 500 * reader["requests"]
    # The server says how much of each prompt its prefix cache had: all but the last hint and the question, mostly.
    assert reader["cached_tokens"] > 0.8 * reader["prompt_tokens"]
    plan = call_quit("plan", "-w", str(workspace), "--json").json()
    assert all(line["requests"] == 0 for line in plan["lines"]), "nothing is left to do"
    # With other labels to make from the same replies, the plan finds them in the cache.
    changed = call_quit("plan", "-w", str(workspace), "--set", "probe.repetitions=3", "--json")
    probe = next(line for line in changed.json()["lines"] if line["role"] == "probe")
    assert (probe["requests"], probe["cached"]) == (3 * QUESTIONS, REPETITIONS * QUESTIONS)
