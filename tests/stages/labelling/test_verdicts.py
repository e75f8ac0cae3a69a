"""From reviews to decisions: what counts, how it is counted, what stays open."""

import pytest

from quit import contracts
from quit.common.ids import content_hash
from quit.settings import Review
from quit.stages.labelling.verdicts import ask_back, decide, decisions_hash, disagreements, live_reviews, of_kind


def said(
    annotator: str,
    number: int,
    version: int = 1,
    state: str = "submitted",
    question: str = "q",
    when: int | None = None,
    ask: str | None = None,
    **answers: bool | None,
) -> list[dict]:
    """Rows of one version of an annotation; a keyword is an answer, or with ``flag_`` a flag, with ``typed_`` an added
    answer."""
    common = {
        "review_id": f"{annotator}{number}v{version}", "question_id": question, "state": state, "annotator": annotator,
        "created": "0",
        "updated": f"{when if when is not None else version:03d}", "project": "p", "task": 1, "annotation": number,
        "version": version,
        "digest": "d", "sync": 1,
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


def _decided(*groups: list[dict], **settings) -> dict[str, tuple]:
    rows = decide(_table(*groups), Review(**settings)).to_pylist()
    return {row["key"]: (row["decision"], row["yes"], row["no"], row["basis"]) for row in rows}


def test_the_latest_version_counts_and_a_withdrawn_or_skipped_one_does_not() -> None:
    old, new = said("a", 1, 1, x=True), said("a", 1, 2, x=False)
    assert _decided(old, new) == {"x": (False, 0, 1, "unanimous")}
    assert _decided(old, new, said("a", 1, 3, "withdrawn")) == {}
    assert _decided(old, said("a", 1, 2, "skipped")) == {}
    assert _decided(old, said("a", 1, 2, "overwritten", x=False)) == {"x": (True, 1, 0, "unanimous")}


def test_one_person_has_one_voice_a_question() -> None:
    assert _decided(said("a", 1, x=True, when=5), said("a", 2, x=False, when=9)) == {"x": (False, 0, 1, "unanimous")}


@pytest.mark.parametrize(
    ("votes", "decision", "basis"),
    [
        ("TT", True, "unanimous"),
        ("TF", None, "tie"),
        ("TTF", True, "majority"),
        ("FFT", False, "majority"),
        ("FF", False, "unanimous"),
    ],
)
def test_majority(votes: str, decision: bool | None, basis: str) -> None:
    groups = [said(f"p{position}", position, x=vote == "T") for position, vote in enumerate(votes)]
    assert _decided(*groups)["x"] == (decision, votes.count("T"), votes.count("F"), basis)


def test_an_adjudicator_settles_what_others_disagree_on() -> None:
    rule = {"adjudication": "adjudicator", "adjudicator": "chief"}
    both = said("a", 1, x=True, y=True), said("b", 2, x=False, y=True)
    assert _decided(*both, **rule) == {"x": (None, 1, 1, "waiting"), "y": (True, 2, 0, "unanimous")}
    decided = _decided(*both, said("chief", 3, x=False, y=False), **rule)
    assert decided == {"x": (False, 1, 2, "adjudicator"), "y": (False, 2, 1, "adjudicator")}
    votes = _decided(*both, said("chief", 3, x=False, y=False))  # no chief under this rule
    assert votes["y"] == (True, 2, 1, "majority")


def test_too_few_voters_settle_nothing() -> None:
    assert _decided(said("a", 1, x=True), minimum=2) == {"x": (None, 1, 0, "too_few")}
    assert _decided(said("a", 1, x=True), said("b", 2, x=True), minimum=2)["x"][0] is True


def test_a_typed_answer_is_a_vote_for_it_and_others_who_saw_it_vote_too() -> None:
    votes = _decided(said("a", 1, typed_new=True), said("b", 2, x=True))
    assert votes == dict.fromkeys(("new", "x"), (True, 1, 0, "unanimous"))
    assert _decided(said("a", 1, x=False, typed_x=True)) == {"x": (True, 1, 0, "unanimous")}
    assert _decided(said("a", 1, typed_x=True), said("b", 2, x=False))["x"] == (None, 1, 1, "tie")


def test_a_flag_is_voted_on_by_everyone_who_submitted() -> None:
    decided = _decided(said("a", 1, flag_leak=True, x=True), said("b", 2, x=True), said("c", 3, x=True))
    assert decided["leak"] == (False, 1, 2, "majority")


def test_reviews_behind_a_decision_are_those_who_voted_for_it() -> None:
    rows = decide(_table(said("a", 1, x=True), said("b", 2, x=True), said("c", 3, x=False)), Review()).to_pylist()
    assert rows[0]["reviews"] == ["a1v1", "b2v1"]


def test_the_hash_follows_settled_decisions_alone() -> None:
    base = decisions_hash(decide(_table(said("a", 1, x=True)), Review()))
    settled = {"question_id": "q", "kind": "answer", "key": "x", "answer": "x", "decision": True, "yes": 1, "no": 0}
    assert base == content_hash("reviews", [{**settled, "basis": "unanimous", "reviews": ["a1v1"]}], size=8)
    gone = [said("b", 2, x=False, question="z"), said("b", 2, 2, "withdrawn", question="z")]
    assert decisions_hash(decide(_table(*gone, said("a", 1, x=True)), Review())) == base
    assert decisions_hash(decide(_table(said("a", 1, x=False)), Review())) != base
    tie = said("a", 1, x=True, question="k"), said("b", 2, x=False, question="k")
    opened = decide(_table(*tie, said("a", 3, x=True)), Review())
    assert decisions_hash(opened) == decisions_hash(decide(_table(said("a", 3, x=True)), Review()))


def test_the_queue_of_disagreements_begins_with_most_voters() -> None:
    two = [said("a", 1, x=True, question="q1"), said("b", 2, x=False, question="q1")]
    four = [said(name, 3 + place, y=name in "ab", question="q2") for place, name in enumerate("abcd")]
    assert [row["question_id"] for row in disagreements(decide(_table(*two, *four), Review()))] == ["q2", "q1"]


def test_a_verdict_that_is_asked_back_about_is_none_until_its_annotator_says() -> None:
    unclear = said("a", 1, ask="gold", gold=None, x=False)
    assert _decided(unclear) == {"x": (False, 0, 1, "unanimous")}
    assert _decided(unclear, said("b", 2, gold=True, x=False))["gold"] == (True, 1, 0, "unanimous")
    empty = said("b", 2, state="empty", ask="empty", gold=None, x=None)
    assert _decided(unclear, empty) == {"x": (False, 0, 1, "unanimous")}
    asked = [(row["annotator"], row["ask"], row["answers"]) for row in ask_back(_table(unclear, empty))]
    assert asked == [("a", "gold", ["gold"]), ("b", "empty", ["gold", "x"])]
    clear = said("a", 1, 2, gold=True, x=False), said("b", 2, 2, gold=True, x=False)
    assert ask_back(_table(unclear, empty, *clear)) == []
    assert _decided(unclear, empty, *clear)["gold"] == (True, 2, 0, "unanimous")
    for state in ("skipped", "withdrawn"):
        assert ask_back(_table(unclear, said("a", 1, 2, state))) == []


def test_a_page_made_empty_takes_its_verdicts_back_and_is_no_vote_on_a_flag() -> None:
    said_before = said("a", 1, x=True)
    assert _decided(said_before, said("a", 1, 2, "empty", ask="empty", x=None)) == {}
    flagged = said("b", 2, flag_leak=True, x=True)
    assert _decided(flagged, said("a", 1, state="empty", ask="empty", x=None))["leak"] == (True, 1, 0, "unanimous")


def test_blind_pages_and_all_others_are_apart() -> None:
    rows = [{**said("a", number)[0], "blind": blind} for number, blind in enumerate([True, False, None])]
    assert of_kind(_table(rows), True)["review_id"].to_pylist() == ["a0v1"]
    assert of_kind(_table(rows), False)["review_id"].to_pylist() == ["a1v1", "a2v1"]


def test_no_reviews_are_no_decisions() -> None:
    assert len(decide(_table(), Review())) == len(live_reviews(_table())) == 0
