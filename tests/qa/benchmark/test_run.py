"""Rankings by retrievers, rerankers and the oracle."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quit.common.progress import Listener, listening
from quit.qa.benchmark.plugins import PluginContext
from quit.qa.benchmark.run import Runner, System, reorder
from quit.qa.benchmark.stages import CheckpointedTables
from quit.retrieval.protocols import Ranking


def test_reranked_passages_stay_in_front_of_the_rest() -> None:
    output = reorder(Ranking(np.array([5, 6, 7, 8]), np.zeros(4)), np.array([0.1, 0.9, 0.1]))
    assert output.rows.tolist() == [6, 5, 7, 8] and (np.diff(output.scores) <= 0).all() and output.scores[3] < 0.1


class Longest:
    identity = "longest@1"

    def __init__(self, context: PluginContext) -> None: ...

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
    runner = Runner(world.context(), CheckpointedTables(tmp_path / "stages"), world.dataset)
    with listening(Heard()):
        reranked = runner.rerank(System(world.task, "own", "", "", "own@1", own), longest)
    lengths = [[len(text) for text in world.task.passages.texts(each.rows.tolist())] for each in reranked.rankings]
    assert lengths == [sorted(each, reverse=True) for each in lengths] and [*map(len, lengths)] == [4, 0, 2]
    assert progress == [(f"own + {longest}: questions", 1, 3)] * 3


def test_the_oracle_orders_by_label_and_leaves_what_is_deeper(world, tmp_path: Path) -> None:
    """Permutations 0, 01, 1, 10 of q1 are rows 0 to 3, with the labels 2, 2, 1, 1; others of q2 have none for q1."""
    runner = Runner(world.context("benchmark.rerank_depth=3"), CheckpointedTables(tmp_path / "stages"), world.dataset)
    found = [Ranking(np.array(rows, dtype=np.int64), np.zeros(len(rows))) for rows in ([5, 3, 0, 1], [], [9])]
    system = System(world.task, "own", "", "", "own@1", found)
    reranked = runner.oracle_rerank(system, world.task.relevance)
    assert [ranking.rows.tolist() for ranking in reranked.rankings] == [[0, 3, 5, 1], [], [9]]
    own = runner.oracle(world.task)
    assert [ranking.rows.tolist() for ranking in own.rankings] == [[*range(at, at + 4)] for at in (0, 4, 8)]
    assert reranked.name == "own + oracle" and own.name == "oracle"
