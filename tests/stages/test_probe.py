"""The parametric probe: who is asked what, and when a question counts as answerable without hints."""

from collections.abc import Sequence
from types import SimpleNamespace

import pyarrow as pa
import pytest

from quit.models.equivalence import EmbeddedEquivalence
from quit.models.judges import EquivalenceJudge
from quit.models.protocols import NO_ANSWER, Prompt, Reply
from quit.models.readers.cleaning import clean_answer
from quit.settings import Settings
from quit.stages.probe import judged, parametric, probe, probe_stage
from quit.stages.stage import Context
from tests.answers import Reads, Rules
from tests.rows import table_of


def _knows(answers: dict[tuple[str, int], str]) -> Reads:
    """Return a reader that answers by (question id, repetition), and else does not answer."""
    return Reads(lambda prompt, sample: answers.get((prompt.question_id, sample), NO_ANSWER), clean_answer)


def _tables(*identities: str, described: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    questions = [{"question_id": name, "question": f"{name}?", "answers": ["New York"]} for name in identities]
    return table_of("questions", questions), table_of("descriptions", [{"question_id": name} for name in described])


def test_every_described_question_is_asked_without_a_hint_as_often_as_set() -> None:
    reader = _knows({("a", 0): "new york", ("a", 1): "Perhaps", ("c", 1): "The Big Apple"})
    models = SimpleNamespace(
        reader=lambda name, whole: {("r", ()): reader}[name, tuple(whole)],
        judge=Rules({"The Big Apple": True, "Perhaps": None}),
    )
    context = Context({}, Settings(probe={"repetitions": 2}), models, reader="r")
    questions, descriptions = _tables("a", "b", "c", described=["a", "c"])
    inputs = {"questions": questions, "descriptions": descriptions}
    answers = probe_stage.run(context, inputs)["probe_answers"]
    assert [tuple(row.values())[:6] for row in answers.to_pylist()] == [
        ("a", "scripted", 0, "new york", "new york", True),  # equals the gold answer
        ("a", "scripted", 1, "Perhaps", "Perhaps", None),
        ("c", "scripted", 0, NO_ANSWER, NO_ANSWER, False),
        ("c", "scripted", 1, "The Big Apple", "The Big Apple", True),  # the judge says so
    ]
    assert reader.asked == [Prompt(name, f"{name}?", (), "LOC:LOCATION", "city:City") for name in "ac"] * 2
    assert parametric(answers) == {"a": True, "c": True}


def test_a_reader_that_leaves_a_question_out_moves_no_answer_to_another() -> None:
    reader = _knows({})
    reader.answer = lambda prompts, sample: [Reply("x", "x")]
    with pytest.raises(ValueError, match="shorter"):
        probe(*_tables("a", "b", described=["a", "b"]), reader, repetitions=1)


def test_the_judge_reads_the_reply_as_written_and_so_full_sentences_count() -> None:
    """The embedded equivalence model judges: a sentence that holds the answer is known, and no guess beside NO
    ANSWER."""
    sentence, declined = "The city is New York.", f"{NO_ANSWER} (best guess: New York, margin 0.01)"
    replies = {("a", 0): sentence, ("b", 0): declined, ("c", 0): f"({NO_ANSWER.lower()}"}
    judge = EquivalenceJudge("equivalence", EmbeddedEquivalence(), 0.5)
    questions, descriptions = _tables("a", "b", "c", described=["a", "b", "c"])
    answers = judged(probe(questions, descriptions, _knows(replies), repetitions=1), questions, judge)
    assert [(row["answer"], row["correct"]) for row in answers.to_pylist()] == [
        (NO_ANSWER, True),  # cleaned, it is no answer of a passage
        (NO_ANSWER, False),
        (NO_ANSWER, False),
    ]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        *(([True, True], True), ([True, False], True), ([False, True], True)),  # one reader, once, is enough
        *(([False, False], False), ([None, False], False), ([None, None], False)),  # an unreadable one is no yes
        ([None, True], True),
    ],
)
def test_a_question_is_parametric_if_any_answer_is_right(verdicts: list[bool | None], expected: bool) -> None:
    answers = [("other", 0, not expected), *(("q", repetition, verdict) for repetition, verdict in enumerate(verdicts))]
    rows = [dict(zip(("question_id", "repetition", "correct"), answer, strict=True)) for answer in answers]
    assert parametric(table_of("probe_answers", rows)) == {"other": not expected, "q": expected}
