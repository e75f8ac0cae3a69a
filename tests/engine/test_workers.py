"""What goes to other processes, what a worker checks before it works, and what it returns."""

import dataclasses
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quit import errors
from quit.common.ranges import WHOLE
from quit.engine import location, workers
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.engine.workers import Task, may_work_on, requests_task, run_task, stage_task
from quit.errors import QuitError, WorkspaceError
from quit.models.language_models import language_judge
from quit.models.prompting import PROMPTS
from quit.models.protocols import JudgeItem
from quit.settings import load
from quit.settings.runner import ray_address
from quit.stages.stage import Context, Tables
from tests.building import plan_build
from tests.comparing import files_of
from tests.paths import FEW, starter_file
from tests.servers.builds import served, write_profile
from tests.servers.checkpoints import checkpoint


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return starter_file(tmp_path / "few.jsonl", 3)


def _packed(pipeline: Pipeline, run: StageRun, work: Callable[..., Any]) -> Callable[..., Tables]:
    """Return what runs a stage's function as Ray does: the task and the result are pickled."""

    def carry_out(context: Context, *chosen: Any, **tables: pa.Table) -> Tables:
        task = pickle.dumps((stage_task(pipeline, run, context, chosen, tables), *context.whole.values()))
        return pickle.loads(pickle.dumps(work(*pickle.loads(task))))

    return carry_out


def _first_task(source: Path, folder: Path, *overrides: str, profile: str | Path = "embedded") -> Task:
    """Return the first task of a build: the filter's."""
    pipeline, tasks = plan_build(folder, *overrides, source=source, profile=profile), []
    pipeline.begin()
    collect, run = (pipeline.stage_run(name) for name in ("collect", "filter"))
    pipeline.run_shard(collect, WHOLE)
    pipeline.finish(collect)
    with pytest.raises(ZeroDivisionError):
        pipeline.run_shard(run, WHOLE, _packed(pipeline, run, lambda task: tasks.append(task) or 1 / 0))
    return tasks[0]


@pytest.mark.slow
def test_workers_that_get_tables_alone_give_the_same_bytes(few_source: Path, few_built: Path, tmp_path, monkeypatch):
    """... without workspace and sources: nothing of these can be opened while one works."""

    def work(*task: Any) -> Tables:
        with monkeypatch.context() as away:
            away.setattr(location.Location, "__init__", None)
            away.setattr("quit.sources.read_source", None)
            return run_task(*task)

    pipeline = plan_build(tmp_path / "W", "run.shards=3", source=few_source, profile=FEW)
    pipeline.begin()
    elsewhere = set()
    for run in pipeline.runs:
        for shard in pipeline.pending(run):
            away = may_work_on(run, pipeline.settings)
            elsewhere |= {run.stage.name} if away else set()
            pipeline.run_shard(run, shard, _packed(pipeline, run, work) if away else None)
        pipeline.finish(run)
    assert elsewhere == {"filter", "rank", "probe", "read", "judge"}
    assert files_of(tmp_path / "W" / "tables") == files_of(few_built / "tables")


@pytest.mark.parametrize(
    ("changes", "elsewhere"),
    [
        ({}, "filter rank"),  # readers and judge at a server
        ({"convergence": {"method": "llm", "language_model": "a"}}, "filter"),
        ({"judge": {"name": "equivalence", "kind": "equivalence"}}, "filter rank judge"),
        ({"judge": {"name": "j", "kind": "transformers", "model": "m"}}, "filter rank"),
        ({"readers": [{"name": "minilm-late", "role": "labeler", "kind": "embedded"}]}, "filter rank probe read"),
    ],
)
def test_what_asks_a_language_model_works_in_the_build(
    source: Path, tmp_path: Path, changes: dict, elsewhere: str
) -> None:
    sections = {**served("http://h/v1", "a"), **changes}
    sections["judge"] = changes.get("judge", {"name": "j", "kind": "server", "server": "s", "model": "j"})
    pipeline = plan_build(tmp_path / "W", source=source, profile=write_profile(tmp_path / "p.toml", sections))
    assert {run.stage.name for run in pipeline.runs if may_work_on(run, pipeline.settings)} == {*elsewhere.split()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": "9.9, workspaces 1, code 0123"}, r"another program.*code 0123.*Worker on"),
        (
            {"models": ["rules", "bem@other", "minilm"]},
            r"other models than the build: .* there, bem@other here.*Worker on",
        ),
    ],
)
def test_a_worker_with_another_program_or_other_models_refuses(source, tmp_path, change: dict, message: str) -> None:
    task = dataclasses.replace(_first_task(source, tmp_path / "W"), **change)
    with pytest.raises(WorkspaceError, match=message) as raised:
        run_task(task)
    assert not raised.value.retryable


def test_a_worker_answers_requests_and_keeps_no_reply(source: Path, tmp_path: Path, monkeypatch) -> None:
    """... from a prompt that only the build has."""
    prompt = tmp_path / "mine.txt"
    prompt.write_bytes((PROMPTS / "judge.txt").read_bytes() + b" Yes or No?")
    model = {"kind": "transformers", "model": str(checkpoint("llama", 3)), "prompt": str(prompt), "max_new_tokens": 2}
    sections = served("http://h/v1", "a", judge={"name": "j", **model})
    settings = load(str(write_profile(tmp_path / "p.toml", sections))).settings
    judge = language_judge(settings.judge)
    requests = [judge.request(JudgeItem("q", "Which city?", "Paris", answer)) for answer in ("Rome", "Paris")]
    task = pickle.dumps(requests_task(settings, settings.judge, requests))
    prompt.unlink()
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    replies = run_task(pickle.loads(task))
    assert [reply.completion_tokens for reply in replies] == [2, 2]
    assert not (tmp_path / "cache" / "generations.sqlite").exists()


def test_the_builds_cache_is_the_workers_unless_it_has_its_own(source, tmp_path, monkeypatch) -> None:
    task = _first_task(source, tmp_path / "W")
    monkeypatch.delenv("QUIT_CACHE")
    for cache in ("/local/cache", "/other"):
        run_task(dataclasses.replace(task, cache=str(tmp_path) + cache))
        assert os.environ["QUIT_CACHE"] == f"{tmp_path}/local/cache"


def test_every_error_travels_with_what_it_says() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, QuitError)]
    assert len(kinds) > 6
    for kind in kinds:
        there = pickle.loads(pickle.dumps(kind("what, where, what to do")))
        assert type(there) is kind and str(there) == "what, where, what to do"
        assert (there.exit_code, there.retryable) == (kind.exit_code, kind.retryable)


def test_the_program_is_its_code_and_lists_of_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = [workers.program()]
    (tmp_path / "quit").mkdir()
    monkeypatch.setattr(workers, "__file__", str(tmp_path / "quit" / "engine" / "workers.py"))
    for file, text in (("x.py", "1"), ("x.py", "2"), ("x.py", "1"), ("words.txt", "eos"), ("words.txt", "end")):
        (tmp_path / "quit" / file).write_text(text)
        workers.program.cache_clear()
        programs.append(workers.program())
    workers.program.cache_clear()
    assert programs[1] == programs[3] and len({*programs}) == 5


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("threads", None), ("ray", "local"), ("ray:auto", "auto"), ("ray:10.0.0.1:6379", "10.0.0.1:6379"),
        ("ray://head.lan:10001", "ray://head.lan:10001"), ("ray://[::1]:10001", "ray://[::1]:10001"),
    ],
)  # fmt: skip
def test_a_text_names_a_runner(text: str, meant: str | None) -> None:
    assert ray_address(text) == meant


@pytest.mark.parametrize(
    "text",
    ["", "thread", "ray://", "ray://h", "ray://me:secret@h:1", "ray:me:secret@h:1", "dask://h:8786", "ray ://h:1"],
)
def test_a_text_that_names_none_is_refused_without_its_password(text: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.SettingsError, match=r"run\.runner.*ray://HOST:10001") as raised:
        plan_build(tmp_path / "W", f"run.runner={json.dumps(text)}", source=source, profile="embedded")
    assert "secret" not in str(raised.value)
    assert not (tmp_path / "W").exists()


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [
        (OSError("the disk was away"), 3),
        (OSError("libx.so: failed to map segment from shared object"), 1),
        (MemoryError(), 1),
    ],
)
def test_a_fault_of_the_system_is_retried_except_too_little_memory(
    few_source: Path, tmp_path: Path, fault: Exception, attempts: int
) -> None:
    pipeline = plan_build(tmp_path / "W", "run.retries=2", "run.retry_seconds=0", source=few_source, profile=FEW)
    pipeline.begin()
    calls: list[Any] = []

    def work(*_: Any, **__: Any) -> Tables:
        calls.append(fault)
        raise fault

    with pytest.raises(type(fault)):
        pipeline.run_shard(pipeline.stage_run("collect"), WHOLE, work)
    assert len(calls) == attempts
