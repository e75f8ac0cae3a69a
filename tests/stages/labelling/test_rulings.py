"""People's settled decisions: which count, and what they put in the place of the judge's verdicts."""

import pyarrow as pa

from quit.settings import Review
from quit.stages.labelling.rulings import settled_decisions, with_rulings
from quit.stages.labelling.verdicts import DECISIONS
from tests.rows import table_of, tuples

SPLITS = table_of("splits", [{"question_id": name, "split": split} for name, split in (("a", "dev"), ("b", "train"))])


def _settled(*rows: tuple[str, str, str, bool | None]):
    """Return what decisions (question, kind, key, decision) by two of three come to."""
    counts = {"content": "", "answer": "The Nile", "yes": 2, "no": 1, "basis": "majority", "reviews": ["r1", "r2"]}
    names = ("question_id", "kind", "key", "decision")
    decisions = [{**dict(zip(names, row, strict=True)), **counts} for row in rows]
    review = Review(splits=("dev",), removing_flags=("leak",))
    return settled_decisions(pa.Table.from_pylist(decisions, DECISIONS), SPLITS, review)


def test_what_is_open_in_another_split_or_a_flag_that_removes_nothing_does_not_count() -> None:
    flags = [("a", "flag", "leak", True), ("a", "flag", "ambiguous", True), ("a", "flag", "hint_false", False)]
    answers = [("a", "answer", "nile", True), ("a", "answer", "rhine", None), ("b", "answer", "nile", True)]
    settled = _settled(*answers, *flags)
    assert ([*settled.answers], [*settled.flags]) == ([("a", "nile")], [("a", "leak")])
    assert settled.touched == ["a"]
    assert settled.answers["a", "nile"].about("Nile") == "'Nile' accepted by 2 of 3 (majority)"


def test_a_settled_decision_takes_the_place_of_the_judges_verdict_and_no_other() -> None:
    judged = [(name, key) for name in "ab" for key in ("nile", "rhine")]
    rows = [
        {"question_id": name, "answer_key": key, "answer": key, "correct": False, "probability": 0.2, "basis": "model",
         "judge": "rules", "producer": "rules@1", "raw": "No", "passages": 3}
        for name, key in judged
    ]  # fmt: skip
    verdicts = table_of("verdicts", rows)
    columns = ("question_id", "answer_key", "correct", "probability", "basis", "producer", "raw", "passages")
    before = tuples(verdicts, *columns)
    by_people = tuples(with_rulings(verdicts, _settled(("a", "answer", "nile", True))), *columns)
    assert by_people[0] == ("a", "nile", True, None, "review", "review:majority", "2 yes, 1 no", 3)
    assert by_people[1:] == before[1:]
    assert with_rulings(verdicts, _settled()) is verdicts
