"""The report's figures against those counted by hand from a tiny workspace."""

import json
import os
from datetime import UTC, datetime

import pytest

from quit.common.rows import sql_rows
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.report.data import LEAKS, gather, last_changed
from quit.report.examples import example
from quit.report.people import review_progress
from quit.report.readers import agreement_figures
from quit.report.sections import sections
from quit.review.audit import draw_audit
from quit.review.status import review_status
from quit.settings import Review
from quit.status.replies import reply_counts
from quit.status.story import story
from tests.report import tiny


@pytest.fixture(scope="module")
def facts(tmp_path_factory) -> dict:
    workspace = tiny.workspace(tmp_path_factory.mktemp("tiny") / "W")
    return gather(workspace, tiny.settings())


def test_the_funnel_and_what_was_left_out(facts) -> None:
    assert dict(facts["funnel"]) == {
        "in the sources": 5, "after collect (too few hints)": 4, "after filter (answer leak)": 3,
        "in train, dev or test": 3,
    }  # fmt: skip
    assert facts["counts"]["records"] == 4
    columns = ("stage", "kind", "reason", "count", "example")
    assert [tuple(row[name] for name in columns) for row in facts["rejects"]] == [
        ("collect", "question", "too_few_hints", 1, "1 hint"),
        ("collect", "record", "no_answer", 1, "no answer"),
        ("filter", "question", "answer_leak", 1, "1 of 1 hints leak; q4-h00: 'Rome' gives away 'Rome'"),
    ]
    assert facts["sources"] == [{"source": "jsonl", "questions": 3}, {"source": "wikihint", "questions": 1}]


def test_convergence_falls_into_the_right_bars(facts) -> None:
    # 1.0 0.25 0.5 0.49 0.0 1.0 in bars of a twentieth; 1 belongs to the last bar.
    bars = [(row["low"], row["in passages"]) for row in facts["convergence"]["bars"]]
    assert len(bars) == 20
    assert [bar for bar in bars if bar[1]] == [(0, 1), (0.25, 1), (0.45, 1), (0.5, 1), (0.95, 2)]
    [producer] = facts["convergence"]["producers"]
    assert (producer["count"], producer["mean"], producer["median"]) == (6, pytest.approx(3.24 / 6), 0.495)


def test_leakage_types_and_difficulty(facts) -> None:
    assert facts["leakage"]["by_question"] == [{"leaking": 0, "questions": 3}, {"leaking": 1, "questions": 1}]
    method = {"method": "exact", "findings": 1, "hints": 1, "questions": 1, "overridden": 0}
    assert facts["leakage"]["methods"] == [method]
    assert [row["findings"] for row in facts["leakage"]["bars"]][-2:] == [0, 1]
    kind = {"coarse": tiny.TYPE, "questions": 3, "train": 1, "dev": 1, "test": 1, "fine": 1}
    assert facts["types"] == [kind]
    bins = [(row["bin"], row["questions"], row["test"]) for row in facts["difficulty"]["bins"]]
    assert bins == [("easy", 2, 0), ("hard", 1, 1)]
    bars = [(row["low"], row["easy"], row["hard"]) for row in facts["difficulty"]["bars"]]
    assert [bar for bar in bars if bar[1] or bar[2]] == [(0.1, 1, 0), (0.2, 1, 0), (0.9, 0, 1)]


def test_labels_by_hints_and_readers(facts) -> None:
    # One hint: 0 is right, 1 is wrong, for three questions. Two: 01 is right, and 10 is for q1 alone.
    rows = [row for row in facts["statistics"]["by_hints"] if (row["split"], row["label"]) == ("all", 2)]
    shares = {row["n_hints"]: row["share"] for row in rows}
    assert shares == {1: pytest.approx(1 / 2), 2: pytest.approx(4 / 6)}
    columns = ("reader", "hints", "passages", "no_answer", "correct", "cut", "sentences")
    assert [tuple(row[name] for name in columns) for row in facts["readers_by_hints"]] == [
        ("one", 1, 6, 0, 3, 0, 0), ("one", 2, 6, 0, 4, 0, 0), ("two", 1, 6, 6, 0, 0, 0), ("two", 2, 6, 6, 0, 0, 0),
    ]  # fmt: skip
    counts = {"questions": 3, "passages": 12, "fully": 7, "parametric": 1, "valid_answers": 3, "records": 4}
    assert facts["counts"] == counts


def test_people_among_themselves_and_against_the_judge(facts) -> None:
    # The judge had to decide "wrong" of q2 and q3 (it said no twice); people accept the first and reject the second.
    counts = ("both", "only_first", "only_second", "neither", "unread")
    pages = [(row["blind"], *(row["agreement"][name] for name in counts)) for row in facts["judges"]["pages"]]
    assert pages == [(True, 0, 1, 0, 0, 0), (False, 0, 0, 0, 1, 0)]
    every, *parts = facts["judges"]["agreements"]
    assert (every["first"], every["second"], every["kappa"]) == ("people", "rules", None)
    assert tuple(every[name] for name in counts) == (0, 1, 0, 1, 0)
    assert {(row["by"], row["part"]) for row in parts} == {("words", "1 word"), ("reader", "one")}
    review = facts["review"]
    # Values yy yy yn nn: 5 yes and 3 no, observed disagreement 2, expected 2*5*3/7; alpha = 1 - 2 / (30/7).
    assert review["agreement"]["alpha"] == pytest.approx(1 - 14 / 30) and review["agreement"]["items"] == 4
    assert (review["decided"], review["open"], review["reviews"]["questions"]) == (3, 1, 2)
    # Both of q2's answers are settled; of q3's, one is a tie.
    figures = [(split, row["answers"], row["judged"], row["reviewed"]) for split, row in review["coverage"].items()]
    assert figures == [("dev", 2, 2, 1), ("test", 2, 1, 0)]
    of_kinds = [(kind["blind"], kind["annotations"], kind["items"], kind["alike"]) for kind in review["kinds"]]
    assert of_kinds == [(True, 2, 2, 1.0), (False, 2, 2, 0.5)]
    [pair] = review["agreement"]["pairs"]
    assert (pair["items"], pair["agreement"]) == (4, 0.75)
    assert pair["kappa"] == pytest.approx((0.75 - 0.5) / 0.5)  # ada 3 of 4 yes, bob 2 of 4: chance 0.5
    assert "x.org" not in json.dumps(facts)  # nobody is named


def test_of_a_review_only_what_is_listed_is_shown(tmp_path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    status = review_status(workspace, Review())
    progress = review_progress(workspace, {**status, "contact": "ada@x.org"})  # type: ignore[typeddict-unknown-key]
    assert progress == review_progress(workspace, status) and "x.org" not in json.dumps(progress)


def test_the_audit_is_in_the_chapter_on_reviews(tmp_path, facts) -> None:
    settings = tiny.settings().model_copy(update={"review": Review(audit=4)})
    workspace = tiny.workspace(tmp_path / "W")
    draw_audit(workspace, settings)
    chapters = [
        {section.name: section.pieces for section in sections(gathered)}
        for gathered in (gather(workspace, settings), facts)
    ]
    text, table = chapters[0]["review"][-2:]
    # q2 was decided before the draw, and of q3 the wrong answer: two of their passages are open, and all four of q1.
    assert "people have judged 0 of 4 passages" in text and table not in chapters[1]["review"]
    dev = next(row for row in table.rows if row[0] == "dev")
    assert dev == ("dev", 4, "50.0%", "100.0%", "100.0% to 100.0%", 0, 0)  # people accept q2's wrong answer too


def test_costs_follow_from_the_prices(facts) -> None:
    # A million fresh tokens at 2, one from the prefix cache at 0.5, a million written at 4; 10 of 40 replies from the
    # cache.
    [cost] = facts["usage"]["costs"]
    assert cost == {"model": "one", "replies": 40, "asked": 30, "kept": 10, "kept_share": 0.25, "cost": 6.5}


@pytest.fixture(scope="module")
def altered(tmp_path_factory) -> Workspace:
    """The workspace with answers of both readers that are right and wrong, answers without hints, more leaks, and no
    label 2 in test."""
    rows = tiny.without_label_2()
    rows["questions"][1]["answers"] = ["the LIMA!"]  # of dev; test's is Lima
    for row in rows["answers/two"]:
        if row["question_id"] == "q2":  # right where reader one is, 0 and 01, and on 1, where it is not
            row["answer"] = row["raw"] = "Picasso" if row["permutation"] != "10" else "Wrong"
    answers = [("q1", 0, "Nile", True), ("q1", 1, "NO ANSWER", False), ("q2", 0, "Wrong", False), ("q2", 1, "?", None)]
    columns = ("question_id", "repetition", "answer", "correct")
    rows["probe_answers"] = [{"reader": "one", **dict(zip(columns, row))} for row in answers]
    [finding] = rows["leak_findings"]
    for question, overridden in (("q1", True), ("q2", False)):
        more = {"question_id": question, "hint_id": f"{question}-h00", "overridden": overridden}
        rows["leak_findings"].append({**finding, **more})
    return tiny.workspace(tmp_path_factory.mktemp("altered") / "W", rows)


@pytest.fixture(scope="module")
def of_altered(altered) -> dict:
    return gather(altered, tiny.settings())


def test_labels_by_split_and_their_bounds(of_altered) -> None:
    splits = of_altered["splits"]
    columns = ("split", "questions", "without_label_2", "passages", "label_2", "bound")
    assert [tuple(row[name] for name in columns) for row in splits["labels"]] == [
        ("train", 1, 0, 4, 3, 1.0),
        ("dev", 1, 0, 4, 2, 1.0),
        ("test", 1, 1, 4, 0, 0.0),
        ("all", 3, 1, 12, 5, pytest.approx(2 / 3)),
    ]
    [shared] = [row for row in splits["shared"] if row["answers"]]
    assert (shared["first"], shared["second"], shared["second_questions"]) == ("dev", "test", 1)


def test_agreement_of_readers_and_of_labelers(altered, of_altered) -> None:
    agreement = of_altered["agreement"]
    # Of twelve passages one is right on 7, two on 3; both on 2, neither on 4.
    assert agreement["all"]["right"] == [4, 6, 2]
    assert agreement["all"]["correct"] == {"one": pytest.approx(7 / 12), "two": pytest.approx(3 / 12)}
    [pair] = agreement["all"]["pairs"]
    chance = 7 / 12 * 3 / 12 + 5 / 12 * 9 / 12
    assert pair["kappa"] == pytest.approx((6 / 12 - chance) / (1 - chance))
    assert agreement["labelers"] is None  # there is one
    labelers = [{"name": name, "role": "labeler"} for name in ("two", "one")]
    figures = agreement_figures(labelers, reply_counts(altered, ["two", "one"])[1])
    assert figures["labelers"] == figures["all"] and figures["all"]["right"] == [4, 6, 2]


def test_answers_without_hints_by_reader(of_altered) -> None:
    [counts] = of_altered["probe"]
    assert counts == {"reader": "one", "questions": 2, "answers": 4, "no_answer": 1, "correct": 1, "known": 1}


def test_leaks_by_question_say_what_came_of_them(facts, of_altered) -> None:
    assert facts["leakage"]["questions"] == [
        {"question_id": "q4", "question": "Which city?", "leaking": 1, "hints": 1,
         "words": "“Rome” gives away “Rome” (exact)", "outcome": "left out"}
    ]  # fmt: skip
    leakage = of_altered["leakage"]
    outcomes = {row["question_id"]: row["outcome"] for row in leakage["questions"]}
    assert outcomes == {"q1": "kept: a person overruled it", "q2": "kept without these hints", "q4": "left out"}
    assert leakage["leaking"] == 3


def test_a_question_that_another_reason_left_out_is_not_said_to_be_kept(tmp_path) -> None:
    rows = tiny.rows()
    rows["leak_findings"][0]["overridden"] = True
    with tiny.workspace(tmp_path / "W", rows).connect() as connection:
        [row] = sql_rows(connection, LEAKS, {"rows": 9})
    assert (row["question_id"], row["outcome"]) == ("q4", "left out for another reason")


def test_the_example_passage_has_all_hints_and_every_answer(facts) -> None:
    passage = facts["passage"]  # of q3, the one test question
    assert (passage["text"], passage["label"]) == ("It lies on the Pacific. Pizarro founded it.", 2)
    answers = [(row["name"], row["role"], row["answer"], row["correct"]) for row in passage["answers"]]
    assert answers == [("one", "labeler", "Lima", True), ("two", "reader", "NO ANSWER", None)]


def test_examples_follow_their_rules(facts) -> None:
    kinds = {kind["kind"]: [one["question_id"] for one in kind["questions"]] for kind in facts["examples"]}
    # q1 is answered without hints, so it is no example of what hints do; q2 and q3 tie, and none is shown twice.
    assert kinds == {"answered": ["q2", "q3"], "left_out": ["q4"]}
    left = facts["examples"][-1]["questions"][0]
    assert left["reasons"] == ["filter: answer leak (1 of 1 hints leak; q4-h00: 'Rome' gives away 'Rome')"]
    assert left["hints"][0]["leaks"] == ["Rome"]


def test_no_reviews_no_models_nothing_collected(tmp_path) -> None:
    workspace = tiny.workspace(tmp_path / "W", people=False)
    (workspace.path / "usage.jsonl").unlink()
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
    os.utime(workspace.path / "state.json", (noon, noon))
    facts = gather(workspace, tiny.settings())
    assert (facts["review"], facts["judges"]["agreements"], facts["usage"]["costs"]) == (None, [], [])
    assert facts["date"] == "2026-03-01"  # of the last change of the current tables
    empty = Workspace.create(tmp_path / "E")
    assert last_changed(empty) is None
    with pytest.raises(InputError, match="holds no question yet"):
        gather(empty, tiny.settings())


def test_a_question_is_told_the_same_from_one_part_and_from_several(tmp_path) -> None:
    whole, parts = tiny.workspace(tmp_path / "A"), tiny.workspace(tmp_path / "B", shards=3)
    for question in ("q1", "q2", "q3", "q4"):
        assert story(whole, question) == story(parts, question)
    assert story(parts, "q4")["rejects"][0]["reason"] == "answer_leak"
    # An example counts its labels and cuts its answers.
    shown = example(story(whole, "q1"), max_answers=1)
    assert (shown["passages"], shown["fully"], len(shown["answers"]), shown["more_answers"]) == (4, 3, 1, 1)


def test_splits_of_all_questions_are_said_with_what_readers_know(tmp_path) -> None:
    settings = tiny.settings()
    drawn = settings.model_copy(update={"split": settings.split.model_copy(update={"train": "any"})})
    workspace = tiny.workspace(tmp_path / "W")
    for these, wanted in ((settings, False), (drawn, True)):
        [labels] = [section for section in sections(gather(workspace, these)) if section.name == "labels"]
        text = "Answered without hints: 100.0% of train, 0.0% of dev, 0.0% of test."
        assert any(text in sentence for sentence in labels.sentences) is wanted
