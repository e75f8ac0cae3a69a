"""Somebody's run file is scored as the benchmark and as TREC's tools score it; a bad line is named."""

import random

import pytest
import pytrec_eval

from quit.dataset.dataset import Dataset
from quit.errors import InputError
from quit.settings import Settings, load
from quit.systems.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.systems.benchmark.results import qrels_lines
from quit.systems.benchmark.runfile import score_run

SETTINGS = Settings().benchmark


def test_a_run_of_the_benchmark_gets_the_figures_of_the_benchmark(release, tmp_path):
    settings = load("embedded", ["benchmark.resamples=100"]).settings
    rows = run_benchmark(BenchmarkRequest(release, "all", ("minilm",)), settings, tmp_path).results.to_pylist()
    columns = ("metric", "value", "low", "high", "questions")
    # Also where scores tie: each passage of a subset has one score, and TREC's tools break ties by id.
    for system in (("minilm", ""), ("oracle", ""), ("minilm", "oracle")):
        path = tmp_path / "runs" / f"release-{'-'.join(filter(None, system))}.run"
        scores = score_run(path, Dataset.of_release(release), "all", settings.benchmark)
        published = [[row[name] for name in columns] for row in rows if (row["retriever"], row["reranker"]) == system]
        assert [[row[name] for name in columns] for row in scores.results.to_pylist()] == published
        assert (scores.split, scores.others, scores.unknown) == (3, 0, 0)


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


GOOD = b"q1 Q0 q1_1_1 1 0.5 mine\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD + b"q1 Q0 q1_0_0 1 0.5", "line 2 has 5 columns ('q1 Q0 q1_0_0 1 0.5')"),
        (GOOD + b"q1 Q0 q1_0_0 1 0.5 my run", "line 2 has 7 columns"),
        (GOOD + b"q1 Q0 q1_0_0 1 high mine", "line 2: the score, column 5, is 'high'"),
        (GOOD + b"q1 Q0 q1_0_0 1 nan mine", "line 2: the score, column 5, is 'nan'"),
        (GOOD + GOOD, "line 2 has 'q1_1_1' a second time for 'q1'"),
        (b"", "is empty"),
        (b"\n\n", "holds no line"),
        (b"q1 Q0 \xff 1 2 x\n", "line 1 is no UTF-8"),
        (b"7 Q0 q1_1_1 1 2 x\n", "ranks no question of the split 'all': it has '7', the split 'q1'"),
        (b"q1 Q0 MARCO_1 1 2 x\n", "ranks no passage of the release: it has 'MARCO_1', the release 'q1_0_0'"),
    ],
)
def test_a_bad_line_or_a_run_of_something_else_is_refused(release, tmp_path, content, words):
    path = tmp_path / "x.run"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        score_run(path, Dataset.of_release(release), "all", SETTINGS)
    assert words in str(error.value)
