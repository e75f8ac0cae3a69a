"""Values under the policy and in other corpora."""

import numpy as np
import pytest

from quit.qa.benchmark.relabel import RetrievedLabels
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import System
from quit.qa.benchmark.task import LabelledTask
from quit.qa.settings import load
from quit.retrieval.protocols import Ranking


def test_a_question_without_a_relevant_passage_follows_the_policy(world) -> None:
    world.task.relevance.label_of_row[:4] = 1  # q1 has no fully relevant passage any more
    own = [Ranking(np.arange(group * 4, group * 4 + 4), np.zeros(4)) for group in range(3)]
    scores = Scores(world.task)
    scores.add_system(System(world.task, "own", "", "", "", own), ["Hit@1", "Hit(rel=2)@1", "MRR(rel=2)@100"])
    for policy, value, questions in (("zero", 2 / 3, 3), ("skip", 1.0, 2)):
        settings = load(
            "embedded", ["benchmark.resamples=200", f"benchmark.without_relevant={policy}"]
        ).settings.benchmark
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


def test_other_corpora_have_hit_and_mrr_at_label_2_only(world) -> None:
    labels = RetrievedLabels([{7: 2, 3: 0}, {3: 0}, {}])
    task = LabelledTask("beside", world.task.passages, world.task.queries, labels)
    rankings = [Ranking(np.array(rows, dtype=np.int64), np.zeros(len(rows))) for rows in ([3, 7], [3], [])]
    metrics = ("Hit@1", "Recall@5", "nDCG@10", "Hit(rel=2)@1", "Hit(rel=2)@10", "MRR(rel=2)@100", "Recall(rel=2)@10")
    scores = Scores(task)
    scores.add_system(System(task, "x", "", "", "", rankings), metrics)
    by_metric = {name: values.tolist() for (_, name), values in scores.values.items()}
    assert by_metric == {"Hit(rel=2)@1": [0, 0, 0], "Hit(rel=2)@10": [1, 0, 0], "MRR(rel=2)@100": [0.5, 0, 0]}
