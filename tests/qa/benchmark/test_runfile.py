"""Somebody's run file is scored as the benchmark and as TREC's tools score it; a bad line is named."""

import json
import random
from functools import partial
from itertools import chain
from pathlib import Path
from unicodedata import normalize

import pytest
import pytrec_eval

from quit.common.safe import safe_id
from quit.dataset.dataset import Dataset
from quit.errors import InputError
from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.qa.benchmark.files import qrels_lines
from quit.qa.benchmark.runfile import score_run
from quit.qa.settings import QaSettings, load
from tests.release import small
from tests.rows import cases

SETTINGS = QaSettings().benchmark


def test_a_run_of_the_benchmark_gets_the_figures_of_the_benchmark(release, tmp_path):
    settings = load("embedded", ["benchmark.resamples=100"]).settings
    rows = run_benchmark(BenchmarkRequest(release, "all", ("minilm",)), settings, tmp_path / "B").results.to_pylist()
    columns = ("metric", "value", "low", "high", "questions")
    # Also where scores tie: each passage of a subset has one score, and TREC's tools break ties by id.
    for system in (("minilm", ""), ("oracle", ""), ("minilm", "oracle")):
        path = tmp_path / "B" / "runs" / f"release-{'-'.join(filter(None, system))}.run"
        scores = score_run(path, Dataset.of_release(release), "all", settings.benchmark)
        published = [[row[name] for name in columns] for row in rows if (row["retriever"], row["reranker"]) == system]
        assert [[row[name] for name in columns] for row in scores.results.to_pylist()] == published
        assert (scores.split, scores.others, scores.unknown) == (3, 0, 0)


def test_ids_as_exports_write_them_and_as_they_are(tmp_path: Path) -> None:
    """... in JSON too, in which they need no other spelling."""
    names = {"q1": "50%pi", "q2": "caf\u00e9 au lait", "q3": "q3"}
    rows = small.rows()
    for row in chain.from_iterable(rows.values()):
        if "question_id" in row:
            row["question_id"] = names[row["question_id"]]
    dataset = Dataset.of_release(small.freeze(tmp_path / "R", rows).path)
    scores = []
    for spell in (safe_id, str, partial(normalize, "NFD")):
        run = {spell(name): {f"{spell(name)}_0_0": 1.0} for name in names.values()}
        (tmp_path / "run.json").write_text(json.dumps(run))
        scores.append(score_run(tmp_path / "run.json", dataset, "all", SETTINGS))
    assert [(each.missing, each.others, each.unknown) for each in scores] == [(0, 0, 0)] * 3
    assert scores[0].results.equals(scores[1].results) and scores[0].results.equals(scores[2].results)


@pytest.mark.parametrize("seed", range(5))
def test_the_tools_of_trec_agree_also_where_scores_are_equal(world, release, tmp_path, seed):
    draw = random.Random(seed)
    ids = world.task.passages.ids(range(len(world.task.passages)))
    lines, run, qrels = [], {}, {}
    for query in world.task.queries[: draw.choice([2, 3])]:
        ranked = draw.sample([*ids, "unknown_0_0", "other"], draw.choice([1, 5, len(ids)]))
        # the column rank is nonsense, half of the scores are equal, and two differ in float64 only
        scores = {name: draw.choice([1.0, 1.0 + 1e-12, draw.random(), -draw.random()]) for name in ranked}
        run[query.question_id] = scores
        lines += [f"{query.question_id}\tQ0\t{name}\t7\t{score!r}\tmine\n" for name, score in scores.items()]
    for line in qrels_lines(world.task):
        question, _, passage, label = line.split()
        qrels.setdefault(question, {})[passage] = int(label)
    (tmp_path / "x.run").write_text("".join(lines))
    scores = score_run(tmp_path / "x.run", Dataset.of_release(release), "all", SETTINGS)
    values = {row["metric"]: row["value"] for row in scores.results.to_pylist()}
    theirs = {
        1: {"Hit@1": "success_1", "Hit@5": "success_5", "Recall@5": "recall_5", "Recall@10": "recall_10",
            "MRR@100": "recip_rank", "nDCG@10": "ndcg_cut_10", "nDCG@100": "ndcg_cut_100"},
        2: {"Hit(rel=2)@1": "success_1", "MRR(rel=2)@100": "recip_rank"},
    }  # fmt: skip
    for level, names in theirs.items():
        each = pytrec_eval.RelevanceEvaluator(qrels, set(names.values()), relevance_level=level).evaluate(run).values()
        for ours, name in names.items():
            assert values[ours] == pytest.approx(sum(row[name] for row in each) / 3, abs=1e-9), ours
    assert scores.name == "mine" and scores.missing == 3 - len(run)
    assert scores.unknown == sum(name in ("unknown_0_0", "other") for given in run.values() for name in given)


@pytest.mark.parametrize(
    ("ids", "run", "scored"),
    [
        (("jsonl-1", "jsonl-2", "csv-3"), ["1", "3"], ["jsonl-1", "csv-3"]),
        (("jsonl-1", "csv-1", "csv-3"), ["1", "3"], ["csv-3"]),  # two questions of that name
        (("jsonl-a_b", "jsonl-c", "csv-3"), ["a b", "a_b", "3"], ["csv-3"]),  # two names of the run
        (("jsonl-1", "csv-2", "csv-3"), ["jsonl-1", "1", "csv-2"], ["jsonl-1", "csv-2"]),
    ],
)
def test_a_sources_id_is_a_questions_only_where_no_other_is_meant(ids, run, scored, tmp_path: Path) -> None:
    names, rows = dict(zip(("q1", "q2", "q3"), ids, strict=True)), small.rows()
    for row in chain.from_iterable(rows.values()):
        if "question_id" in row:
            row["question_id"] = names[row["question_id"]]
    dataset = Dataset.of_release(small.freeze(tmp_path / "R", rows).path)
    (tmp_path / "run.json").write_text(json.dumps({name: {f"{ids[0]}_0_0": 1.0} for name in run}))
    scores = score_run(tmp_path / "run.json", dataset, "all", SETTINGS)
    assert (scores.missing, scores.others) == (3 - len(scored), len(run) - len(scored))


@pytest.mark.parametrize(("content", "words"), cases(__file__, "bad_runs.jsonl"))
def test_a_bad_line_or_a_run_of_something_else_is_refused(release, tmp_path, content, words):
    path = tmp_path / "x.run"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(InputError) as error:
        score_run(path, Dataset.of_release(release), "all", SETTINGS)
    assert words in str(error.value)
