"""A release's questions with the labels of their passages."""

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.benchmark.task import ReleaseRelevance, release_task
from tests.qa.benchmark.test_retrievers import DESIGNS


@pytest.mark.parametrize("make", DESIGNS)
def test_the_labels_of_some_questions(make) -> None:
    passages, draw = make(), np.random.default_rng(1)
    names = passages.ids(range(len(passages)))
    order, labels = draw.permutation(len(names)), draw.integers(1, 3, len(names)).astype(np.int8)
    relevance = ReleaseRelevance(np.array([1, 3]), passages.starts, labels)
    for query, group in enumerate("13"):
        own = [row for row, name in enumerate(names) if name[1] == group]
        assert relevance.labels(query, order).tolist() == [labels[row] if row in own else 0 for row in order]
        assert relevance.judgements(query).tolist() == sorted(labels[own], reverse=True)
        assert relevance.oracle(query).rows.tolist() == own


def test_labels_count_only_for_the_questions_own_passages(world) -> None:
    relevance = world.task.relevance
    assert relevance.labels(1, np.array([4, 6, 0, 11])).tolist() == [2, 1, 0, 0]
    assert relevance.judgements(2).tolist() == [2, 2, 1, 1]
    assert relevance.oracle(1).rows.tolist() == [4, 5, 6, 7] and set(relevance.oracle(1).scores.tolist()) == {1.0}


def test_a_split_and_an_empty_one(world) -> None:
    assert release_task(world.dataset, "test").question_ids == ["q3"]
    assert release_task(world.dataset, "train").relevance.groups.tolist() == [0, 1]
    with pytest.raises(InputError, match="split 'dev' of the release has no question .train 2, dev 0, test 1."):
        release_task(world.dataset, "dev")
