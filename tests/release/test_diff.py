"""A diff says exactly what was changed by hand, and why."""

import copy
from dataclasses import asdict
from pathlib import Path

import pytest

from quit.errors import InputError
from quit.release.diff import diff
from quit.release.show import changelog
from tests.release import small


def _changed() -> small.Rows:
    """q1 leaves by review, q3 moves to dev, an answer of q2 is accepted by review: its passages 1 and 10 rise."""
    rows = small.without(small.rows(), "q1")
    rows["splits"][1]["split"] = "dev"
    for row in rows["labels"]:
        if row["question_id"] == "q2" and row["permutation"].startswith("1"):
            row["label"], row["labelers"] = 2, ["one"]
            rows["changes"].append({"question_id": "q2", "change": "label", "permutation": row["permutation"],
                "before": 1, "after": 2, "answer_key": "wrong", "reviews": ["r"],
                "reason": "'Wrong' accepted by 2 of 2"})  # fmt: skip
    rows["valid_answers"].append({"question_id": "q2", "answer": "Wrong", "answer_key": "wrong"})
    accepted = {"answer": "Wrong", "reviews": ["r"], "reason": "'Wrong' accepted by 2 of 2"}
    rows["changes"] += [
        {"question_id": "q2", "change": "answer_added", **accepted},
        {"question_id": "q1", "change": "question_removed", "reviews": ["s"], "reason": "flagged leak by 1 of 1"},
    ]
    return rows


def _diff(folder: Path, before: small.Rows, after: small.Rows, **content: str):
    """Return the difference of two releases, ``v1`` and ``v2``."""
    small.freeze(folder / "a", before, "v1")
    small.freeze(folder / "b", after, "v2", **content)
    return diff(folder / "a", folder / "b")


def test_every_change_by_hand_is_told_once_with_its_reason(tmp_path: Path) -> None:
    changes = _diff(tmp_path, small.rows(), _changed(), program_version="0.2.0")
    assert not changes["same"] and not changes["added"] and not changes["passages"] and not changes["answers_removed"]
    [gone], [moved], [answer] = changes["removed"], changes["moved"], changes["answers_added"]
    reason = "review: 'Wrong' accepted by 2 of 2"
    assert (gone["question_id"], gone["split"], gone["reason"]) == ("q1", "train", "review: flagged leak by 1 of 1")
    assert (moved["question_id"], moved["before"], moved["after"]) == ("q3", "test", "dev")
    assert changes["labels"] == [{"question_id": "q2", "up": 2, "down": 0, "reasons": [reason]}]
    assert (answer["question_id"], answer["answer"], answer["reason"]) == ("q2", "Wrong", reason)
    assert changes["origins"] == [{"what": "program", "key": "version", "before": "0.1.0", "after": "0.2.0"}]
    text = changelog(changes)
    moves = "1 in another split (train 1 -> 0, dev 1 -> 2, test 1 -> 0, all 3 -> 2)"
    assert f"Questions: 0 added, 1 removed, {moves}; 0 with other passages." in text
    assert "Labels: 2 passages from 1 to 2, 0 from 2 to 1, of 1 question." in text


NEW_JUDGE = {"judge": "new", "producer": "new@1"}


@pytest.mark.parametrize(
    ("verdict", "replies", "labeler", "reason"),
    [
        (NEW_JUDGE, {}, "one", "judged by new, before by rules"),
        ({}, {}, "one", "judged again by rules"),
        ({"basis": "exact"}, {}, "one", "other gold answers"),
        ({"basis": "review", **NEW_JUDGE}, {}, "one", "review"),
        ({"correct": False}, {"answers/one": "Picasso"}, "one", "other answers of one"),
        ({"correct": False}, {"answers/two": "Picasso"}, "two", "with the labeler two"),
        ({"correct": False}, {}, "one", "no reason is recorded"),
    ],
)
def test_a_changed_label_has_the_reason_that_made_it(
    tmp_path: Path, verdict: dict, replies: dict[str, str], labeler: str, reason: str
) -> None:
    before, passage = small.rows(), ("q2", "1")
    for row in before["verdicts"]:
        row |= {"judge": "rules", "producer": "rules@1"}
    after = copy.deepcopy(before)
    for row in after["verdicts"]:
        if (row["question_id"], row["answer"]) == ("q2", "Wrong"):
            row |= {"correct": True, **verdict}
    for table, answer in replies.items():
        for row in after[table]:
            if (row["question_id"], row["permutation"]) == passage:
                row["answer"] = answer
    for row in after["labels"]:
        if (row["question_id"], row["permutation"]) == passage:
            row |= {"label": 2, "labelers": [labeler]}
    roles = [
        {**asdict(info), "role": "labeler" if info.name in ("one", labeler) else "reader"} for info in small.READERS
    ]
    small.freeze(tmp_path / "b", after, "v2", readers=roles)
    small.freeze(tmp_path / "a", before, "v1")
    [there], [back] = diff(tmp_path / "a", tmp_path / "b")["labels"], diff(tmp_path / "b", tmp_path / "a")["labels"]
    assert there == {"question_id": "q2", "up": 1, "down": 0, "reasons": [reason]}
    mirrored = {
        "judged by new, before by rules": "judged by rules, before by new",
        "with the labeler two": "without the labeler two",
    }
    assert back == {"question_id": "q2", "up": 0, "down": 1, "reasons": [mirrored.get(reason, reason)]}


def test_the_way_back_is_the_opposite(tmp_path: Path) -> None:
    changes = _diff(tmp_path, _changed(), small.rows())
    assert [row["question_id"] for row in changes["added"]] == ["q1"] and not changes["removed"]
    reasons = ["taken back: 'Wrong' accepted by 2 of 2"]
    assert changes["labels"] == [{"question_id": "q2", "up": 0, "down": 2, "reasons": reasons}]
    assert [row["answer"] for row in changes["answers_removed"]] == ["Wrong"]


def test_a_review_that_still_counts_is_not_taken_back(tmp_path: Path) -> None:
    after = _changed()  # the rule for label 2 is stricter
    for row in after["labels"]:
        if row["question_id"] == "q2":
            row["label"] = 1
    changes = _diff(tmp_path, _changed(), after)
    assert changes["labels"] == [{"question_id": "q2", "up": 0, "down": 4, "reasons": ["no reason is recorded"]}]


def test_a_question_with_other_hints_is_named_and_its_labels_are_not_compared(tmp_path: Path) -> None:
    after = copy.deepcopy(small.rows())
    after["ranked_hints"][0]["hint"] = "It floods in summer."
    after["labels"][0]["label"] = 1
    changes = _diff(tmp_path, small.rows(), after)
    assert [row["question_id"] for row in changes["passages"]] == ["q1"] and not changes["labels"]


def test_a_question_with_another_text_is_named(tmp_path: Path) -> None:
    after = copy.deepcopy(small.rows())
    after["questions"][0]["question"] = "Which <b>river|floods Egypt?"
    changes = _diff(tmp_path, small.rows(), after)
    texts = {"before": "Which river runs through Cairo?", "after": "Which <b>river|floods Egypt?"}
    assert changes["reworded"] == [{"question_id": "q1", **texts}]
    assert "Which &lt;b&gt;river\\|floods Egypt?" in changelog(changes)


def test_a_question_that_a_stage_left_out_is_told_with_its_reason(tmp_path: Path) -> None:
    after = small.without(small.rows(), "q3")
    leak = {"stage": "filter", "reason": "answer_leak", "detail": "h1 says Lima", "question_id": "q3"}
    after["rejects"].append(leak)
    assert _diff(tmp_path, small.rows(), after)["removed"][0]["reason"] == "filter: answer_leak (h1 says Lima)"
    [back] = diff(tmp_path / "b", tmp_path / "a")["added"]
    assert back["reason"] == "was left out by filter: answer_leak (h1 says Lima)"


def test_a_question_that_leaves_without_a_review_is_not_laid_to_one(tmp_path: Path) -> None:
    after, why = small.without(small.rows(), "q1"), "q1#0: 'Paris' gives away 'Paris' (exact, 1.00)"
    after["changes"].append({"question_id": "q1", "change": "question_removed", "reviews": [], "reason": why})
    after["rejects"].append({"stage": "update", "reason": "answer_leak", "detail": why, "question_id": "q1"})
    [gone] = _diff(tmp_path, small.rows(), after)["removed"]
    assert gone["reason"] == f"update: answer_leak ({why})"


def test_long_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    changes = _diff(tmp_path, small.without(small.without(small.rows(), "q1"), "q2"), small.rows())
    assert "and 1 more" in changelog(changes, 1) and "more" not in changelog(changes, 0)


def test_the_same_content_is_the_same_and_tampered_releases_are_not_compared(tmp_path: Path) -> None:
    same = _diff(tmp_path, small.rows(), small.rows())  # under two names
    assert same["same"] and "The content is the same." in changelog(same)
    (tmp_path / "b" / "tables" / "labels.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"labels.parquet: was changed"):
        diff(tmp_path / "a", tmp_path / "b")
