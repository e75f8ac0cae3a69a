"""From reviews to decisions: what counts, how it is counted, what stays open."""

import pyarrow as pa
import pytest

from quit import contracts
from quit.common.ids import content_hash
from quit.settings import Review
from quit.stages.labelling.verdicts import (
    content_of,
    decide,
    decisions_hash,
    disagreements,
    fitting,
    live_reviews,
    rows_of_pages,
    unclear_annotations,
)


def said(
    annotator: str, number: int, version: int = 1, state: str = "submitted",
    question: str = "q", when: int | None = None, ask: str | None = None, **answers: bool | None,
) -> list[dict]:  # fmt: skip
    """Rows of one version of an annotation; a keyword is an answer, or with ``flag_`` a flag, with ``typed_`` an added
    answer."""
    common = {
        "review_id": f"{annotator}{number}v{version}", "question_id": question, "state": state, "annotator": annotator,
        "created": "0", "updated": f"{when if when is not None else version:03d}", "project": "p", "task": 1,
        "annotation": number, "version": version, "digest": "d", "sync": 1,
    }  # fmt: skip
    rows: list[dict] = [{**common, "kind": "annotation", "text": ask}]
    for name, value in answers.items():
        if name.startswith("flag_"):
            rows.append({**common, "kind": "flag", "text": name[5:]})
        elif name.startswith("typed_"):
            answer = name[6:]
            rows.append({**common, "kind": "missing", "answer_key": answer, "answer": answer.title(), "correct": True})
        else:
            rows.append({**common, "kind": "answer", "answer_key": name, "answer": name, "correct": value})
    return rows


def _table(*groups: list[dict]):
    return contracts.table("reviews").from_rows([row for group in groups for row in group])


def _decisions(*groups: list[dict], **settings):
    return decide(live_reviews(_table(*groups)), Review(**settings))


def _decided(*groups: list[dict], **settings) -> dict[str, tuple]:
    rows = _decisions(*groups, **settings).to_pylist()
    return {row["key"]: (row["decision"], row["yes"], row["no"], row["basis"]) for row in rows}


YES, NO = (True, 1, 0, "unanimous"), (False, 0, 1, "unanimous")
OLD, NEW = said("a", 1, 1, x=True), said("a", 1, 2, x=False)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], {}),
        ([OLD, NEW], {"x": NO}),  # the latest version counts, and a withdrawn or skipped one does not
        ([OLD, NEW, said("a", 1, 3, "withdrawn")], {}),
        ([OLD, said("a", 1, 2, "skipped")], {}),
        ([OLD, said("a", 1, 2, "overwritten", x=False)], {"x": YES}),
        ([said("a", 1, x=True, when=5), said("a", 2, x=False, when=9)], {"x": NO}),  # a person has one voice
        # a typed answer is a vote for it, and others who saw it vote too
        ([said("a", 1, typed_new=True), said("b", 2, x=True)], {"new": YES, "x": YES}),
        ([said("a", 1, x=False, typed_x=True)], {"x": YES}),
        ([said("a", 1, typed_x=True), said("b", 2, x=False)], {"x": (None, 1, 1, "tie")}),
        # "No answer", typed, is none: labelers say so of passages
        ([said("a", 1, x=False, **{"typed_no answer": True})], {"x": NO}),
        # a flag is voted on by all who submitted
        ([said("a", 1, flag_leak=True), said("b", 2, x=True), said("c", 3, x=True)],
         {"leak": (False, 1, 2, "majority"), "x": (True, 2, 0, "unanimous")}),
        # a page made empty takes its verdicts back and is no vote on a flag
        ([OLD, said("a", 1, 2, "empty", ask="empty", x=None)], {}),
        ([said("b", 2, flag_leak=True), said("a", 1, state="empty", ask="empty", x=None)], {"leak": YES}),
    ],
)  # fmt: skip
def test_which_votes_count(groups: list[list[dict]], expected: dict[str, tuple]) -> None:
    assert _decided(*groups) == expected


@pytest.mark.parametrize(
    ("votes", "minimum", "decision", "basis"),
    [("TTF", 1, True, "majority"), ("FFT", 1, False, "majority"), ("FF", 2, False, "unanimous"),
     ("T", 2, None, "too_few")],
)  # fmt: skip
def test_majority(votes: str, minimum: int, decision: bool | None, basis: str) -> None:
    groups = [said(f"p{position}", position, x=vote == "T") for position, vote in enumerate(votes)]
    expected = (decision, votes.count("T"), votes.count("F"), basis)
    [row] = _decisions(*groups, minimum=minimum).to_pylist()
    assert (row["decision"], row["yes"], row["no"], row["basis"]) == expected
    if basis == "majority":  # the reviews behind a decision are of those who voted for it
        assert row["reviews"] == ["p00v1", "p11v1"]


def test_an_adjudicator_settles_what_others_disagree_on() -> None:
    rule = {"adjudication": "adjudicator", "adjudicator": "chief"}
    both = said("a", 1, x=True, y=True), said("b", 2, x=False, y=True)
    assert _decided(*both, **rule) == {"x": (None, 1, 1, "waiting"), "y": (True, 2, 0, "unanimous")}
    decided = _decided(*both, said("chief", 3, x=False, y=False), **rule)
    assert decided == {"x": (False, 1, 2, "adjudicator"), "y": (False, 2, 1, "adjudicator")}
    written = {**rule, "adjudicator": "Chief"}  # Label Studio writes addresses in lower case
    assert _decided(*both, said("chief", 3, x=False, y=False), **written) == decided
    votes = _decided(*both, said("chief", 3, x=False, y=False))  # no chief under this rule
    assert votes["y"] == (True, 2, 1, "majority")


def test_the_hash_follows_settled_decisions_alone() -> None:
    base = decisions_hash(_decisions(said("a", 1, x=True)))
    settled = {"question_id": "q", "kind": "answer", "key": "x", "answer": "x", "decision": True, "yes": 1, "no": 0}
    settled = {"question_id": "q", "content": "", **settled}
    settled |= {"basis": "unanimous", "reviews": ["a1v1"]}
    assert base == content_hash("reviews", {name: [value] for name, value in settled.items()}, size=8)
    gone = [said("b", 2, x=False, question="z"), said("b", 2, 2, "withdrawn", question="z")]
    assert decisions_hash(_decisions(*gone, said("a", 1, x=True))) == base
    assert decisions_hash(_decisions(said("a", 1, x=False))) != base
    tie = said("a", 1, x=True, question="k"), said("b", 2, x=False, question="k")
    opened = _decisions(*tie, said("a", 3, x=True))
    assert decisions_hash(opened) == decisions_hash(_decisions(said("a", 3, x=True)))


LAKE = {"question_id": "q", "question": "Which lake?", "answers": ["Lake Baikal"]}
HINTS = [
    {"question_id": "q", "hint": hint, "selected": selected} for hint, selected in (("Deep.", True), ("No.", False))
]


def _seen(rows: list[dict], *golds: str, hints: tuple[str, ...] = ("Deep.",)) -> list[dict]:
    """The rows of an annotation of a page with that gold answer and these hints."""
    seen = [content_of("Which lake?", golds, some) for some in (None, hints)]
    return [{**row, "content": seen[0], "content_with_hints": seen[1]} for row in rows]


def _counting(*groups: list[dict], **question: list[str]) -> list[tuple[str, bool]]:
    tables = pa.Table.from_pylist([LAKE | question]), pa.Table.from_pylist(HINTS)
    return [(row["key"], row["decision"]) for row in fitting(_decisions(*groups), *tables).to_pylist()]


def test_a_review_counts_only_for_the_question_and_gold_answers_that_its_annotator_saw() -> None:
    lake = _seen(said("a", 1, x=True, flag_ambiguous=True), "Lake Baikal")
    assert _counting(lake) == [("x", True), ("ambiguous", True)]
    assert _counting(lake, answers=["lake baikal!"]) == [("x", True), ("ambiguous", True)]
    assert _counting(lake, answers=["Mars"]) == []
    mars = _seen(said("a", 2, x=False, when=9), "Mars")
    assert _counting(lake, mars, answers=["Mars"]) == [("x", False)]
    assert _counting(lake, mars) == [("x", True), ("ambiguous", True)]  # the old content is back


def test_a_flag_that_concerns_hints_counts_only_for_these_hints_in_any_order() -> None:
    same = _seen(said("a", 1, x=True, flag_leak=True), "Lake Baikal")
    other = _seen(said("b", 2, x=True, flag_leak=True), "Lake Baikal", hints=("Deep.", "Cold."))
    assert _counting(same) == [("x", True), ("leak", True)]
    assert _counting(other) == [("x", True)]
    reviews = fitting(live_reviews(_table(same, other)), pa.Table.from_pylist([LAKE]), pa.Table.from_pylist(HINTS))
    kinds = [(row["annotator"], row["kind"]) for row in reviews.to_pylist()]
    assert kinds == [("a", "annotation"), ("a", "answer"), ("a", "flag"), ("b", "annotation"), ("b", "answer")]
    assert content_of("Q", ["a"], ["x", "y"]) == content_of("Q", ["A"], ["y", "x"]) != content_of("Q", ["a"])


def test_the_queue_of_disagreements_begins_with_most_voters() -> None:
    two = [said("a", 1, x=True, question="q1"), said("b", 2, x=False, question="q1")]
    four = [said(name, 3 + place, y=name in "ab", question="q2") for place, name in enumerate("abcd")]
    assert [row["question_id"] for row in disagreements(_decisions(*two, *four))] == ["q2", "q1"]


def test_a_verdict_that_is_asked_back_about_is_none_until_its_annotator_says() -> None:
    unclear = said("a", 1, ask="gold", gold=None, x=False)
    assert _decided(unclear) == {"x": (False, 0, 1, "unanimous")}
    assert _decided(unclear, said("b", 2, gold=True, x=False))["gold"] == (True, 1, 0, "unanimous")
    empty = said("b", 2, state="empty", ask="empty", gold=None, x=None)
    assert _decided(unclear, empty) == {"x": (False, 0, 1, "unanimous")}
    questions = [(row["annotator"], row["ask"], row["answers"]) for row in unclear_annotations(_table(unclear, empty))]
    assert questions == [("a", "gold", ["gold"]), ("b", "empty", ["gold", "x"])]
    clear = said("a", 1, 2, gold=True, x=False), said("b", 2, 2, gold=True, x=False)
    assert unclear_annotations(_table(unclear, empty, *clear)) == []
    assert _decided(unclear, empty, *clear)["gold"] == (True, 2, 0, "unanimous")
    for state in ("skipped", "withdrawn"):
        assert unclear_annotations(_table(unclear, said("a", 1, 2, state))) == []


def test_blind_pages_and_all_others_are_apart() -> None:
    rows = [{**said("a", number)[0], "blind": blind} for number, blind in enumerate([True, False, None])]
    assert rows_of_pages(_table(rows), True)["review_id"].to_pylist() == ["a0v1"]
    assert rows_of_pages(_table(rows), False)["review_id"].to_pylist() == ["a1v1", "a2v1"]
    assert len(live_reviews(_table())) == 0
