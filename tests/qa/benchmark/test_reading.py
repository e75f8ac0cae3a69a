"""Which contexts and passages a reader is asked about."""

from pathlib import Path

import numpy as np
import pytest

from quit.models.protocols import NO_ANSWER
from quit.qa.benchmark.reading import read, read_passages
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.stages import CheckpointedTables
from quit.retrieval.protocols import Ranking
from tests.answers import Reads
from tests.release import small


@pytest.fixture
def reader(monkeypatch) -> Reads:
    """A reader that answers with its first hint, in place of any other."""
    output = Reads(lambda prompt, _: prompt.hints[0])
    monkeypatch.setattr("quit.qa.benchmark.plugins.make_reader", lambda *_: output)
    return output


def _runner(world, folder: Path, *overrides: str) -> Runner:
    return Runner(world.context(*overrides), CheckpointedTables(folder), world.dataset)


def test_an_empty_ranking_is_no_answer_and_nobody_is_asked(world, tmp_path: Path, reader: Reads) -> None:
    empty = Ranking(np.zeros(0, dtype=np.int64), np.zeros(0))
    system = System(world.task, "none", "", "none@1", "none@1", [empty] * 3)
    runner = _runner(world, tmp_path)
    for reading in read(runner, system, "scripted"):
        assert reading.answers == [NO_ANSWER] * 3
    assert reader.asked == []
    scores = Scores(world.task)
    scores.add_system(system, runner.settings.metrics)
    assert {float(values.sum()) for values in scores.values.values()} == {0.0}


def test_a_context_that_two_strategies_give_is_read_once(world, tmp_path: Path, reader: Reads) -> None:
    """q3's passages 0, 01, 1 are rows 8 to 10: both strategies give hints 0, 1 at k = 2, and hint 0 at k = 1."""
    found = [Ranking(np.array(rows, dtype=np.int64), np.zeros(len(rows))) for rows in ([], [], [8, 9, 10])]
    system = System(world.task, "own", "", "own@1", "own@1", found)
    answers = read(_runner(world, tmp_path, "benchmark.k=[1,2]"), system, "scripted")
    pacific, pizarro = small.HINTS["q3"]
    assert [(each.strategy, each.k) for each in answers] == [("norm", 1), ("freq", 1), ("norm", 2), ("freq", 2)]
    assert [each.answers for each in answers] == [[NO_ANSWER, NO_ANSWER, pacific]] * 4
    assert [prompt.hints for prompt in reader.asked] == [(pacific,), (pacific, pizarro)]


def test_answers_to_every_passage_are_the_releases_where_the_reader_gave_them(
    world, tmp_path: Path, reader: Reads
) -> None:
    reader.identity = "one@1"
    runner = _runner(world, tmp_path)
    of_release = read_passages(runner, world.task, "one")
    right = small.GOLD["q2"]  # the labeler is right on passages that begin with hint 0
    assert of_release[1] == {4: right, 5: right, 6: "Wrong", 7: "Wrong"} and not reader.asked
    reader.identity = "one@2"
    first, second = small.HINTS["q2"]
    assert read_passages(runner, world.task, "one")[1] == {4: first, 5: first, 6: second, 7: second}
    assert len(reader.asked) == 12
