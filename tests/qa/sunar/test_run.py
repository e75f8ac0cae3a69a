"""Runs: resumable by the question, refused where they would be mixed, scored by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quit.common.files import temporary_of
from quit.errors import InputError, WorkspaceError
from quit.qa.opening import questions
from quit.qa.sunar.compare import compare, compare_runs, significance
from quit.qa.sunar.queries import Query, of_corpus, of_file
from quit.qa.sunar.run import Run, read_trace, runs_in, trace_ids, trace_path
from quit.qa.sunar.scores import scores
from quit.retrieval.trec import read_run
from tests.qa.scripted import SmallCollection
from tests.rows import cases


class Echo:
    """A system whose trace is made of the question; keeps what it answers."""

    def __init__(self, fails: str = "") -> None:
        self.answered: list[str] = []
        self._fails = fails

    def answer(self, query: Query):
        if query.query_id == self._fails:
            raise InputError("this one fails")
        self.answered.append(query.query_id)
        return _trace(query, pool=["d1", "d2"], evidence=["d2", "d1"])


def _trace(query: Query, **more):
    own = {"query_id": query.query_id, "prediction": query.text, "steps": [{}], "replies": {}, "kind": query.kind}
    return {**own, "relevant": dict(query.relevant or {}), "answers": list(query.answers), **more}


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


@pytest.mark.parametrize(("relevant", "none"), [(None, None), ({"d": 1}, 0.0)])
def test_a_run_over_nothing_that_could_be_judged_has_no_figures(relevant, none: float | None) -> None:
    query = Query("q", "x", relevant=relevant)
    figures = scores([_trace(query, pool=[], evidence=[])])
    assert figures["cover_em"] is None
    assert figures["Recall@10"] == figures["nDCG@10"] == figures["pool_recall"] == none


def test_what_the_graph_gains_is_counted_by_its_parents() -> None:
    query = Query("q", "x", relevant={"a": 1, "b": 1, "c": 1}, kind="2hop")
    before = _trace(query, pool=["a", "c"], evidence=["c", "a"])
    batches = [{"pool": "R", "documents": ["x", "a"]}, {"pool": "N", "documents": ["b"], "parents": ["a"]}]
    after = _trace(query, pool=["x", "a", "b"], evidence=["b", "a", "x"]) | {"steps": [{"batches": batches}]}
    comparison = compare([before], [after], top=2)
    assert (comparison["relevant"], comparison["gained"], comparison["lost"], comparison["by_graph"]) == (3, 1, 1, 1)
    assert (comparison["parent_relevant"], comparison["parent_rank"]) == (1, 2.0)
    assert (comparison["gained_in_top"], comparison["lost_from_top"]) == (1, 1)
    again = compare([before], [before | {"evidence": ["x", "c", "a"]}], top=2)  # c and a were in the pool before
    there = compare([before | {"evidence": ["x", "c", "a"]}], [before], top=2)
    assert (
        (again["gained_in_top"], again["lost_from_top"]) == (0, 1) == (there["lost_from_top"], there["gained_in_top"])
    )
    assert comparison["kinds"] == {"2hop": {"questions": 1, "pool": [0.6667, 0.6667], "top_2": [0.6667, 0.6667]}}


def _answered(prediction: str, *evidence: str, questions: int = 1) -> list[dict]:
    """Traces of questions whose answer is Lima and whose relevant document is d1."""
    queries = [Query(f"q{number}", prediction, ("Lima",), relevant={"d1": 1}) for number in range(questions)]
    return [_trace(query, evidence=list(evidence)) for query in queries]


def test_two_runs_differ_by_exact_paired_tests() -> None:
    before = _answered("Quito", "d2", questions=5)
    after = _answered("It is Lima", "d1", "d2", questions=4) + before[4:]
    comparison = significance(before, after)
    row = comparison["cover_em"]
    assert (row.questions, row.before, row.after, row.difference) == (5, 0.0, 0.8, 0.8)
    # Four of four differing questions on one side: both ends of 2^4 equally likely sign patterns.
    assert row.p_randomisation == 2 / 16 and comparison["Recall@10"].p_randomisation == 2 / 16
    assert row.holm == 3 * 2 / 16 and row.p_t == pytest.approx(0.0161, abs=1e-4)  # t = 4 on 4 degrees of freedom
    assert significance(before, before)["nDCG@10"].p_randomisation == 1.0
    unjudged = [{**trace, "answers": [], "relevant": {}} for trace in before]
    assert significance(unjudged, unjudged) == {}
    unanswered = [[{**traces[0], "answers": []}, *traces[1:]] for traces in (before, after)]
    mixed = significance(*unanswered)
    row = mixed["cover_em"]  # over four questions, of which three differ; the other measures over five
    assert (row.questions, row.after, row.p_randomisation, row.holm) == (4, 0.75, 2 / 8, 3 * 2 / 16)
    assert mixed["nDCG@10"] == comparison["nDCG@10"]
    within = _answered("Limassol", "d1", questions=2)
    for part, covered in ((True, 1.0), (False, 0.0)):
        assert significance(within, within, substring=part)["cover_em"].before == covered


def _own(qrels: dict[str, dict[int, int]]) -> list[Query]:
    whole = {"query_id": "m:1", "text": "whole?", "answers": ["A"], "kind": "2hop"}
    steps = [
        {"query_id": f"m:1-s{hop}", "text": text, "answers": ["A"], "parent_id": "m:1", "hop": hop, "kind": "2hop"}
        for hop, text in ((2, "two?"), (1, "one?"))
    ]
    collection = SmallCollection([("", "one"), ("", "two"), ("", "three")], [whole, *steps], qrels)
    return of_corpus(collection, questions(collection))


def test_questions_of_a_corpus_and_of_a_file_that_leans_on_it(tmp_path: Path) -> None:
    """A corpus's parts are in the order of their hops."""
    relevant = _own({"m:1": {0: 1, 1: 0}, "m:1-s1": {2: 1}})
    assert relevant == [Query("m:1", "whole?", ("A",), ("one?", "two?"), {"d0": 1}, "2hop", (0,))]
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "m:1"}\n\n{"_id": 7, "question": " a  b? ", "answer": "C", "sub_questions": ["s"]}\n')
    assert of_file(path, relevant) == [relevant[0], Query("7", "a b?", ("C",), ("s",))]
    path.write_text(r'{"id": "\ud83d\ude00", "text": "a \\ud800?"}')  # a pair, and six characters
    assert of_file(path) == [Query("\U0001f600", "a \\ud800?")]


@pytest.mark.parametrize(("text", "said"), cases(__file__, "bad_queries.jsonl"))
def test_a_bad_file_of_questions_is_said_line_by_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        of_file(path)
    with pytest.raises(InputError, match="absent.jsonl does not exist"):
        of_file(tmp_path / "absent.jsonl")
