"""Runs: resumable by the question, refused where they would be mixed, scored by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quit.common.files import temporary_of
from quit.errors import InputError, WorkspaceError
from quit.qa.sunar.compare import compare_runs
from quit.qa.sunar.queries import Query
from quit.qa.sunar.run import Run, read_trace, runs_in, trace_ids, trace_path
from quit.retrieval.trec import read_run
from tests.qa.sunar.small import trace_of


class Echo:
    """A system whose trace is made of the question; keeps what it answers."""

    def __init__(self, fails: str = "") -> None:
        self.answered: list[str] = []
        self._fails = fails

    def answer(self, query: Query):
        if query.query_id == self._fails:
            raise InputError("this one fails")
        self.answered.append(query.query_id)
        return trace_of(query, pool=["d1", "d2"], evidence=["d2", "d1"])


QUERIES = [
    Query("a", "It is Lima.", ("Lima",), relevant={"d1": 1, "d9": 1}),
    Query("b/../c", "Limassol", ("Lima",), relevant={}),
    Query("é" * 300, "x", ()),
]


def _ran(folder: Path, described: dict | None = None) -> Run:
    """A run over the questions."""
    run = Run(folder, described or {})
    run.work(Echo(), QUERIES, 1)  # type: ignore[arg-type]
    return run


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    run = Run(tmp_path / "r", {"settings": {"c": 1}})
    with pytest.raises(InputError, match="this one fails"):
        run.work(Echo(fails="b/../c"), QUERIES, 1)  # type: ignore[arg-type]
    half = temporary_of(trace_path(run.path, "b/../c"))
    half.write_text("{")  # what a killed run was writing
    again, resumed = Echo(), Run(tmp_path / "r", {"settings": {"c": 1}})
    resumed.work(again, QUERIES, 2)  # type: ignore[arg-type]
    assert not half.exists() and not resumed.missing(QUERIES)
    assert "a" not in again.answered and "b/../c" in again.answered
    assert len(list((tmp_path / "r" / "traces").iterdir())) == 3, "ids that are no file names stay in the folder"
    assert read_trace(run.path, "b/../c")["query_id"] == "b/../c"


def test_a_question_that_changed_under_its_id_is_answered_again(tmp_path: Path) -> None:
    asked, run = Echo(), _ran(tmp_path / "r")
    changed = [replace(QUERIES[0], text="Is it Quito?"), replace(QUERIES[1], relevant={"d2": 1}), QUERIES[2]]
    run.work(asked, changed, 1)  # type: ignore[arg-type]
    assert sorted(asked.answered) == ["a", "b/../c"] and not run.missing(changed)
    assert read_trace(run.path, "a")["prediction"] == "Is it Quito?"


def test_a_trace_that_was_edited_is_named_and_made_again(tmp_path: Path) -> None:
    run, asked = _ran(tmp_path / "r"), Echo()
    file = trace_path(run.path, "a")
    written = file.read_text(encoding="utf-8")
    file.write_text(written.replace("It is Lima.", "It is Oslo."), encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.json was altered since it was written. Run quit sunar run again"):
        read_trace(run.path, "a")
    run.work(asked, QUERIES, 1)  # type: ignore[arg-type]
    assert asked.answered == ["a"] and file.read_text(encoding="utf-8") == written


def test_a_run_of_another_version_is_not_called_altered(tmp_path: Path) -> None:
    path = _ran(tmp_path / "r").path
    description = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**description, "version": 5}))
    for read in (lambda: read_trace(path, "a"), lambda: trace_ids(path)):
        with pytest.raises(InputError, match="holds a run of version 5, .* with another --out"):
            read()


def test_runs_that_are_judged_differently_are_not_compared(tmp_path: Path) -> None:
    for name, changed in (("before", {}), ("relevant", {"relevant": {}}), ("answers", {"answers": ()})):
        Run(tmp_path / name, {}).work(Echo(), [replace(QUERIES[0], **changed)], 1)  # type: ignore[arg-type]
    assert compare_runs(tmp_path / "before", tmp_path / "before").gains["questions"] == 1
    for name in ("relevant", "answers"):
        for one, other in ((name, "before"), ("before", name)):
            with pytest.raises(InputError, match="differ in answers or relevant documents of 'a'"):
                compare_runs(tmp_path / one, tmp_path / other)


def test_traces_of_two_systems_are_not_mixed(tmp_path: Path) -> None:
    Run(tmp_path, {"settings": {"c": 1, "b": 2}, "identity": "x"})
    with pytest.raises(WorkspaceError, match=r"sunar\.c \(1, now 2\)"):
        Run(tmp_path, {"settings": {"c": 2, "b": 2}, "identity": "x"})
    with pytest.raises(WorkspaceError, match="differs in identity"):
        Run(tmp_path, {"settings": {"c": 1, "b": 2}, "identity": "y"})
    run = _ran(tmp_path / "r")
    (run.path / "run.json").unlink()
    assert Run(run.path, {"settings": {"c": 2}}).missing(QUERIES) == QUERIES
    assert trace_ids(run.path) == []
    with pytest.raises(InputError, match="is of an earlier run"):
        read_trace(run.path, "a")


def test_a_trace_that_is_not_there_or_broken_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="r holds no run"):
        read_trace(tmp_path / "r", "z")
    with pytest.raises(InputError, match="no trace of the question 'z'. It has none yet"):
        read_trace(Run(tmp_path / "r", {}).path, "z")
    path = _ran(tmp_path / "r").path
    with pytest.raises(InputError, match="It has 3: a, id-[^,]*, id-[^,]*$"):
        read_trace(path, "z")
    trace_path(path, "a").write_text("{")
    with pytest.raises(InputError, match="Run quit sunar run again"):
        read_trace(path, "a")
    assert runs_in(tmp_path) == [path] and runs_in(path) == [path]


def test_figures_by_hand(tmp_path: Path) -> None:
    run = _ran(tmp_path / "r")
    figures = run.finish(QUERIES, "echo")
    assert (figures["questions"], figures["answered_for"], figures["cover_em"]) == (3, 2, 0.5)
    # One judged question: d1 of d1, d9 at rank 2.
    assert (figures["judged"], figures["Recall@1"], figures["Recall@10"], figures["pool_recall"]) == (1, 0.0, 0.5, 0.5)
    gain, ideal = 1 / 1.584962500721156, 1 + 1 / 1.584962500721156
    assert figures["nDCG@10"] == pytest.approx(gain / ideal, abs=1e-6)
    assert (run.path / "run.trec").read_text().splitlines()[:2] == ["a Q0 d2 1 2 echo", "a Q0 d1 2 1 echo"]
    spaced = [Query("a b", "Lima")]
    run.work(Echo(), spaced, 1)  # type: ignore[arg-type]
    run.finish(spaced, "echo")
    assert read_run(run.path / "run.trec")[1] == {"a%20b": {"d2": 2.0, "d1": 1.0}}
    run.finish(QUERIES, "echo")
    first, *_ = (run.path / "answers.jsonl").read_text().splitlines()
    assert json.loads(first) == {"query_id": "a", "prediction": "It is Lima."}
    within = _ran(tmp_path / "s", {"settings": {"cover_em": "substring"}})
    assert within.finish(QUERIES, "echo")["cover_em"] == 1.0  # Lima in Limassol too
