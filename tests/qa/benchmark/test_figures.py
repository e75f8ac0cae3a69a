"""Figures 4 to 6, worked by hand over the small release (labels of permutations 0, 01, 1, 10: 2, 2, 1, 1)."""

import numpy as np
import pytest

from quit.evaluate.circularity import Circularity
from quit.models.protocols import NO_ANSWER
from quit.qa.benchmark.figures import OPTIMAL, RERANKED, RETRIEVER, figures
from quit.qa.benchmark.leaderboard import page
from quit.qa.benchmark.reading import ReaderAnswers
from quit.qa.benchmark.relabel import RetrievedLabels
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import System
from quit.qa.benchmark.task import LabelledTask
from quit.qa.contracts.benchmark import COMPARISONS, RESULTS
from quit.retrieval.protocols import Ranking

METRICS = ("Hit@1", "Hit(rel=2)@1", "Hit(rel=2)@10", "MRR(rel=2)@100")


def system(task, retriever: str, reranker: str, *rows: list[int]) -> System:
    rankings = [Ranking(np.array(of, dtype=np.int64), -np.arange(len(of))) for of in rows]
    return System(task, retriever, reranker, "", "", rankings)


def points(table, figure: str, *columns: str) -> list[tuple]:
    return [tuple(row[name] for name in columns) for row in table.to_pylist() if row["figure"] == figure]


def test_figure_4_has_each_corpus_by_its_best_retriever(world) -> None:
    """Rows 0 to 3 are q1's, 4 to 7 q2's, 8 to 11 q3's; the first two of each have label 2."""
    a = system(world.task, "a", "", [0, 4], [6, 4], [0])  # label 2 for its question: q1 at rank 1, q2 at rank 2
    b = system(world.task, "b", "", [3], [5], [9])  # q2 and q3 at rank 1
    reranked = system(world.task, "a", "x", [0, 1], [4, 5], [8, 9])
    oracle = system(world.task, "oracle", "", [0, 1], [4, 5], [8, 9])
    labels = RetrievedLabels([{7: 2, 3: 2}, {3: 0}, {2: 2}])
    beside = LabelledTask("wiki", world.task.passages, world.task.queries, labels)
    wiki = system(beside, "b", "", [7, 3], [3], [2])
    scores = [Scores(world.task), Scores(beside)]
    every = [a, b, reranked, oracle, wiki]
    for one in every:
        scores[one is wiki].add_system(one, METRICS)
    table = figures(scores, "zero")
    thirds = pytest.approx(2 / 3)
    assert points(table, "4 left", "line", "retriever", "x", "y") == [
        ("release", "b", "1", thirds), ("release", "b", "10", thirds),
        ("wiki", "b", "1", thirds), ("wiki", "b", "10", thirds),
    ]  # fmt: skip
    # Two of a and two of b on the release; rerankers and oracles find nothing of their own.
    assert points(table, "4 right", "line", "x", "y", "passages") == [
        ("release", "4", thirds, 4), ("wiki", "3", thirds, 3)
    ]  # fmt: skip
    assert not points(table, "5", "x") + points(table, "6", "x")


def read(scores: Scores, of: System, reader: str, right: dict[tuple[str, int], str]) -> None:
    """Add answers: for (strategy, k) the questions that are answered correctly."""
    for (strategy, k), questions in right.items():
        right_for = questions.split()
        answers = [query.gold[0] if query.question_id in right_for else NO_ANSWER for query in scores.task.queries]
        scores.add_reading(ReaderAnswers(of, reader, strategy, k, answers))


def test_figure_5_takes_one_context_a_system_for_all_readers(world) -> None:
    names = (("a", ""), ("a", "x"), ("oracle", "x"))
    plain, reranked, oracle = (system(world.task, *pair, [0], [4], [8]) for pair in names)
    scores = Scores(world.task)
    read(scores, plain, "r", {("norm", 1): "q1", ("freq", 5): "q1 q2 q3"})
    read(scores, plain, "s", {("norm", 1): "q1 q2 q3", ("freq", 5): "q1 q2"})  # norm at 1: 4 of 6, freq at 5: 5 of 6
    read(scores, reranked, "r", {("norm", 1): "q1 q2", ("freq", 5): "q1"})
    read(scores, reranked, "s", {("norm", 1): "", ("freq", 5): ""})
    read(scores, oracle, "r", {("norm", 1): "q1 q2 q3"})
    values = points(figures([scores], "zero"), "5", "line", "x", "strategy", "k", "y")
    thirds = pytest.approx(2 / 3)
    assert values == [
        ("r", "a", "freq", 5, 1.0), ("s", "a", "freq", 5, thirds),
        ("r", "a + x", "norm", 1, thirds), ("s", "a + x", "norm", 1, 0.0),
    ]  # fmt: skip


def test_figure_6_counts_passages_with_a_correct_answer_by_hints(world) -> None:
    """The first passage of a question is read alone; 0 and 2 hold one hint, 1 and 3 two."""
    plain = system(world.task, "a", "", [0, 1], [5], [9])
    better = system(world.task, "b", "", [1], [5], [8])
    of_oracle = system(world.task, "oracle", "x", [1, 0], [4], [10])
    others = (("a", "x"), ("oracle", "oracle"), ("oracle", ""))
    left_out = [system(world.task, *names, [0], [4], [8]) for names in others]
    scores = Scores(world.task)
    read(scores, plain, "r", {("norm", 1): "q1 q2", ("freq", 1): "q1 q2", ("norm", 3): "q1 q2 q3"})
    read(scores, better, "r", {("norm", 1): "q1 q2 q3"})
    read(scores, of_oracle, "r", {("norm", 1): "q1"})
    for one in left_out:
        read(scores, one, "r", {("norm", 1): "q1 q2 q3"})
    # Optimal: every passage of q1 alone, permutations 0, 01, 1, 10; q2 by 01; q3 by none.
    answers = ["Nile", "the nile", "Nile", "nile!"], ["x", "Picasso", "x", "x"], ["x"] * 4
    scores.add_optimal("r", [dict(enumerate(of, start)) for of, start in zip(answers, (0, 4, 8), strict=True)])
    table = figures([scores], "zero")
    assert points(table, "6", "line", "retriever", "x", "passages", "y") == [
        (RETRIEVER, "a", "1", 1, 0.5), (RETRIEVER, "a", "2", 1, 0.5),
        (RETRIEVER, "b", "1", 1, pytest.approx(1 / 3)), (RETRIEVER, "b", "2", 2, pytest.approx(2 / 3)),
        (RERANKED, "oracle", "1", 0, 0.0), (RERANKED, "oracle", "2", 1, 1.0),
        (OPTIMAL, "oracle", "1", 2, 0.4), (OPTIMAL, "oracle", "2", 3, 0.6),
    ]  # fmt: skip
    html = page({}, RESULTS.schema.empty_table(), COMPARISONS.schema.empty_table(), table, Circularity())
    figure_6 = html.partition("(figure 6)")[2]
    assert "33.33" in figure_6 and "50.00" not in figure_6  # the reader is right more often from b than from a
    assert html.count("<svg") == html.count("</svg>") == 2  # figures 5 and 6
    never = Scores(world.task)  # a reader that is never right has a figure without shares
    read(never, system(world.task, "a", "", [0], [], [9]), "r", {("norm", 1): ""})
    assert points(figures([never], "zero"), "6", "x", "passages", "y") == [("1", 0, 0.0), ("2", 0, 0.0)]
