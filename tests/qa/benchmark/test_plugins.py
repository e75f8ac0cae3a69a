"""Systems of other packages: classes by their names."""

import json
import sys
from pathlib import Path

import bm25s
import numpy as np
import pytest

from quit.errors import InputError, SettingsError
from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.qa.benchmark.plugins import make_retriever, valid_ranking, valid_scores
from quit.qa.settings import load
from quit.retrieval.protocols import Ranking
from tests.docs.pages import blocks
from tests.paths import ROOT

PLUGIN = """
import numpy as np
from quit.retrieval.protocols import Ranking
from quit.models.protocols import Reply
class FirstRows:
    def __init__(self, context):
        self.count = 10
        self.identity = f"first-rows@1/{self.count}"
    def search(self, queries, depth):
        rows = np.arange(min(self.count, depth))
        return [Ranking(rows, -rows.astype(np.float32)) for _ in queries]
class Longest:
    identity, counts = "longest@1", [1, 2, 3]  # which are not a listwise reranker's counts
    def __init__(self, context):
        pass
    def score(self, query, texts):
        return np.array([len(text) for text in texts], dtype=np.float64)
class Echo:
    name, identity = "echo", "echo@1"
    def __init__(self, context):
        pass
    def answer(self, prompts, sample=0):
        return [Reply(p.hints[-1], p.hints[-1].rstrip(".").split()[-1]) for p in prompts]
def nothing(context):
    return {}
"""
NAME = "quit_plugin_of_a_test"
FIRST, LONGEST, ECHO = (f"{NAME}:{name}" for name in ("FirstRows", "Longest", "Echo"))


@pytest.fixture
def install(tmp_path: Path, monkeypatch):
    """Write a module of the path."""

    def install(code: str = PLUGIN) -> None:
        (tmp_path / f"{NAME}.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))

    yield install
    sys.modules.pop(NAME, None)


def test_a_run_of_plugins_alone_has_the_values_computed_by_hand(release, install, tmp_path: Path) -> None:
    """q3's own passages are rows 8 to 11, with labels 2, 2, 1, 1; the first ten rows hold two of them, at ranks 9 and
    10."""
    install()
    request = BenchmarkRequest(release, "test", (FIRST,), (LONGEST,), (ECHO,))
    settings = load("embedded", ["benchmark.resamples=100"]).settings
    outcome = run_benchmark(request, settings, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["replies"] == {}
    keys = ("retriever", "reranker", "reader", "strategy", "k", "metric")
    values = {tuple(row[key] for key in keys): row["value"] for row in outcome.results.to_pylist()}
    for metric, value in {"Hit@5": 0.0, "Hit@10": 1.0, "MRR@100": 1 / 9, "Recall@10": 0.5}.items():
        assert values[FIRST, "", "", "", 0, metric] == pytest.approx(value)
    # By length: of the first ten rows those of two hints are 1, 3 (q1), 5, 7 (q2) and 9 (q3), with 31, 31, 39, 39 and
    # 43 characters: 9 is in front, of label 2.
    assert values[FIRST, LONGEST, "", "", 0, "MRR@100"] == 1.0
    assert values[FIRST, "oracle", "", "", 0, "nDCG(exp)@1"] == 1.0
    assert values["oracle", "", "", "", 0, "Recall@5"] == 1.0
    # Echo reads "Pacific" or "it": never Lima.
    assert values["oracle", "oracle", ECHO, "any", 1, "EM"] == 0.0


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("for _ in queries]", "for _ in queries[1:]]", "retriever .*FirstRows. returned 0 rankings to 1 query"),
        ("min(self.count, depth)", "1 / 0", "retriever .*FirstRows. raised ZeroDivisionError: division by zero"),
        ("[len(text) for", "[text.length for", "reranker .*Longest. raised AttributeError: .* 'length'"),
        (
            "for p in prompts]",
            "for p in prompts[1:]]",
            "reader .release: .*Echo. returned 2 replies to 3 prompts",
        ),
        ("[-1])", "[99])", "reader .release: .*Echo. raised IndexError: list index out of range"),
    ],
)
def test_what_a_plugin_does_wrong_is_named(
    release, install, tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    install(PLUGIN.replace(right, wrong))
    request = BenchmarkRequest(release, "test", (FIRST,), (LONGEST,), (ECHO,))
    with pytest.raises(InputError, match=message):
        run_benchmark(request, load("embedded").settings, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "message"),
    [("Echo", "makes no retriever: it has to have"), ("nothing", "is not a class"), ("Gone", "no attribute 'Gone'")],
)
def test_what_is_no_plugin(world, install, name: str, message: str) -> None:
    install()
    with pytest.raises(SettingsError, match=message):
        make_retriever(f"{NAME}:{name}", world.context())


@pytest.mark.parametrize(
    ("rows", "scores", "message"),
    [([0, 99], [1, 0], "outside 0 to 11"), ([-1], [1], "outside"), ([3, 3], [1, 0], "twice"),
     ([3], [np.nan], "not a finite"), ([3, 4], [1], "rows and")],
)  # fmt: skip
def test_rankings_that_cannot_be(rows, scores, message: str) -> None:
    with pytest.raises(InputError, match=message):
        valid_ranking("mine", Ranking(np.array(rows), np.array(scores, dtype=np.float32)), 12, 5)


def test_rankings_are_put_in_order_and_cut() -> None:
    values = valid_ranking("mine", Ranking(np.array([5, 2, 9]), np.array([1.0, 1.0, 3.0])), 12, 2)
    assert values.rows.tolist() == [9, 2]
    assert len(valid_ranking("mine", Ranking(np.array([], dtype=np.int64), np.array([])), 12, 2)) == 0


@pytest.mark.parametrize("scores", [[1.0, np.inf], [1.0]])
def test_scores_that_cannot_be(scores: list[float]) -> None:
    with pytest.raises(InputError, match="'mine' returned no finite score per passage"):
        valid_scores("mine", np.array(scores), 2)


def test_the_class_in_the_docs_is_bm25_by_its_name(world, tmp_path: Path, monkeypatch) -> None:
    [code] = [block.text for block in blocks(ROOT / "docs" / "howto" / "benchmark.md") if block.kind == "python"]
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # another test's
    context = world.context()
    retriever = make_retriever("mine:Bm25", context)
    [values] = retriever.search(["it is a river"], 5)
    texts = context.passages.texts(range(len(context.passages)))
    independent = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    independent.index([text.lower().split() for text in texts], show_progress=False)
    expected = independent.get_scores(["it", "is", "a", "river"])
    assert values.scores == pytest.approx(np.sort(expected)[::-1][:5], rel=1e-5) and expected[values.rows[0]] > 0
    assert values.scores == pytest.approx(expected[values.rows], rel=1e-5)
    assert retriever.identity == "my BM25 1"
    (tmp_path / "broken.py").write_text("1 / 0")
    for name, message in (
        ("dens:x", "Did you mean 'dense'"),
        ("mine:Nothing", "has no attribute 'Nothing'"),
        ("broken:Bm25", r"ZeroDivisionError: .*broken\.py, line 1"),
        ("mine:Counter", "cannot be made of a PluginContext"),
    ):
        with pytest.raises(SettingsError, match=message):
            make_retriever(name, context)
    monkeypatch.delitem(sys.modules, "mine")
