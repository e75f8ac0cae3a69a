"""Builds from Python: of records, in a notebook, with an object as reader."""

import _thread
import asyncio
import json
import shutil
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import ModuleType

import pandas as pd
import pytest

import quit
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError
from quit.library import building
from quit.models import user_classes
from quit.models.generation.ledger import Ledger
from quit.render import terminal
from tests.comparing import files_of
from tests.paths import FEW

pytestmark = pytest.mark.slow


@pytest.fixture
def records(few_source: Path) -> list[dict]:
    return [json.loads(line) for line in few_source.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook would show: every text of its display."""
    shown: list[str] = []

    class Display(ModuleType):
        def display(self, data: object, **options: bool) -> "Display":
            shown.append(data["text/plain"] if isinstance(data, dict) else str(data))
            return self

        update = display

    monkeypatch.setitem(sys.modules, "IPython.display", Display("IPython.display"))
    monkeypatch.setattr(terminal.console(stderr=True), "is_jupyter", True)
    return shown


def test_records_are_built_once_in_a_notebook_with_one_bar(records, few_built, tmp_path, notebook, capsys) -> None:
    tables = quit.build(tmp_path / "W", records, profile=str(FEW))
    assert tables["labels"].equals(quit.open(few_built)["labels"])
    assert "100%  done" in notebook
    notebook.clear()
    again = quit.build(tmp_path / "W", pd.DataFrame(records))
    assert "100%  done" not in notebook and again["labels"].equals(tables["labels"])
    assert [path.suffix for path in (tmp_path / "W" / "sources").iterdir()] == [".jsonl"]
    assert "prefect" not in capsys.readouterr().err.lower()


def test_settings_keep_those_that_have_an_argument_of_their_own(few_built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(few_built, tmp_path / "W")
    workspace = Workspace.open(folder)
    workspace.set_build({**(workspace.build or {}), "overrides": ["collect.questions=5", "judge.threshold=0.7"]})
    for settings, questions, expected in (
        (None, None, ["collect.questions=5", "judge.threshold=0.7"]),
        ({"judge.threshold": 0.6}, None, ["collect.questions=5", "judge.threshold=0.6"]),
        ({"judge.threshold": 0.6}, 0, ["judge.threshold=0.6", "collect.questions=0"]),
        ([], 7, ["collect.questions=7"]),
    ):
        assert building.as_built(Workspace(folder), None, settings, {"questions": questions})[2] == expected


def test_other_sources_forget_the_limit_of_questions(few_built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(few_built, tmp_path / "W")
    workspace = Workspace.open(folder)
    own = workspace.build["sources"]
    workspace.set_build({**workspace.build, "overrides": ["collect.questions=5", "judge.threshold=0.7"]})
    (tmp_path / "other.jsonl").write_text("{}\n")
    other = f"jsonl:{tmp_path / 'other.jsonl'}"
    for settings in (None, ["judge.threshold=0.7"]):
        for sources, left in (([], 2), (own, 2), ([other], 1), ([*own, other], 1)):
            texts = building.as_built(Workspace(folder), None, settings, {"questions": None}, sources)[2]
            assert texts == ["collect.questions=5", "judge.threshold=0.7"][2 - left :], sources


def test_a_waiver_is_a_text_or_has_a_reason(few_built: Path) -> None:
    for waive, fault in (("schema", "The waiver 'schema' has no '='"), ({"schema": None}, "'schema' needs a reason")):
        with pytest.raises(SettingsError, match=fault):
            quit.open(few_built).release("v1", waive=waive, progress=False)


class Echo:
    """A reader that answers with the first word of the first hint."""

    identity = "first word 1"

    def answer(self, prompts):
        return [(*prompt.hints, "nothing")[0].split()[0] for prompt in prompts]


def test_an_object_reads_beside_the_readers_of_the_profile(
    few_source: Path, records: list[dict], tmp_path: Path, monkeypatch
) -> None:
    for _ in range(2):
        tables = quit.build(tmp_path / "W", few_source, str(FEW), models={"echo": Echo()}, progress=False)
    rows = tables.sql("""
        SELECT DISTINCT answer, hint FROM answers JOIN distinct_answers USING (question_id, reader, number)
        JOIN ranked_hints USING (question_id) WHERE reader = 'echo' AND selected AND rank = permutation[1]::INT
    """).to_pylist()
    assert rows and all(row["hint"].split()[0].strip(".,").lower() in row["answer"].lower() for row in rows)
    monkeypatch.setattr(user_classes, "_OBJECTS", {})  # as Python has been restarted
    with pytest.raises(SettingsError, match=r"Give it again: models={'echo': ...}"):
        quit.build(tmp_path / "W", [{**records[0], "question": "Who?"}], add=True, progress=False)
    again = quit.build(tmp_path / "W", models={"echo": Echo()}, progress=False)  # with the question added above
    assert "Who?" in again["questions"]["question"].to_pylist()
    texts = Workspace.open(tmp_path / "W").build["overrides"]
    assert len({text.partition("=")[0] for text in texts}) == len(texts)


def test_a_wrong_record_or_setting_is_one_error_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="record 1 of your records: Field 'answers' is missing") as raised:
        quit.build(tmp_path / "W", [{"id": "1", "question": "Who?", "answer": "x", "hints": ["a"]}], progress=False)
    assert raised.value.__suppress_context__ and len(raised.traceback) == 2  # this line and the function's
    with pytest.raises(SettingsError, match="Did you mean 'judge.threshold'") as raised:
        quit.build(tmp_path / "W", settings={"judge.treshold": 0.5}, progress=False)
    assert raised.value.__suppress_context__


class Says:
    """A judge that is a function of the candidate."""

    identity = "says 1"

    def __init__(self, name: str, verdict: Callable[[str], bool | None]) -> None:
        self.settings, self.verdict = {"name": name}, verdict

    def verdicts(self, items):
        return [self.verdict(item.candidate) for item in items]


def test_a_mistake_in_an_own_model_keeps_its_place(few_source: Path, tmp_path: Path) -> None:
    wrong = Says("wrong", lambda candidate: candidate.hint)
    with pytest.raises(InputError, match="Says.verdicts raised AttributeError.*cause shows where") as raised:
        quit.build(tmp_path / "W", few_source, str(FEW), models={"wrong": wrong}, progress=False)
    assert traceback.extract_tb(raised.value.__cause__.__traceback__)[-1].name == "<lambda>"


class Interrupting(Echo):
    """A reader in whose first answer somebody presses Ctrl-C; this answer is not cut off."""

    identity = "interrupting 1"

    def __init__(self, stopped: Event) -> None:
        self.calls, self.pressed, self.stopped = 0, Event(), stopped

    def answer(self, prompts):
        self.calls += 1
        if not self.pressed.is_set():
            self.pressed.set()
            _thread.interrupt_main()
            assert self.stopped.wait(60)
        return super().answer(prompts)


def test_ctrl_c_in_a_notebook_keeps_what_is_done_and_the_next_build_resumes(
    few_source: Path, tmp_path: Path, monkeypatch
) -> None:
    stop, stopped = Ledger.stop, Event()
    monkeypatch.setattr(Ledger, "stop", lambda ledger: (stop(ledger), stopped.set()))
    model = Interrupting(stopped)
    options = {"profile": str(FEW), "models": {"echo": model}, "shards": 3, "settings": {"run.workers": 1}}

    async def cell() -> None:  # a notebook runs a cell inside of its event loop
        quit.build(tmp_path / "W", few_source, **options)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt, match="the same call resumes"):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "W" / "tables").rglob("part-*.parquet")}
    assert model.calls == 1 and len({path.name for path in parts}) > 1
    assert not any((tmp_path / "W" / "tables").glob("*_label*"))
    quit.build(tmp_path / "W", progress=False, models={"echo": model})
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    quit.build(tmp_path / "undisturbed", few_source, **options, progress=False)
    assert files_of(tmp_path / "W" / "tables") == files_of(tmp_path / "undisturbed" / "tables")


def test_two_builds_in_threads_of_one_process_make_the_bytes_of_single_ones(
    few_source: Path, few_built: Path, tmp_path: Path, capsys
) -> None:
    starts = Event()

    def build(name: str) -> dict[str, bytes]:
        starts.wait()
        quit.build(tmp_path / name, few_source, str(FEW), shards=3)
        return files_of(tmp_path / name / "tables")

    with ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(build, name) for name in ("one", "two")]
        starts.set()
        assert [future.result() for future in futures] == [files_of(few_built / "tables")] * 2
    assert capsys.readouterr().err.count("10 label: done, 3 shards") == 2  # each tells of itself alone
