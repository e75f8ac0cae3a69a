import pytest

import schemas
from quit.models.protocols import Verdict
from quit.stages.answers import Answers
from quit.stages.judge import judge_answers
from quit.stages.label import label_passages

QUESTION = {
    "question_id": "q",
    "question": "Which country?",
    "answers": ["United States"],
    "source": "jsonl",
    "content_key": "k",
}


class LookupJudge:
    """A judge whose verdicts are written down by the test; counts what it is asked."""

    name = "lookup"
    identity = "lookup/1"

    def __init__(self, verdicts: dict[str, bool | None]) -> None:
        self.known = verdicts
        self.asked: list[str] = []

    def verdicts(self, items, sample: int = 0) -> list[Verdict]:
        self.asked += [item.candidate for item in items]
        return [Verdict(self.known[item.candidate], None, "") for item in items]


PASSAGES = schemas.table("passages").from_rows(
    [
        {
            "question_id": "q",
            "subset": "".join(sorted(permutation)),
            "permutation": permutation,
            "hints": len(permutation),
        }
        for permutation in ["0", "01", "1", "10"]
    ]
)
QUESTIONS = schemas.table("questions").from_rows([QUESTION])


def _answers(answers: list[str]) -> Answers:
    return Answers.of(PASSAGES.append_column("answer", [answers]))


ONE = _answers(["NO ANSWER", "USA", "the usa", "Canada"])
TWO = _answers(["United States", "Canada", "canada!", "Mexico"])


def test_each_distinct_answer_is_judged_once_and_free_ones_never() -> None:
    judge = LookupJudge({"USA": True, "Canada": False, "Mexico": None, "the usa": True})
    verdicts = {row["answer_key"]: row for row in judge_answers(QUESTIONS, [ONE, TWO], judge).to_pylist()}
    assert sorted(judge.asked) == [
        "Canada",
        "Mexico",
        "USA",
    ]  # neither the gold answer nor NO ANSWER, and no form twice
    assert verdicts["united states"]["basis"] == "exact" and verdicts["united states"]["correct"] is True
    assert verdicts["no answer"]["basis"] == "no_answer" and verdicts["no answer"]["correct"] is False
    assert verdicts["canada"]["passages"] == 3 and verdicts["usa"]["passages"] == 2
    assert verdicts["mexico"]["correct"] is None  # an unreadable verdict is a state of its own


def test_labels_and_valid_answers() -> None:
    judge = LookupJudge({"USA": True, "Canada": False, "Mexico": None})
    verdicts = judge_answers(QUESTIONS, [ONE, TWO], judge)
    made = label_passages(QUESTIONS, PASSAGES, {"one": ONE, "two": TWO}, verdicts)
    assert made["labels"].to_pylist() == [
        {"question_id": "q", "permutation": "0", "label": 2, "labelers": ["two"]},
        {"question_id": "q", "permutation": "01", "label": 2, "labelers": ["one"]},
        {"question_id": "q", "permutation": "1", "label": 2, "labelers": ["one"]},
        {"question_id": "q", "permutation": "10", "label": 1, "labelers": []},
    ]
    valid = [(row["answer"], row["origin"], row["passages"]) for row in made["valid_answers"].to_pylist()]
    # every accepted surface form, so that labels can be recomputed from the answers by plain comparison
    assert valid == [("United States", "gold", 1), ("USA", "labeler", 1), ("the usa", "labeler", 1)]


def test_answers_in_another_order_are_refused_not_joined_by_position() -> None:
    shuffled = Answers(TWO.rows.take([1, 0, 2, 3]), TWO.distinct)
    with pytest.raises(ValueError, match="two"):
        label_passages(
            QUESTIONS, PASSAGES, {"one": ONE, "two": shuffled}, schemas.table("verdicts").schema.empty_table()
        )
