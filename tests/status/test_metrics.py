"""Metrics, progress and watching, against what the files themselves say."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from quit.common.logs import JsonLines
from quit.engine.workspace import Workspace
from quit.errors import ServerError
from quit.status.history import record_run, runs_of
from quit.status.metrics import as_text, listen
from quit.status.stages import StageStatus, lock_holder, status
from quit.status.watching import Rates, changes, watch
from tests.conftest import ROOT, call_quit


def _samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (one.name, tuple(sorted((key, value) for key, value in one.labels.items() if key != "workspace"))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


@pytest.mark.slow
def test_metrics_are_what_the_tables_say(built: Path, tmp_path: Path) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")
    usage = {"requests": 7, "cached": 3, "retries": 1, "empty": 0, "prompt_tokens": 700, "completion_tokens": 70}
    lines = [{"run": "read:minilm-late", "model": "minilm-late", **usage, "cached_tokens": 100, "seconds": 2.5}] * 2
    (workspace / "usage.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut')
    (workspace / "runs.jsonl").unlink(missing_ok=True)
    record_run(Workspace.open(workspace), "build", "done", 100.0, 160.0)
    record_run(Workspace.open(workspace), "build", "failed", 200.0, 201.5, "InputError: x")
    found = _samples(as_text([workspace]))
    opened = Workspace.open(workspace)
    assert found["quit_table_rows", (("stage", "label"), ("table", "labels"))] == len(opened.read("labels"))
    assert found["quit_questions", (("step", "questions collected"),)] == len(opened.read("questions"))
    splits = opened.read("splits").column("split").to_pylist()
    assert found["quit_questions", (("step", "in train"),)] == splits.count("train")
    rejects = opened.read("rejects").to_pylist()
    assert sum(value for (name, _), value in found.items() if name == "quit_rejects") == len(rejects)
    assert found["quit_rejects", (("reason", "record: not_json"), ("stage", "collect"))] == 1
    asked = (("endpoint", "in process"), ("model", "minilm-late"), ("stage", "read:minilm-late"))
    assert found["quit_model_requests_total", asked] == 14 and found["quit_model_cached_replies_total", asked] == 6
    kinds = {
        dict(labels)["kind"]: value for (name, labels), value in found.items() if name == "quit_model_tokens_total"
    }
    assert kinds == {"prompt": 1400, "prompt_cached": 200, "completion": 140}
    assert found["quit_build_last_success_timestamp_seconds", ()] == 160
    assert found["quit_run_last_duration_seconds", (("flow", "build"), ("outcome", "failed"))] == 1.5
    assert found["quit_runs_total", (("flow", "build"), ("outcome", "done"))] == 1
    assert found["quit_workspace_locked", ()] == 0 and found["quit_workspace_up", ()] == 1
    complete = {
        dict(labels)["stage"]: value for (name, labels), value in found.items() if name == "quit_stage_complete"
    }
    assert len(complete) == 21 and set(complete.values()) == {1}


@pytest.mark.slow
def test_a_stage_that_was_killed_is_counted_by_its_parts(built: Path, tmp_path: Path) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")
    opened = Workspace.open(workspace)
    folder, _ = opened.current()["judge"]
    for name in ("verdicts", "second_verdicts", "rejects"):
        if (folder / name).is_dir():
            [part] = (folder / name).iterdir()
            for index in (0, 2):
                shutil.copy(part, folder / name / f"part-{index:05d}-of-00005.parquet")
            part.unlink()
    shutil.copy(
        folder / "verdicts" / "part-00000-of-00005.parquet", folder / "verdicts" / "part-00001-of-00005.parquet"
    )
    (folder / "manifest.json").unlink()
    rows = {one.run: one for one in status(opened)}
    # The third part has no second table yet where the stage has two: it is not done.
    assert (rows["judge"].state, rows["judge"].shards_done, rows["judge"].shards) == ("partial", 2, 5)
    assert rows["split"].state == "complete"
    found = _samples(as_text([workspace]))
    assert found["quit_stage_shards_done", (("stage", "judge"),)] == 2
    assert found["quit_stage_shards", (("stage", "judge"),)] == 5


def test_a_workspace_that_is_not_there_is_down_and_takes_nothing_else_with_it(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "there")
    text = as_text([tmp_path / "gone", tmp_path / "there"])
    up = {
        one.labels["workspace"]: one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == "quit_workspace_up"
    }
    assert up == {str(tmp_path / "gone"): 0, str(tmp_path / "there"): 1}


def test_metrics_are_served_and_a_taken_port_is_said(tmp_path: Path) -> None:
    port = listen([tmp_path], 0, "127.0.0.1")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        assert b"quit_workspace_up" in answer.read()
    with pytest.raises(ServerError, match="--metrics-port"):
        listen([tmp_path], port, "127.0.0.1")


def test_a_lock_of_a_process_that_is_gone_is_no_lock(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    assert lock_holder(workspace) is None
    with workspace.lock(1):
        held = lock_holder(workspace)
        assert held and held["pid"] == os.getpid()
    assert lock_holder(workspace) is None
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = {"pid": process.pid, "host": socket.gethostname(), "since": "then"}
    (workspace.path / "lock.json").write_text(json.dumps(left))
    assert lock_holder(workspace) is None
    (workspace.path / "lock.json").write_text(json.dumps({**left, "host": "elsewhere"}))
    assert lock_holder(workspace) is not None  # nobody here can know


def test_the_diary_survives_a_line_that_was_cut(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "W")
    record_run(Workspace.at(tmp_path / "W"), "build", "done", 1.0, 2.0, "ä", "calm-fox")
    with (tmp_path / "W" / "runs.jsonl").open("a") as file:
        file.write('{"flow": "bui\n')
    record_run(Workspace.at(tmp_path / "W"), "build", "nothing new", 3.0, 4.0)
    assert [(one["outcome"], one["message"]) for one in runs_of(Workspace.at(tmp_path / "W"))] == [
        ("done", "ä"),
        ("nothing new", ""),
    ]
    record_run(Workspace.at(tmp_path / "none"), "build", "failed", 1.0, 2.0)
    assert not (tmp_path / "none").exists()


def test_rates_are_what_was_seen_since_the_watch_began() -> None:
    now = [0.0]
    rates = Rates(lambda: now[0])
    see = lambda done: rates.see(StageStatus(8, "read:x", "", "partial", shards_done=done, shards=20))  # noqa: E731
    assert see(5) == (None, None)
    now[0] = 30.0
    assert see(8) == (6.0, 120.0)  # three shards in half a minute; twelve left at one in ten seconds
    assert see(0) == (None, None)


def test_changes_are_told_once(tmp_path: Path) -> None:
    told: dict[str, str] = {}
    row = StageStatus(3, "rank", "", "partial", shards_done=1, shards=4)
    assert changes(None, [row], told) == [" 3 rank: 1 of 4 shards"]
    assert changes(None, [row], told) == []
    done = StageStatus(3, "rank", "", "complete", {"ranked_hints": 1234}, shards_done=4, shards=4)
    assert changes(None, [done], told) == [" 3 rank: complete, 1,234 ranked hints"]


@pytest.mark.slow
def test_watching_a_finished_workspace_ends_by_itself_piped_and_on_a_terminal(built: Path) -> None:
    done = call_quit("status", "-w", str(built), "--watch", "--until-done")
    assert done.returncode == 0, done.stderr
    assert "10 label: complete, " in done.stdout and "nobody works on it" in done.stdout
    console = Console(force_terminal=True, record=True, width=160, file=open(os.devnull, "w"))  # noqa: SIM115
    assert watch(built, 0.1, until_done=True, console=console)
    assert "read:minilm-names" in console.export_text()


@pytest.mark.slow
def test_ctrl_c_ends_a_watch_without_a_fault(built: Path) -> None:
    command = [sys.executable, "-u", "-m", "quit.cli", "status", "-w", str(built), "--watch", "--interval", "0.2"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,  # as a terminal does
    )
    assert process.stdout
    assert "collect" in process.stdout.readline()
    process.send_signal(2)
    _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, "")


@pytest.mark.slow
def test_the_command_prints_metrics(built: Path) -> None:
    done = call_quit("status", "-w", str(built), "--prometheus")
    assert done.returncode == 0 and _samples(done.stdout)["quit_workspace_up", ()] == 1
    done = call_quit("status", "-w", str(built), "--prometheus", "--json")
    assert done.returncode == 4 and "one of" in done.stderr


def test_a_log_line_is_json_with_its_fields_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    monkeypatch.setenv("QUIT_VLLM_API_KEY", "token-of-some-length")
    record = logging.LogRecord("x", logging.INFO, "f", 1, "asked %s", ("http://u:p@h/v1 token-of-some-length",), None)
    record.stage, record.shard, record.endpoint, record.flow_run_name = "read:x", 3, "http://h/v1", "calm-fox"
    line = json.loads(JsonLines().format(record))
    assert (line["stage"], line["shard"], line["endpoint"]) == ("read:x", 3, "http://h/v1")
    assert line["message"] == "asked http://h/v1 (QUIT_VLLM_API_KEY)" and line["flow_run_name"] == "calm-fox"
