from random import Random

import pyarrow as pa
import pytest

from quit.models.factory import Models
from quit.settings import load
from quit.stages.questions.alike import PlacedQuestion, near_identical, paraphrases


@pytest.mark.parametrize("threshold", [0.3, 0.5, 2 / 3, 0.8, 1.0])
def test_near_identical_questions_are_those_of_a_comparison_of_all(threshold: float) -> None:
    """900 questions of three to eight out of twelve words: every word is in more than 200, so that none is rare."""
    draw = Random(5)
    vocabulary = [f"word{number}" for number in range(12)]
    words = [set(draw.sample(vocabulary, draw.randint(3, 8))) for _ in range(900)]
    splits = [draw.choice(["train", "dev", "test"]) for _ in words]
    questions = [
        PlacedQuestion(str(row), " ".join(some), split)
        for row, (some, split) in enumerate(zip(words, splits, strict=True))
    ]
    assert min(sum(word in some for some in words) for word in vocabulary) > 200
    train, rest = ([row for row in range(900) if splits[row] in names] for names in (["train"], ["dev", "test"]))
    expected = {
        (one, other)
        for one in train
        for other in rest
        if len(words[one] & words[other]) >= threshold * len(words[one] | words[other])
    }
    pairs = [tuple(int(each.question_id) for each in pair) for pair in near_identical(questions, threshold)]
    assert len(expected) >= 20
    assert len(pairs) == len(set(pairs)) and set(pairs) == expected


def test_nobody_gives_way_to_a_question_that_leaves_itself() -> None:
    """The pinned one of train drives out the one of test, so its other twin in train has none any more."""
    texts = [" ".join(f"word{number}" for number in range(count)) for count in (4, 5, 6)]
    pinned, of_test, unpinned = (
        PlacedQuestion(text, text, split, is_pinned)
        for text, split, is_pinned in zip(texts, ("train", "test", "train"), (True, False, False), strict=True)
    )
    assert near_identical([pinned, of_test, unpinned], 0.8) == [(of_test, pinned)]
    either = near_identical([pinned._replace(is_pinned=False), of_test, unpinned], 0.8)
    assert either[1:] == [(unpinned, of_test)]


def test_questions_that_paraphrase_each_other_are_named_where_they_share_a_gold_answer() -> None:
    rows = [
        ("a", "What is the capital of France?", ["Paris"]),
        ("b", "Which city is the capital of France?", ["paris", "Paris, France"]),
        ("c", "Name the capital city of France.", ["Lutetia"]),
        ("d", "Which Trojan prince took Helen to Troy?", ["Paris"]),
    ]
    table = pa.Table.from_pylist([dict(zip(("question_id", "question", "answers"), row, strict=True)) for row in rows])
    encoder = Models(load("embedded").settings).encoder
    assert [(first["question_id"], other["question_id"]) for first, other in paraphrases(table, encoder)] == [
        ("a", "b")
    ]
    assert paraphrases(table.slice(2), encoder) == []
