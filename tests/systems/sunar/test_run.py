"""Runs: resumable by the question, refused where they would be mixed, scored by hand."""

import json
from pathlib import Path

import pytest

from quit.common.files import temporary_of
from quit.errors import InputError, WorkspaceError
from quit.systems.collection import questions
from quit.systems.sunar.compare import compare, significance
from quit.systems.sunar.queries import Query, of_corpus, of_file
from quit.systems.sunar.run import Run, read_trace, runs_in, trace_path
from quit.systems.sunar.scores import scores
from tests.systems.scripted import SmallCollection


class Echo:
    """A system whose trace is made of the question; counts."""

    def __init__(self, fails: str = "") -> None:
        self.answered: list[str] = []
        self._fails = fails

    def answer(self, query: Query):
        if query.query_id == self._fails:
            raise InputError("this one fails")
        self.answered.append(query.query_id)
        return _trace(query, pool=["d1", "d2"], evidence=["d2", "d1"])


def _trace(query: Query, **more):
    return {
        "query_id": query.query_id,
        "prediction": query.text,
        "steps": [{}],
        "replies": {},
        "kind": query.kind,
        "relevant": sorted(query.relevant or ()),
        **more,
    }


QUERIES = [
    Query("a", "It is Lima.", ("Lima",), relevant={"d1": 1, "d9": 1}),
    Query("b/../c", "Limassol", ("Lima",), relevant={}),
    Query("é" * 300, "x", ()),
]


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    run = Run(tmp_path / "r", {"settings": {"c": 1}})
    with pytest.raises(InputError, match="this one fails"):
        run.work(Echo(fails="b/../c"), QUERIES, 1)  # type: ignore[arg-type]
    half = temporary_of(trace_path(run.path, "b/../c"))
    half.write_text("{")  # what a killed run was writing
    again = Echo()
    Run(tmp_path / "r", {"settings": {"c": 1}}).work(again, QUERIES, 2)  # type: ignore[arg-type]
    assert not half.exists()
    assert "a" not in again.answered and "b/../c" in again.answered
    assert not Run(tmp_path / "r", {"settings": {"c": 1}}).missing(QUERIES)
    assert len(list((tmp_path / "r" / "traces").iterdir())) == 3, "ids that are no file names stay in the folder"
    assert read_trace(run.path, "b/../c")["query_id"] == "b/../c"


def test_traces_of_two_systems_are_not_mixed(tmp_path: Path) -> None:
    Run(tmp_path, {"settings": {"c": 1, "b": 2}, "identity": "x"})
    with pytest.raises(WorkspaceError, match=r"sunar\.c \(1, now 2\)"):
        Run(tmp_path, {"settings": {"c": 2, "b": 2}, "identity": "x"})
    with pytest.raises(WorkspaceError, match="differs in identity"):
        Run(tmp_path, {"settings": {"c": 1, "b": 2}, "identity": "y"})


def test_a_trace_that_is_not_there_or_broken_is_said(tmp_path: Path) -> None:
    run = Run(tmp_path / "r", {})
    with pytest.raises(InputError, match="no trace of the question 'z'. It has none yet"):
        read_trace(run.path, "z")
    run.work(Echo(), QUERIES[:1], 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="It has 1: a"):
        read_trace(run.path, "z")
    trace_path(run.path, "a").write_text("{")
    with pytest.raises(InputError, match="Delete it"):
        read_trace(run.path, "a")
    assert runs_in(tmp_path) == [run.path] and runs_in(run.path) == [run.path]


def test_figures_by_hand(tmp_path: Path) -> None:
    run = Run(tmp_path / "r", {})
    run.work(Echo(), QUERIES, 1)  # type: ignore[arg-type]
    figures = run.finish(QUERIES, "echo")
    assert (figures["questions"], figures["answered_for"], figures["cover_em"]) == (3, 2, 0.5)
    # One judged question: d1 of d1, d9 at rank 2.
    assert (figures["judged"], figures["Recall@1"], figures["Recall@10"], figures["pool_recall"]) == (1, 0.0, 0.5, 0.5)
    gain, ideal = 1 / 1.584962500721156, 1 + 1 / 1.584962500721156
    assert figures["nDCG@10"] == pytest.approx(gain / ideal, abs=1e-6)
    assert (run.path / "run.trec").read_text().splitlines()[:2] == ["a Q0 d2 1 2 echo", "a Q0 d1 2 1 echo"]
    first, *_ = (run.path / "answers.jsonl").read_text().splitlines()
    assert json.loads(first) == {"query_id": "a", "prediction": "It is Lima."}


def test_cover_em_counts_an_answer_within_a_word_if_the_run_says_so(tmp_path: Path) -> None:
    run = Run(tmp_path / "r", {"settings": {"cover_em": "substring"}})
    run.work(Echo(), QUERIES, 1)  # type: ignore[arg-type]
    assert run.finish(QUERIES, "echo")["cover_em"] == 1.0  # Lima in Limassol too
    within = [_answered(number, "Limassol", ["d1"]) for number in range(2)]
    by_part, by_word = (significance(within, within, resamples=10, seed=0, substring=part) for part in (True, False))
    assert (by_part["cover_em"]["before"], by_word["cover_em"]["before"]) == (1.0, 0.0)


def test_a_run_over_nothing_that_could_be_judged_has_no_figures() -> None:
    query = Query("q", "x")
    figures = scores([_trace(query, pool=[], evidence=[])], [query])
    assert figures["cover_em"] is None and figures["Recall@10"] is None and figures["pool_recall"] is None
    judged = Query("q", "x", relevant={"d": 1})
    empty = scores([_trace(judged, pool=[], evidence=[])], [judged])
    assert (empty["Recall@10"], empty["nDCG@10"], empty["pool_recall"]) == (0.0, 0.0, 0.0)


def test_what_the_graph_gains_is_counted_by_its_parents() -> None:
    query = Query("q", "x", relevant={"a": 1, "b": 1, "c": 1}, kind="2hop")
    before = _trace(query, pool=["a", "c"], evidence=["c", "a"])
    batches = [{"pool": "R", "documents": ["x", "a"]}, {"pool": "N", "documents": ["b"], "parents": ["a"]}]
    after = _trace(query, pool=["x", "a", "b"], evidence=["b", "a", "x"]) | {"steps": [{"batches": batches}]}
    made = compare([before], [after], top=2)
    assert (made["relevant"], made["gained"], made["lost"], made["by_graph"]) == (3, 1, 1, 1)
    assert (made["parent_relevant"], made["parent_rank"]) == (1, 2.0)
    assert (made["gained_in_top"], made["lost_from_top"]) == (1, 1)
    assert made["kinds"] == {"2hop": {"questions": 1, "pool": [0.6667, 0.6667], "top_2": [0.6667, 0.6667]}}


def _answered(number: int, prediction: str, evidence: list[str]):
    query = Query(f"q{number}", prediction, ("Lima",), relevant={"d1": 1})
    return _trace(query, answers=["Lima"], evidence=evidence)


def test_two_runs_differ_by_exact_paired_tests() -> None:
    before = [_answered(number, "Quito", ["d2"]) for number in range(5)]
    after = [_answered(number, "It is Lima", ["d1", "d2"]) for number in range(4)] + [before[4]]
    made = significance(before, after, resamples=100, seed=0)
    row = made["cover_em"]
    assert (row["questions"], row["before"], row["after"], row["difference"]) == (5, 0.0, 0.8, 0.8)
    # Four of four differing questions on one side: both ends of 2^4 equally likely sign patterns.
    assert row["p_randomisation"] == 2 / 16 and made["Recall@10"]["p_randomisation"] == 2 / 16
    assert row["holm"] == 3 * 2 / 16 and row["p_t"] == pytest.approx(0.0161, abs=1e-4)  # t = 4 on 4 degrees of freedom
    assert significance(before, before, resamples=100, seed=0)["nDCG@10"]["p_randomisation"] == 1.0
    unjudged = [{**trace, "answers": [], "relevant": []} for trace in before]
    assert significance(unjudged, unjudged, resamples=100, seed=0) == {}


ROWS = [
    {"query_id": "m:1", "text": "whole?", "answers": ["A"], "parent_id": None, "hop": None, "kind": "2hop"},
    {"query_id": "m:1-s2", "text": "two?", "answers": ["A"], "parent_id": "m:1", "hop": 2, "kind": "2hop"},
    {"query_id": "m:1-s1", "text": "one?", "answers": ["B"], "parent_id": "m:1", "hop": 1, "kind": "2hop"},
]


def _own(qrels: dict[str, dict[int, int]]) -> list[Query]:
    collection = SmallCollection([("", "one"), ("", "two"), ("", "three")], ROWS, qrels)
    return of_corpus(collection, questions(collection))


def test_a_corpus_own_questions_have_their_parts_in_order() -> None:
    relevant = _own({"m:1": {0: 1, 1: 0}, "m:1-s1": {2: 1}})
    assert relevant == [Query("m:1", "whole?", ("A",), ("one?", "two?"), {"d0": 1}, "2hop", (0,))]


def test_questions_of_a_file_may_lean_on_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "m:1"}\n\n{"_id": 7, "question": " a  b? ", "answer": "C", "sub_questions": ["s"]}\n')
    known = _own({})
    assert of_file(path, known) == [known[0], Query("7", "a b?", ("C",), ("s",))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no question"),
        ("{", "line 1: no JSON"),
        ("[]", "expected an object"),
        ('{"text": "x"}', "no id"),
        ('{"id": "x"}', "has no text"),
        ('{"id": "x", "text": " "}', "has no text"),
        ('{"id": "x", "text": "y", "answers": 3}', "answers must be a list of texts"),
        ('{"id": "x", "text": "y", "sub_questions": [3]}', "sub_questions must be a list of texts"),
        ('{"id": "x", "text": "y"}\n{"id": "x", "text": "z"}', "line 2: the id 'x' occurs twice"),
    ],
)
def test_a_bad_file_of_questions_is_said_line_by_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        of_file(path)
    with pytest.raises(InputError, match="Cannot read the queries"):
        of_file(tmp_path / "absent.jsonl")
