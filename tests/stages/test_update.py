"""The label update against hand-made expectations and against a slow, obvious way of working labels out."""

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit import contracts
from quit.common.columns import is_in
from quit.settings import Review, Settings
from quit.stages.label import label_passages
from quit.stages.labelling.answers import Answers
from quit.stages.labelling.rulings import settled_decisions
from quit.stages.labelling.verdicts import DECISIONS
from quit.stages.leaks.containment import contained_in
from quit.stages.leaks.find import Finding
from quit.stages.stage import Context
from quit.stages.update import LabelTables, update_labels, update_stage
from quit.text.answers import answer_key
from tests.rows import answers_in, table_of, tuples

LABELERS = ("one", "two")
PERMUTATIONS = ("0", "01", "1", "10")
HINTS = ("It floats.", "It has masts.")


def _decision(
    question: str, key: str, decision: bool | None, kind: str = "answer", answer: str | None = None, review: str = "r1"
) -> dict:
    yes, no = (2, 1) if decision else (1, 2)
    return {
        "question_id": question, "kind": kind, "key": key, "answer": answer or key, "decision": decision,
        "yes": yes, "no": no, "basis": "majority", "reviews": [review],
    }  # fmt: skip


def _world(answers_of: dict[str, dict], correct: dict[str, set[str]], splits: dict[str, str] | None = None):
    """``answers_of``: question -> labeler -> its answers to the four passages; ``correct``: question -> keys the
    judge accepts, those that only other readers gave too."""
    rows: dict[str, list[dict]] = {name: [] for name in ("questions", "passages", "ranked_hints", "splits", "verdicts")}
    texts: dict[str, list[str]] = {labeler: [] for labeler in LABELERS}
    for one in sorted(answers_of):
        of = {"question_id": one}
        rows["questions"].append({**of, "question": f"What is {one}?", "answers": ["Ship"]})
        rows["passages"] += [{**of, "permutation": order} for order in PERMUTATIONS]
        rows["ranked_hints"] += [
            {**of, "rank": n, "hint_id": f"{one}-h{n:02d}", "hint": hint} for n, hint in enumerate(HINTS)
        ]
        rows["splits"].append({**of, "split": (splits or {}).get(one, "dev")})
        accepted = {"ship", *correct.get(one, ())}
        keys = {answer_key(text) for labeler in LABELERS for text in answers_of[one][labeler]}
        keys |= {*correct.get(one, ())}
        rows["verdicts"] += [
            {**of, "answer_key": key, "answer": key, "correct": key in accepted} for key in sorted(keys)
        ]
        for labeler in LABELERS:
            texts[labeler] += answers_of[one][labeler]
    tables = {name: table_of(name, some) for name, some in rows.items()}
    passages = tables.pop("passages")
    answers = {labeler: answers_in(passages.append_column("answer", [texts[labeler]])) for labeler in LABELERS}
    labelled = label_passages(tables["questions"], passages, answers, tables["verdicts"])
    return LabelTables(**tables, labels=labelled["labels"], valid_answers=labelled["valid_answers"]), answers


def _floats_for(answer: str):
    """Return a filter that takes "floats" for this answer."""
    leak = [Finding("floats", answer, 0.9, "equivalence", "m")]
    return lambda items: [
        [leak if answer in item.answers and "floats" in hint else [] for hint in item.hints] for item in items
    ]


_no_leaks = _floats_for("none of them")


def _update(world, decisions: list[dict], leaks=_no_leaks, settings: Review | None = None):
    tables, answers = world
    decision = settled_decisions(pa.Table.from_pylist(decisions, schema=DECISIONS), tables.splits, settings or Review())
    touched = pa.array(decision.touched, pa.string())
    mine = {
        name: Answers(whole.rows.filter(is_in(whole.rows.column("question_id"), touched)), whole.distinct)
        for name, whole in answers.items()
    }
    return update_labels(tables, mine, decision, leaks)


WORLD = {
    "a": {"one": ["Ship", "Boat", "boat!", "Car"], "two": ["Car", "Car", "Car", "Car"]},
    "b": {"one": ["Raft", "Raft", "Ship", "NO ANSWER"], "two": ["Car", "Raft", "Car", "Car"]},
    "c": {"one": ["Ship", "Ship", "Ship", "Ship"], "two": ["Car", "Car", "Car", "Car"]},
}


def _label_list(update, question: str) -> list[int]:
    return [label for (label,) in tuples(update["labels"], "label", question_id=question)]


def test_an_accepted_answer_raises_its_passages_and_joins_in_every_form() -> None:
    update = _update(_world(WORLD, {"b": {"raft"}}), [_decision("a", "boat", True)])
    assert _label_list(update, "a") == [2, 2, 2, 1]
    valid = [("Ship", "gold"), ("Boat", "labeler"), ("boat!", "labeler")]
    assert tuples(update["valid_answers"], "answer", "origin", question_id="a") == valid
    names = ("permutation", "before", "after", "answer", "answer_key", "reviews", "reason")
    assert tuples(update["changes"], *names, change="label") == [
        ("01", 1, 2, "Boat", "boat", ["r1"], "'Boat' accepted by 2 of 3 (majority)"),
        ("1", 1, 2, "boat!", "boat", ["r1"], "'boat!' accepted by 2 of 3 (majority)"),
    ]
    assert tuples(update["labels"], "labelers", question_id="a") == [(["one"],)] * 3 + [([],)]


def test_a_rejected_answer_lowers_only_passages_that_nothing_else_holds_up() -> None:
    update = _update(_world(WORLD, {"b": {"raft"}}), [_decision("b", "raft", False, review="r7")])
    assert _label_list(update, "b") == [1, 1, 2, 1]
    assert tuples(update["valid_answers"], "answer", question_id="b") == [("Ship",)]
    reason = ("Raft", ["r7"], "'Raft' rejected by 2 of 3 (majority)")
    changes = [("label", "0", *reason), ("label", "01", *reason), ("answer_removed", None, *reason)]
    names = ("change", "permutation", "answer", "reviews", "reason")
    assert sorted(tuples(update["changes"], *names), key=str) == sorted(changes, key=str)
    ruling = tuples(update["verdicts"], "correct", "basis", "judge", question_id="b", answer_key="raft")
    assert ruling == [(False, "review", "review")]


def test_a_rejected_gold_answer_leaves_and_a_question_without_valid_answer_with_it() -> None:
    decisions = [_decision("c", "ship", False), _decision("a", "ship", False), _decision("a", "boat", True)]
    update = _update(_world(WORLD, {}), decisions)
    assert tuples(update["valid_answers"], "answer", question_id="a") == [("Boat",), ("boat!",)]
    assert _label_list(update, "a") == [1, 2, 2, 1]
    assert _label_list(update, "c") == [] and ("c",) not in tuples(update["splits"], "question_id")
    assert tuples(update["rejects"], "question_id", "reason") == [("c", "no_valid_answer")]
    assert tuples(update["changes"], "change", question_id="c") == [("question_removed",)]


def test_an_added_answer_joins_and_a_confirmed_one_changes_nothing() -> None:
    world = _world(WORLD, {"b": {"raft"}})
    update = _update(world, [_decision("a", "frigate", True, answer="Frigate"), _decision("b", "raft", True)])
    valid = [("Ship", "gold", 1), ("Frigate", "review", 0)]
    assert tuples(update["valid_answers"], "answer", "origin", "passages", question_id="a") == valid
    assert update["labels"].equals(world[0].labels)
    assert tuples(update["changes"], "question_id", "change") == [("a", "answer_added")]


def test_the_leakage_filter_sees_the_accepted_answers_of_every_question_once_more() -> None:
    checked = []

    def leaks(items):
        checked.extend((item.question, list(item.answers), list(item.hints)) for item in items)
        return _floats_for("Boat")(items)

    decisions = [_decision("a", "boat", True, review="r3"), _decision("b", "car", True)]
    update = _update(_world(WORLD, {"b": {"raft"}}), decisions, leaks)
    assert checked == [("What is a?", ["Boat", "boat!"], list(HINTS)), ("What is b?", ["Car", "Raft"], list(HINTS))]
    assert tuples(update["splits"], "question_id") == [("b",), ("c",)]
    assert {*tuples(update["labels"], "question_id")} == {("b",), ("c",)}
    assert tuples(update["leak_findings"], "hint_id", "span", "answer") == [("a-h00", "floats", "Boat")]
    removal = tuples(update["changes"], "question_id", "reviews", "reason", change="question_removed")
    assert removal[0][:2] == ("a", ["r3"]) and "gives away" in removal[0][2] and len(removal) == 1
    for incomplete in ([], [[], []]):  # findings of fewer questions, or of fewer hints, than there are
        with pytest.raises(ValueError, match="shorter"):
            _update(_world(WORLD, {}), decisions, lambda items, findings=incomplete: findings)


def test_without_any_review_a_question_of_train_leaves_for_an_answer_that_the_judge_accepted() -> None:
    leaks = _floats_for("Raft")
    update = _update(_world(WORLD, {"b": {"raft"}}, splits={"b": "train"}), [], leaks)
    assert tuples(update["splits"], "question_id") == [("a",), ("c",)]
    for name in ("labels", "valid_answers"):
        assert {*tuples(update[name], "question_id")} == {("a",), ("c",)}
    assert tuples(update["changes"], "question_id", "change", "reviews") == [("b", "question_removed", [])]
    world = _world(WORLD, {})  # not accepted: not looked for
    assert _update(world, [], leaks)["splits"].equals(world[0].splits)


@pytest.mark.parametrize("method", ["full", "bem"])
@pytest.mark.parametrize(
    ("hint", "decision", "leaks"),
    [("It is famous.", None, False), ("It sails for the US.", None, True), ("It sails for the US.", "no_leak", False)],
)
def test_an_accepted_answer_removes_a_question_where_it_is_a_word_of_a_hint(method, hint, decision, leaks) -> None:
    tables, answers = _world(WORLD, {})
    hints = [{**row, "hint": hint} for row in tables.ranked_hints.to_pylist()]

    def rows_of(part: str):
        def rows(columns: list[str], reader: str | None = None, question_ids: list[str] | None = None) -> pa.Table:
            table = getattr(answers[reader], part) if reader else tables.labels
            ids = table["question_id"] if question_ids is None else pa.array(question_ids)
            return table.filter(pc.is_in(table["question_id"], ids)).select(columns)

        return rows

    readers = [{"name": labeler, "role": "labeler"} for labeler in LABELERS]
    settings = Settings(leakage={"method": method}, readers=readers)
    person = {"question_id": "a", "hint": hint, "decision": decision}
    overrides = pa.Table.from_pylist([person]) if decision else None
    update = update_stage.function(
        Context({}, settings, SimpleNamespace(equivalence=None, encoder=None), overrides=overrides),
        *(tables.questions, contracts.table("ranked_hints").from_rows(hints), tables.splits),
        *(rows_of("rows"), rows_of("distinct"), tables.verdicts, rows_of(""), tables.valid_answers),
        pa.Table.from_pylist([_decision("a", "us", True, answer="US")], schema=DECISIONS),
    )
    assert (("a",) not in tuples(update["splits"], "question_id")) is leaks
    if decision is None:  # what the release gate asks
        assert (contained_in("US", [hint], False, settings.leakage) is not None) is leaks


@pytest.mark.parametrize(
    ("flag", "goes"), [("leak", True), ("offensive", True), ("ambiguous", False), ("hint_false", False)]
)
def test_an_agreed_flag_removes_the_question_if_the_owner_says_so(flag: str, goes: bool) -> None:
    checked = []

    def leaks(items):
        checked.extend(item.question for item in items)
        return _no_leaks(items)

    update = _update(_world(WORLD, {"b": {"raft"}}), [_decision("b", flag, True, kind="flag")], leaks)
    assert tuples(update["splits"], "question_id") == ([("a",), ("c",)] if goes else [("a",), ("b",), ("c",)])
    assert checked == ([] if goes else ["What is b?"])
    rejects = [(f"flagged_{flag}", f"flagged {flag} by 2 of 3 (majority)")] if goes else []
    assert tuples(update["rejects"], "reason", "detail") == rejects


@pytest.mark.parametrize(
    "decisions",
    [
        [],
        [_decision("a", "boat", None)],
        [_decision("a", "leak", False, kind="flag")],
        [_decision("t", "boat", True), _decision("zz", "boat", True)],  # outside the reviewed splits
    ],
)
def test_nothing_settled_gives_the_label_stages_tables(decisions) -> None:
    world = _world(WORLD | {"t": WORLD["a"]}, {"b": {"raft"}}, splits={"t": "train"})
    update = _update(world, decisions)
    for name in ("labels", "valid_answers", "verdicts", "splits"):
        assert update[name].equals(getattr(world[0], name)), name
    assert len(update["changes"]) == 0


_ANSWERS = st.lists(st.sampled_from(["Ship", "ship.", "Boat", "Car", "NO ANSWER"]), min_size=4, max_size=4)


@settings(deadline=None)
@given(
    st.fixed_dictionaries({one: st.fixed_dictionaries({"one": _ANSWERS, "two": _ANSWERS}) for one in "abc"}),
    st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(["boat", "car", "oar"])), max_size=3),
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["ship", "boat", "car", "oar"])), st.booleans(), max_size=6
    ),
)
def test_labels_are_what_passage_by_passage_work_gives(answers_of, correct, rulings) -> None:
    world = _world(answers_of, correct)
    update = _update(world, [_decision(question, key, verdict) for (question, key), verdict in sorted(rulings.items())])
    there = {question for (question,) in tuples(update["splits"], "question_id")}
    expected, valid_keys = {}, set()
    for question, by_labeler in answers_of.items():
        verdicts = {key: verdict for (about, key), verdict in rulings.items() if about == question}
        added = {key for key in verdicts if verdicts[key]}
        accepted = ({"ship", *correct.get(question, ())} | added) - {key for key in verdicts if not verdicts[key]}
        read = {answer_key(text) for texts in by_labeler.values() for text in texts}
        # Not what the judge alone accepts of readers that are no labelers.
        valid_keys |= {(question, key) for key in accepted & ({"ship"} | read | added)}
        assert (question in there) is bool(accepted & ({"ship"} | read | added))
        for place, order in enumerate(PERMUTATIONS):
            right = any(answer_key(by_labeler[labeler][place]) in accepted for labeler in LABELERS)
            expected[question, order] = 2 if right else 1
    names = ("question_id", "permutation", "label")
    now = {tuple(place): label for *place, label in tuples(update["labels"], *names)}
    assert now == {place: label for place, label in expected.items() if place[0] in there}
    before = {tuple(place): label for *place, label in tuples(world[0].labels, *names)}
    changes = tuples(update["changes"], "question_id", "permutation", "after", change="label")
    assert {tuple(place): label for *place, label in changes} == {
        place: label for place, label in now.items() if before[place] != label
    }
    assert {*tuples(update["valid_answers"], "question_id", "answer_key")} == valid_keys
    # What an export checks: label 2 exactly where a labeler's answer is, as written, among the valid answers.
    valid = {*tuples(update["valid_answers"], "question_id", "answer")}
    for (question, order), label in now.items():
        place = PERMUTATIONS.index(order)
        assert label == (2 if any((question, answers_of[question][one][place]) in valid for one in LABELERS) else 1)


def test_an_update_that_removes_every_question_leaves_empty_tables() -> None:
    flags = [_decision(question, "offensive", True, kind="flag") for question in WORLD]
    updated = _update(_world(WORLD, {}), flags)
    assert [len(updated[name]) for name in ("labels", "valid_answers", "splits", "rejects")] == [0, 0, 0, 3]
    assert updated["labels"].schema.names == contracts.table("labels").schema.names
