"""Searching a workspace's questions."""

import hashlib
import json

import pytest

from quit.common.ids import content_hash
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.report.lookup import Lookup, Search
from quit.review.store import ReviewStore
from quit.status.story import story
from tests.report import tiny


@pytest.fixture
def lookup(tmp_path) -> Lookup:
    return Lookup(tiny.workspace(tmp_path / "W", shards=2))


def _ids(matching) -> list[str]:
    return [row["question_id"] for row in matching.rows]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", ["q0", "q1", "q2", "q3", "q4"]),  # q0 was left out at collect
        ("WHICH river", ["q1"]),  # every word, any case
        ("picasso", ["q2"]),  # an answer
        ("Málaga", ["q2"]),  # a hint, accents do not matter
        ("q3", ["q3"]),
        ("% _ '", []),  # no pattern
        ("<script>", ["q1"]),
        ("river painted", []),
    ],
)
def test_every_word_has_to_occur(lookup, text, ids) -> None:
    assert _ids(lookup.search(Search(text))) == ids


def test_filters_orders_and_pages(lookup) -> None:
    assert _ids(lookup.search(Search(filters={"state": "filter: answer_leak"}))) == ["q4"]
    assert _ids(lookup.search(Search(filters={"state": "dev", "difficulty": "easy"}))) == ["q2"]
    assert _ids(lookup.search(Search(filters={"state": "collect: too_few_hints"}))) == ["q0"]
    assert _ids(lookup.search(Search(filters={"needs": "1", "state": "test"}))) == ["q3"]
    assert _ids(lookup.search(Search(order="most"))) == ["q1", "q2", "q3", "q0", "q4"]  # 3 of 4, 2 of 4, 2 of 4, none
    assert _ids(lookup.search(Search(order="fewest"))) == ["q2", "q3", "q1", "q0", "q4"]
    assert _ids(lookup.search(Search(order="hardest")))[0] == "q3"
    second = lookup.search(Search(), page=2, size=3)
    assert (_ids(second), second.total) == (["q3", "q4"], 5)
    assert _ids(lookup.search(Search(), page=99, size=3)) == ["q3", "q4"]
    assert lookup.neighbours("q3", Search(order="fewest")) == ("q2", "q1")
    assert lookup.neighbours("q0", Search(filters={"state": ""})) == (None, "q1")
    assert lookup.neighbours("q1", Search("guernica")) == (None, None)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"order": "drop table overview"}, "no order 'drop table overview'. Known: id, most"),
        ({"checks": ["cut", "foo"]}, "no check 'foo'. Known: leak, no-label-2"),
        ({"filters": {"type": "", "difficulty": "medium"}}, "no difficulty 'medium'. Known: easy, hard."),
    ],
)
def test_names_and_values_that_do_not_exist_are_refused(lookup, search, message) -> None:
    with pytest.raises(InputError, match=message):
        lookup.search(Search(**search))


def test_what_an_owner_looks_for(tmp_path) -> None:
    rows = tiny.without_label_2()
    for row in rows["answers/two"]:
        if row["question_id"] == "q2":
            row["ended"] = "length" if row["permutation"] in ("0", "10") else "stop"
    lookup = Lookup(tiny.workspace(tmp_path / "W", rows, shards=2), labelers=2)
    assert _ids(lookup.search(Search(checks=["leak"]))) == ["q4"]
    assert _ids(lookup.search(Search(checks=["no-label-2"]))) == ["q3"]
    # One of two labelers is right on 3 of q1's passages, on 2 of q2's, on none of q3's.
    assert _ids(lookup.search(Search(checks=["disagreement"]))) == ["q1", "q2"]
    assert [row["disagreement"] for row in lookup.search(Search(order="disagreement")).rows] == [
        0.75,
        0.5,
        0.0,
        None,
        None,
    ]
    assert (
        _ids(lookup.search(Search(checks=["cut", "disagreement"])))
        == _ids(lookup.search(Search(order="cut"), size=1))
        == ["q2"]
    )
    assert _ids(lookup.search(Search(checks=["leak", "cut"]))) == []
    matching = lookup.search(Search(checks=["cut"]))
    assert matching.checks == {"leak": 1, "no-label-2": 1, "disagreement": 2, "cut": 1, "changed": 0}
    assert matching.rows[0]["cut"] == 2 and lookup.row("q2") == matching.rows[0] and lookup.row("q9") is None
    assert matching.columns == ["share", "disagreement", "cut", "leaks", "reviewers"]  # people changed no label
    # A single labeler cannot disagree with itself.
    assert _ids(Lookup(lookup.workspace, labelers=1).search(Search(checks=["disagreement"]))) == []


def test_rows_and_choices_say_what_there_is(lookup) -> None:
    matching = lookup.search(Search())
    first = matching.rows[1]
    assert (first["passages"], first["fully"], first["share"], first["reviewers"]) == (4, 3, 0.75, 0)
    assert [row["reviewers"] for row in matching.rows] == [0, 0, 2, 2, 0]
    states = ("collect: too_few_hints", "dev", "filter: answer_leak", "test", "train")
    assert matching.choices["state"] == [(state, 1) for state in states]
    assert matching.choices["difficulty"] == [("easy", 2), ("hard", 1)]


def test_what_is_pulled_later_is_found(lookup) -> None:
    assert lookup.search(Search()).rows[1]["reviewers"] == 0
    row = next(row for row in tiny.reviews() if row["kind"] == "annotation")
    store = ReviewStore(lookup.workspace)
    store.append([{**row, "question_id": "q1", "review_id": "late", "annotation": 99}])
    assert lookup.search(Search()).rows[1]["reviewers"] == 1
    other = {"annotator": "of another text", "content": "0" * 16}
    store.append([{**row, "question_id": "q1", "review_id": "aside", "annotation": 100, **other}])
    assert lookup.search(Search()).rows[1]["reviewers"] == 1
    rows = story(lookup.workspace, "q1")["reviews"]
    assert [(row["annotator"], row["counts"]) for row in rows] == [("ada@x.org", True), ("of another text", False)]


def test_a_left_out_question_has_the_text_of_its_source_while_that_is_unchanged(tmp_path) -> None:
    rows = tiny.rows()
    rows["rejects"][1] |= {"source": "jsonl", "file": "hints.jsonl", "position": 1}
    workspace = tiny.workspace(tmp_path / "W", rows)
    source = tmp_path / "hints.jsonl"
    record = {"id": "0", "question": "<b>Which sea?</b>", "answers": ["The Aral Sea"], "hints": ["It shrinks."]}
    source.write_text("\n" + json.dumps(record))
    folder, manifest = workspace.current()["collect"]
    facts = manifest | {"sources": [{"sha256": hashlib.sha256(source.read_bytes()).hexdigest()}]}
    (folder / "manifest.json").write_text(json.dumps(facts | {"checksum": content_hash(facts)}))
    build = {"profile": "embedded", "overrides": [], "sources": [f"jsonl:{source}"]}
    (workspace.path / "build.json").write_text(json.dumps(build))
    [row] = Lookup(Workspace.open(workspace.path)).search(Search("aral")).rows
    assert (row["question_id"], row["question"], row["answers"]) == ("q0", "<b>Which sea?</b>", ["The Aral Sea"])
    source.write_text("\n" + json.dumps(record | {"question": "Another?"}))
    assert Lookup(Workspace.open(workspace.path)).row("q0")["question"] == "q0"
