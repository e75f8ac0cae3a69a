from typing import Any

import pyarrow as pa
import pytest

from quit import contracts
from quit.settings import Settings
from quit.stages.judge import judge_answers
from quit.stages.label import label_passages, label_stage
from quit.stages.labelling.answers import Answers
from quit.stages.stage import Context
from tests.answers import Rules
from tests.rows import answers_in, table_of, tuples

PASSAGES = table_of("passages", [{"question_id": "q", "permutation": one} for one in ("0", "01", "1", "10", "2")])
QUESTION = {"question_id": "q", "question": "Which country?", "answers": ["United States", "America"]}
QUESTIONS = table_of("questions", [QUESTION])
VERDICTS = {"USA": True, "Canada": False, "Mexico": None}


def _answers(answers: list[str]) -> Answers:
    """Return answers to the passages; "USA!" is the reply to a passage that is not there any more."""
    more = answers_in(pa.concat_tables([PASSAGES, PASSAGES.slice(0, 1)]).append_column("answer", [[*answers, "USA!"]]))
    return Answers(more.rows.slice(0, len(PASSAGES)), more.distinct)


ONE = _answers(["NO ANSWER", "USA", "the usa", "Canada", "USA"])
TWO = _answers(["United States", "Canada", "canada!", "Mexico", "United States"])


def test_labels_and_valid_answers() -> None:
    verdicts = judge_answers(QUESTIONS, [ONE, TWO], Rules(VERDICTS))
    labelled = label_passages(QUESTIONS, PASSAGES, {"one": ONE, "two": TWO}, verdicts)
    labels = [("0", 2, ["two"]), ("01", 2, ["one"]), ("1", 2, ["one"]), ("10", 1, []), ("2", 2, ["one", "two"])]
    assert tuples(labelled["labels"], "permutation", "label", "labelers", question_id="q") == labels
    # every accepted surface form, so that labels can be recomputed from the answers by plain comparison
    valid = [("United States", "gold", 2), ("America", "gold", 0), ("USA", "labeler", 2), ("the usa", "labeler", 1)]
    assert tuples(labelled["valid_answers"], "answer", "origin", "passages") == valid


def test_many_labelers_cost_what_their_answers_cost() -> None:
    """No set of labelers is made that no passage has: of 40 there are 2 ** 40."""
    by_name = {f"l{number}": ONE for number in range(40)}
    verdicts = judge_answers(QUESTIONS, [ONE], Rules(VERDICTS))
    labels = label_passages(QUESTIONS, PASSAGES, by_name, verdicts)["labels"]
    assert labels["labelers"].to_pylist() == [[], [*by_name], [*by_name], [], [*by_name]]


def test_the_stage_gives_what_the_function_gives() -> None:
    verdicts = judge_answers(QUESTIONS, [ONE, TWO], Rules(VERDICTS))
    tables: dict[str, Any] = {"questions": QUESTIONS, "passages": PASSAGES, "verdicts": verdicts}
    readers = {name: lambda columns, table=table: table.select(columns) for name, table in tables.items()}
    by_reader = {"one": ONE, "two": TWO}
    settings = Settings(readers=[{"name": name, "role": "labeler"} for name in by_reader])
    labelled = label_stage.function(
        Context({}, settings, None),
        answers=lambda columns, reader, _: by_reader[reader].rows.select(columns),
        distinct_answers=lambda columns, reader, _: by_reader[reader].distinct.select(columns),
        **readers,
    )["labels"]
    assert labelled["label"].to_pylist() == [2, 2, 2, 1, 2]
    assert labelled["labelers"].to_pylist() == [["two"], ["one"], ["one"], [], ["one", "two"]]


def test_answers_in_another_order_are_refused_not_joined_by_position() -> None:
    shuffled = Answers(TWO.rows.take([1, 0, 2, 3, 4]), TWO.distinct)
    with pytest.raises(ValueError, match="two"):
        verdicts = contracts.table("verdicts").schema.empty_table()
        label_passages(QUESTIONS, PASSAGES, {"one": ONE, "two": shuffled}, verdicts)
