"""Somebody's run file is scored as the benchmark and as TREC's tools score it; a bad line is named."""

import random
from pathlib import Path

import ir_measures
import pytest
import pytrec_eval

from quit.dataset.release_tables import export_tables_of_release
from quit.errors import InputError
from quit.settings import Settings, load
from quit.systems.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.systems.benchmark.results import qrels_lines
from quit.systems.benchmark.runfile import score_run

SETTINGS = Settings().benchmark


def _values(scores) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in scores.results.to_pylist()}


def _run(folder: Path, lines: list[str], mark: str = " ") -> Path:
    path = folder / "x.run"
    path.write_text("".join(line.replace(" ", mark) + "\n" for line in lines))
    return path


def test_a_run_of_the_benchmark_gets_the_figures_of_the_benchmark(release, tmp_path):
    settings = load("embedded", ["benchmark.resamples=100"]).settings
    out = tmp_path / "out"
    rows = run_benchmark(BenchmarkRequest(release, "all", ("minilm",)), settings, out).results.to_pylist()
    columns = ("metric", "value", "low", "high", "questions")
    # Also where scores tie: each passage of a subset has one score, and TREC's tools break ties by id.
    for file, system in {
        "minilm": ("minilm", ""),
        "oracle": ("oracle", ""),
        "minilm-oracle": ("minilm", "oracle"),
    }.items():
        path = out / "runs" / f"release-{file}.run"
        scores = score_run(path, export_tables_of_release(release), "all", settings.benchmark)
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
        lines += [f"{query.question_id} Q0 {name} 7 {score!r} mine" for name, score in scores.items()]
    for line in qrels_lines(world.task):
        question, _, passage, label = line.split()
        qrels.setdefault(question, {})[passage] = int(label)
    scores = score_run(_run(tmp_path, lines, "\t"), export_tables_of_release(release), "all", SETTINGS)
    theirs = {
        "Hit@1": "Success@1", "Hit@5": "Success@5", "Recall@5": "R@5", "Recall@10": "R@10", "MRR@100": "RR",
        "Hit(rel=2)@1": "Success(rel=2)@1", "MRR(rel=2)@100": "RR(rel=2)",
    }  # fmt: skip
    measures = {ours: ir_measures.parse_measure(name) for ours, name in theirs.items()}
    measures |= {f"nDCG@{k}": ir_measures.nDCG @ k for k in (10, 100)}
    paper = {f"nDCG(exp)@{k}": ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3}) @ k for k in (1, 5, 100)}
    expected = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    expected |= ir_measures.calc_aggregate(list(paper.values()), qrels, run)
    for ours, measure in (measures | paper).items():
        assert _values(scores)[ours] == pytest.approx(expected[measure] * 1, abs=1e-9), ours
    each = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "recip_rank"}).evaluate(run)
    for ours, name in (("nDCG@10", "ndcg_cut_10"), ("MRR@100", "recip_rank")):
        assert _values(scores)[ours] == pytest.approx(sum(row[name] for row in each.values()) / 3, abs=1e-9)
    assert scores.name == "mine" and scores.missing == 3 - len(run)
    assert scores.unknown == sum(name in ("unknown_0_0", "other") for given in run.values() for name in given)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("q1 Q0 q1_0_0 1 0.5", "line 2 has 5 columns ('q1 Q0 q1_0_0 1 0.5')"),
        ("q1 Q0 q1_0_0 1 0.5 my run", "line 2 has 7 columns"),
        ("q1 Q0 q1_0_0 1 high mine", "line 2: the score, column 5, is 'high'"),
        ("q1 Q0 q1_0_0 1 nan mine", "line 2: the score, column 5, is 'nan'"),
        ("q1 Q0 q1_1_1 1 0.5 mine", "line 2 has 'q1_1_1' a second time for 'q1'"),
    ],
)
def test_a_bad_line_is_named_by_its_number(release, tmp_path, line, words):
    path = _run(tmp_path, ["q1 Q0 q1_1_1 1 0.5 mine", line])
    with pytest.raises(InputError) as error:
        score_run(path, export_tables_of_release(release), "all", SETTINGS)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "holds no line"),
        (b"q1 Q0 \xff 1 2 x\n", "line 1 is no UTF-8"),
        (b"7 Q0 q1_1_1 1 2 x\n", "ranks no question of the split 'all': it has '7', the split 'q1'"),
        (b"q1 Q0 MARCO_1 1 2 x\n", "ranks no passage of the release: it has 'MARCO_1', the release 'q1_0_0'"),
    ],
)
def test_a_run_of_something_else_is_refused(release, tmp_path, content, words):
    path = tmp_path / "x.run"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        score_run(path, export_tables_of_release(release), "all", SETTINGS)
    assert words in str(error.value)
