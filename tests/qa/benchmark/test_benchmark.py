"""Whole runs over the small release: files, other tools on the run files, resuming, bad input."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

from quit.common.progress import Listener, listening
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.evaluate.circularity import Circularity
from quit.models.protocols import NO_ANSWER
from quit.qa.benchmark import benchmark as module
from quit.qa.benchmark import plugins
from quit.qa.benchmark import stages as module_stages
from quit.qa.benchmark.benchmark import BenchmarkRequest, make_runner, run_benchmark
from quit.qa.benchmark.leaderboard import page
from quit.qa.benchmark.passages import DocumentPassages
from quit.qa.benchmark.relabel import RetrievedLabels, known_verdicts, relabel
from quit.qa.benchmark.results import Scores, falling, file_name
from quit.qa.benchmark.run import Runner, System, reorder
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.benchmark.task import BenchmarkQuery, LabelledTask, Task
from quit.qa.contracts.benchmark import COMPARISONS, FIGURES, RELABELLED, RESULTS
from quit.qa.settings import load
from quit.retrieval.corpus import Corpus
from quit.retrieval.protocols import Ranking
from tests.answers import Reads, Rules
from tests.rows import write_lines

QUICK = ["benchmark.resamples=200"]


def _reads(replies: dict[str, str]) -> Reads:
    return Reads(lambda prompt, _: replies.get(" ".join(prompt.hints), "Wrong"))


@pytest.fixture
def reader(monkeypatch) -> Reads:
    output = _reads({"It lies on the Pacific. Pizarro founded it.": "It is Lima", "Pizarro founded it.": "lima!"})
    real = plugins.make_reader
    by_name = "quit.qa.benchmark.plugins.make_reader"
    monkeypatch.setattr(by_name, lambda name, context: output if name == "scripted" else real(name, context))
    monkeypatch.setattr(module, "check", lambda request, settings: None)
    return output


@pytest.fixture
def run(release: Path, tmp_path: Path, reader: Reads):
    """Run the benchmark on the release with BM25 and the scripted reader."""
    request = BenchmarkRequest(release, "all", ("bm25",), (), ("scripted",))

    def run(*more: str, **changes):
        return run_benchmark(replace(request, **changes), load("embedded", [*QUICK, *more]).settings, tmp_path / "out")

    return run


def test_a_run_and_its_files_and_a_second_one_that_asks_nothing(
    run, tmp_path: Path, reader: Reads, notes: list[str]
) -> None:
    out, outcome = tmp_path / "out", run()
    keys = ("retriever", "reranker", "reader", "strategy", "k", "metric")
    by_metric = {tuple(row[key] for key in keys): row["value"] for row in outcome.results.to_pylist()}
    # Every passage of q3, read alone: two texts make the reader say Lima. "lima!" equals it, "It is Lima" only covers
    # it.
    assert by_metric["oracle", "oracle", "scripted", "any", 1, "EM"] == pytest.approx(1 / 3)
    assert by_metric["oracle", "oracle", "", "", 0, "nDCG@10"] == 1.0
    # The oracle's rows of q3 in order: hint 0 first. Union of the first three is "Pacific, Pizarro".
    assert by_metric["oracle", "", "scripted", "norm", 3, "EM"] == 0.0
    assert by_metric["oracle", "", "scripted", "norm", 3, "cover-EM"] == pytest.approx(1 / 3)
    assert by_metric["oracle", "", "scripted", "norm", 1, "cover-EM"] == 0.0
    described = json.loads((out / "run.json").read_text())
    assert described["runs"] == {
        "release-bm25.run": "release: bm25", "release-bm25-oracle.run": "release: bm25 + oracle",
        "release-oracle.run": "release: oracle", "release-oracle-oracle.run": "release: oracle + oracle",
    }  # fmt: skip
    assert not {"other corpora", "listwise replies"} & set(described["facts"])
    assert pq.read_table(out / "results.parquet").equals(outcome.results)
    assert json.loads((out / "results.json").read_text()) == outcome.results.to_pylist()
    assert len(pq.read_table(out / "values.parquet")) == 3 * len(outcome.results)

    assert any(text.startswith("retrieve") for text in notes)
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert len(before) >= 7
    requests = len(reader.asked)
    notes.clear()
    run()
    assert notes == ["evaluate"] and len(reader.asked) == requests
    assert {path: path.read_bytes() for path in before} == before
    run("benchmark.k=[1,2]")  # another k reads only what it adds; retrieval stays
    assert not any(text.startswith("retrieve") for text in notes)


def test_another_run_leaves_its_own_run_files_and_without_bounds_no_oracle(run, tmp_path: Path) -> None:
    run()
    results = run(bounds=False, retrievers=("bm25", "oracle"), rerankers=("oracle",)).results
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == ["release-bm25.run"]
    assert {*results["retriever"].to_pylist()} == {"bm25"} and {*results["reranker"].to_pylist()} == {""}
    assert "any" not in results["strategy"].to_pylist()


def test_scores_of_run_files_fall_strictly() -> None:
    output = falling(np.array([2.0, 2.0, 2.0, 1.0, -1.0, -1.0]))
    texts = [float(f"{one:.9g}") for one in output]
    assert all(np.float32(a) > np.float32(b) for a, b in pairwise(texts))
    assert output[0] == 2.0 and output[3] == 1.0 and falling(np.array([])) == []


def test_a_killed_step_goes_on_at_its_first_missing_part(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module_stages, "PART", 2)
    batches: list[list[int]] = []

    def make(places: range) -> list[dict]:
        if 4 in places and len(batches) < 3:
            batches.append([])
            raise KeyboardInterrupt
        batches.append(list(places))
        return [{"question_id": str(place), "row": place, "label": 2} for place in places]

    questions = [str(place) for place in range(5)]
    stages = CheckpointedTables(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        stages.table("relabel", "x", {"a": 1}, questions, RELABELLED, make)
    _, table = CheckpointedTables(tmp_path).table("relabel", "x", {"a": 1}, questions, RELABELLED, make)
    assert batches == [[0, 1], [2, 3], [], [4]] and table["row"].to_pylist() == [0, 1, 2, 3, 4]
    other, _ = CheckpointedTables(tmp_path).table("relabel", "x", {"a": 2}, questions, RELABELLED, make)
    assert len(batches) == 7 and other
    part = next(tmp_path.rglob("00001"))
    edited = pq.read_table(part / "rows.parquet").slice(1)
    for damage in (lambda: pq.write_table(edited, part / "rows.parquet"), lambda: (part / "facts.json").unlink()):
        damage()
        with pytest.raises(WorkspaceError, match="(altered|cannot be read).*Delete .*00001 and run"):
            for key in ({"a": 1}, {"a": 2}):
                CheckpointedTables(tmp_path).table("relabel", "x", key, questions, RELABELLED, make)


def test_a_part_on_disk_has_its_counts_after_a_kill(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module_stages, "PART", 1)

    def counts() -> Counter[str]:
        stages, counter = CheckpointedTables(tmp_path), Counter()

        def make(places: range) -> list[dict]:
            counter.update(windows=len(places))
            return [{"question_id": str(place), "row": place, "label": 2} for place in places]

        stages.table("rerank", "x", {}, ["0", "1"], RELABELLED, make, counter)
        return stages.counts["rerank x"]

    killed = patch.object(module_stages, "write_json", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        counts()
    assert counts() == counts() == {"windows": 2}


def test_an_empty_ranking_is_no_answer_and_nobody_is_asked(world, tmp_path: Path, reader: Reads) -> None:
    settings = load("embedded", QUICK).settings
    runner = make_runner(world.dataset, world.task, settings, tmp_path / "out")
    empty = Ranking(np.zeros(0, dtype=np.int64), np.zeros(0))
    system = System(world.task, "none", "", "none@1", "none@1", [empty] * 3)
    for reading in runner.read(system, "scripted"):
        assert reading.answers == [NO_ANSWER] * 3
    assert reader.asked == []
    assert [len(one) for one in runner.oracle_rerank(system, world.task.relevance).rankings] == [0, 0, 0]
    scores = Scores(world.task)
    scores.add_system(system, settings.benchmark.metrics)
    assert {float(values.sum()) for values in scores.values.values()} == {0.0}


def test_a_question_without_a_relevant_passage_follows_the_policy(world) -> None:
    world.task.relevance.label_of_row[:4] = 1  # q1 has no fully relevant passage any more
    own = [Ranking(np.arange(group * 4, group * 4 + 4), np.zeros(4)) for group in range(3)]
    scores = Scores(world.task)
    scores.add_system(System(world.task, "own", "", "", "", own), ["Hit@1", "Hit(rel=2)@1", "MRR(rel=2)@100"])
    for policy, value, questions in (("zero", 2 / 3, 3), ("skip", 1.0, 2)):
        settings = load("embedded", [*QUICK, f"benchmark.without_relevant={policy}"]).settings.benchmark
        by_metric = {row["metric"]: (row["value"], row["questions"]) for row in scores.results(settings).to_pylist()}
        assert by_metric["Hit@1"] == (1.0, 3)
        assert by_metric["Hit(rel=2)@1"] == by_metric["MRR(rel=2)@100"] == (pytest.approx(value), questions)
    world.task.relevance.label_of_row[:] = 1
    scores = Scores(world.task)
    scores.add_system(System(world.task, "own", "", "", "", own), ["Hit@1", "Hit(rel=2)@1", "MRR(rel=2)@100"])
    scores.add_system(System(world.task, "other", "", "", "", own), ["Hit@1", "Hit(rel=2)@1", "MRR(rel=2)@100"])
    assert {row["metric"] for row in scores.results(settings).to_pylist()} == {"Hit@1"}, "a mean over nothing is none"
    compared = settings.model_copy(update={"compare": ("Hit@1", "Hit(rel=2)@1")})
    assert {row["metric"] for row in scores.comparisons(compared).to_pylist()} == {"Hit@1"}


def test_reranked_passages_stay_in_front_of_the_rest() -> None:
    output = reorder(Ranking(np.array([5, 6, 7, 8]), np.zeros(4)), np.array([0.1, 0.9, 0.1]))
    assert output.rows.tolist() == [6, 5, 7, 8] and (np.diff(output.scores) <= 0).all() and output.scores[3] < 0.1


class Longest:
    identity = "longest@1"

    def __init__(self, context: plugins.PluginContext) -> None: ...

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) for text in texts], dtype=float)


def test_a_reranker_says_after_each_question_how_far_it_is(world, tmp_path: Path) -> None:
    """So that a terminal shows the time left."""
    progress: list[tuple[str, int, int | None]] = []

    class Heard(Listener):
        def advanced(self, what: str, by: int, total: int | None) -> None:
            progress.append((what, by, total))

    longest = f"{__name__}:Longest"
    own = [Ranking(np.arange(count), np.zeros(count)) for count in (4, 0, 2)]
    runner = make_runner(world.dataset, world.task, load("embedded", QUICK).settings, tmp_path / "out")
    with listening(Heard()):
        reranked = runner.rerank(System(world.task, "own", "", "", "own@1", own), longest)
    lengths = [[len(text) for text in world.task.passages.texts(each.rows.tolist())] for each in reranked.rankings]
    assert lengths == [sorted(each, reverse=True) for each in lengths] and [*map(len, lengths)] == [4, 0, 2]
    assert progress == [(f"own + {longest}: questions", 1, 3)] * 3


def test_passages_of_another_corpus_are_relabelled(world, tmp_path: Path) -> None:
    texts = ["Lima it is.", "A capital.", "La Lima.", "Unsure.", "Known as right.", "Silent."]
    path = write_lines(tmp_path / "c.jsonl", ({"id": str(i), "text": text} for i, text in enumerate(texts)))
    queries = [
        BenchmarkQuery("q3", "Capital of Peru?", ("Lima",), ("Lima",)),
        BenchmarkQuery("q4", "Other?", ("x",), ("x",)),
    ]
    answers = {0: "LIMA", 2: "La Lima", 3: "Perhaps", 4: "Reviewed", 5: NO_ANSWER}
    readers = [_reads({texts[place]: answer for place, answer in answers.items()}),
               _reads({texts[1]: "la lima", texts[5]: NO_ANSWER})]  # fmt: skip
    judge = Rules({"La Lima": True, "Perhaps": None})
    verdicts = known_verdicts(world.dataset.verdicts)
    assert verdicts["q3", "lima"] is True and verdicts["q3", "wrong"] is False
    rows = [np.arange(6), np.array([], dtype=np.int64)]
    labels = relabel(queries, rows, DocumentPassages(Corpus(path)), readers, judge, {("q3", "reviewed"): True})
    # 0 equals gold; 1 by the second labeler; 2 by the judge; 3 could not be read; 4 by the release's verdict; 5 NO
    # ANSWER.
    assert labels == [{0: 2, 1: 2, 2: 2, 3: 0, 4: 2, 5: 0}, {}]
    # "La Lima" and "la lima" are one answer, judged once; gold, NO ANSWER and what is known cost nothing.
    assert sorted(item.candidate for item in judge.asked) == ["La Lima", "Perhaps", "Wrong"]
    assert {item.question_id for item in judge.asked} == {"q3"}


def test_passages_are_read_again_for_a_question_of_another_wording(world, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", [{"id": "1", "text": "A capital."}])
    labeler, queries = _reads({}), world.task.queries
    context = world.context(models=SimpleNamespace(reader=lambda *_: labeler, judge=Rules({})))
    runner = Runner(context, CheckpointedTables(tmp_path / "stages"), world.dataset, {})
    reworded = (replace(queries[0], question="Which one?"), *queries[1:])
    counts = []
    for questions in (queries, queries, reworded):
        task = Task("c", DocumentPassages(Corpus(path)), questions)
        runner.relabel(task, [System(task, "x", "", "", "", [Ranking(np.zeros(1, dtype=int), np.zeros(1))] * 3)])
        counts.append(len(labeler.asked))
    assert counts[0] == counts[1] and counts[2] == 2 * counts[0]


def test_other_corpora_have_hit_and_mrr_at_label_2_only(world) -> None:
    labels = RetrievedLabels([{7: 2, 3: 0}, {3: 0}, {}])
    task = LabelledTask("beside", world.task.passages, world.task.queries, labels)
    rankings = [Ranking(np.array(rows, dtype=np.int64), np.zeros(len(rows))) for rows in ([3, 7], [3], [])]
    metrics = ("Hit@1", "Recall@5", "nDCG@10", "Hit(rel=2)@1", "Hit(rel=2)@10", "MRR(rel=2)@100", "Recall(rel=2)@10")
    scores = Scores(task)
    scores.add_system(System(task, "x", "", "", "", rankings), metrics)
    by_metric = {name: values.tolist() for (_, name), values in scores.values.items()}
    assert by_metric == {"Hit(rel=2)@1": [0, 0, 0], "Hit(rel=2)@10": [1, 0, 0], "MRR(rel=2)@100": [0.5, 0, 0]}


def test_metrics_deeper_than_retrievers_look_are_named(run, notes: list[str]) -> None:
    run("benchmark.depth=12", retrievers=("minilm",), bounds=False, readers=())
    limit = "Retrievers return 12 passages (benchmark.depth); deeper ones count no more: Hit@50, Hit@100"
    assert any(note.startswith(limit) for note in notes)


def test_the_leaderboard_escapes_everything_that_is_not_ours() -> None:
    evil = "<script>alert('x')</script>&\""
    row = {"corpus": evil, "retriever": evil, "reranker": "", "reader": evil, "strategy": "norm", "k": 1,
           "metric": evil, "value": 0.5, "low": 0.4, "high": 0.6, "questions": 3}  # fmt: skip
    pair = {**row, "a": evil, "b": evil, "difference": 0.1, "p_randomisation": 0.5, "p_t": 0.5, "p_holm": 1.0}
    points = [
        {**row, "figure": figure, "line": evil, "x": evil if figure == "5" else "1", "y": 0.5, "passages": 1}
        for figure in ("4 left", "4 right", "5", "6")
    ]
    compared, figures = (
        table.from_rows([{name: each[name] for name in table.schema.names} for each in rows])
        for table, rows in ((COMPARISONS, [pair]), (FIGURES, points))
    )
    bound = {**row, "retriever": "oracle", "value": 1.0}
    output = page({evil: evil}, RESULTS.from_rows([row, bound]), compared, figures, Circularity([evil], {evil: [evil]}))
    assert "<script" not in output and "&lt;script&gt;" in output and "http" not in output and "src=" not in output
    assert 'best">50.00' in output and 'best">100.00' not in output  # a bound is no system


@pytest.mark.parametrize(
    ("changes", "overrides", "error", "message"),
    [
        ({"retrievers": ("bm26",)}, [], SettingsError, "Did you mean 'bm25'"),
        ({"retrievers": ()}, [], SettingsError, "at least one"),
        ({"retrievers": ("oracle",), "bounds": False}, [], SettingsError, "--retriever beside the oracle"),
        ({"retrievers": ("oracle",), "corpora": (Path("c"),)}, [], SettingsError, "beside the oracle"),
        ({"rerankers": ("nope",)}, [], SettingsError, "There is no reranker 'nope'"),
        ({"readers": ("minilm-lat",)}, [], SettingsError, "Did you mean 'minilm-late'"),
        ({"split": "validation"}, [], InputError, "split 'validation' of the release has no question"),
        ({"release": Path("absent")}, [], InputError, "There is no release at absent"),
        ({"corpora": (Path("absent.jsonl"),)}, [], InputError, "There is no corpus"),
        ({"corpora": (Path("a/c.jsonl"), Path("b/c"))}, [], SettingsError, "same name"),
        ({}, ["benchmark.metrics=['Hut@1']"], SettingsError, "Did you mean 'Hit'"),
        ({"corpora": (Path("c"),)}, ["readers=[]"], SettingsError, "no reader with role 'labeler'"),
        ({}, ["benchmark.compare=['Hit@7']"], SettingsError, "neither in benchmark.metrics"),
    ],
)
def test_bad_requests(release: Path, tmp_path: Path, changes, overrides, error, message: str) -> None:
    arguments = {"release": release, "split": "test", "retrievers": ("bm25",), **changes}
    with pytest.raises(error, match=message):
        run_benchmark(BenchmarkRequest(**arguments), load("embedded", [*QUICK, *overrides]).settings, tmp_path / "out")
    assert not (tmp_path / "out" / "stages").exists(), "before any work"


def test_results_do_not_go_into_a_file(release: Path, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(SettingsError, match="out is a file: choose another --out"):
        run_benchmark(BenchmarkRequest(release), load("embedded").settings, tmp_path / "out")


def test_file_names_are_distinct_and_safe() -> None:
    used: list[str] = []
    for system in ("dense:/a/b/model", "dense:/c/model", "late + oracle", "ö/../x"):
        used.append(file_name("release", system, used))
    assert used == ["release-model.run", "release-model-2.run", "release-late-oracle.run", "release-x.run"]
