"""Verdicts: which answers are judged, and in which of their forms."""

from collections.abc import Callable
from types import SimpleNamespace

import pyarrow as pa
import pytest

from quit.models.protocols import JudgeItem
from quit.settings import Settings
from quit.stages.judge import judge_answers, judge_stage
from quit.stages.labelling.answers import Answers, number_answers
from tests.answers import Rules
from tests.rows import table_of

GOLD = {"country": ["United States", "America"], "city": ["Rome"]}
ASKED = [{"question_id": one, "question": f"Which {one}?", "answers": golds} for one, golds in GOLD.items()]
QUESTIONS = table_of("questions", ASKED)


def _judge(name: str, *accepted: str) -> Rules:
    """Return a judge that knows nothing of Oslo."""
    verdicts = {"oslo": None, "Oslo": None, **dict.fromkeys(accepted, True)}
    return Rules(verdicts, name, (0.75, "said", "noted"))


def _replies(country: list[str], city: list[str], asked: list[bool]) -> dict[str, pa.Table]:
    question_ids = ["country"] * len(country) + ["city"] * len(city)
    rows = {"question_id": question_ids, "permutation": list(map(str, range(len(question_ids))))}
    return number_answers(pa.table({**rows, "answer": country + city, "asked": asked}))


# USA: one reader says "the usa" most often, both together "USA" as often as that.
REPLIES = {
    "one": _replies(["the usa", "USA", "the usa", "NO ANSWER"], ["rome!", "Oslo"], [True] * 3 + [False, True, True]),
    "two": _replies(["USA", "U.S.A.", "america"], ["Oslo", "oslo", "oslo", "oslo", "NO ANSWER"], [True] * 8),
}  # fmt: skip


@pytest.mark.parametrize(("first_reader_wins", "forms"), [(False, ["oslo", "USA"]), (True, ["Oslo", "the usa"])])
def test_an_answer_is_judged_once_in_its_most_frequent_form_and_what_costs_nothing_never(
    first_reader_wins, forms
) -> None:
    judge = _judge("plain", "USA", "the usa")
    replies = [Answers.numbered(tables) for tables in REPLIES.values()]
    rows = judge_answers(QUESTIONS, replies, judge, first_reader_wins).to_pylist()
    assert judge.asked == [
        JudgeItem("city", "Which city?", ("Rome",), forms[0]),
        JudgeItem("country", "Which country?", ("United States", "America"), forms[1]),
    ]
    columns = ("question_id", "answer_key", "answer", "correct", "basis", "passages", "probability")
    assert [tuple(row[column] for column in columns) for row in rows] == [
        ("city", "no answer", "NO ANSWER", False, "no_answer", 1, None),
        ("city", "oslo", forms[0], None, "model", 5, 0.75),
        ("city", "rome", "rome!", True, "exact", 1, None),
        ("country", "america", "america", True, "exact", 1, None),
        ("country", "usa", forms[1], True, "model", 5, 0.75),
    ]  # that of country was written where the reader was not asked: no answer
    assert {(row["judge"], row["producer"]) for row in rows} == {("plain", "plain@1")}
    assert [row["raw"] for row in rows] == ["", "said", "", "", "said"]
    assert [row["note"] for row in rows] == [None, "noted", None, None, "noted"]


def _of(name: str) -> Callable[..., pa.Table]:
    return lambda columns, reader, question_ids: REPLIES[reader][name].select(columns)


@pytest.mark.parametrize(("partial", "form"), [("off", "USA"), ("exact", "the usa")])
def test_a_second_judge_rules_on_the_same_answers(partial: str, form: str) -> None:
    readers = [{"name": name, "role": "labeler"} for name in ("one", "two")]
    settings = Settings.model_validate({"readers": readers, "labels": {"partial": partial}})
    first, second = _judge("first", form), _judge("second")
    for judge in (second, None):
        context = SimpleNamespace(models=SimpleNamespace(judge=first, second_judge=judge), settings=settings)
        tables = judge_stage.run(
            context, {"questions": QUESTIONS, **{name: _of(name) for name in ("answers", "distinct_answers")}}
        )
        for name, expected in (
            ("verdicts", [("first", form, True)]),
            ("second_verdicts", [("second", form, False)] if judge else []),
        ):
            usa = [row for row in tables[name].to_pylist() if row["answer_key"] == "usa"]
            assert [(row["judge"], row["answer"], row["correct"]) for row in usa] == expected
