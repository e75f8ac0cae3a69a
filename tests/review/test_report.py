"""What the state of a review says of control questions and of hints that have changed."""

from pathlib import Path

from quit.review.report import pieces
from quit.review.status import review_status
from quit.review.store import ReviewStore
from quit.settings import Review
from tests.report import tiny
from tests.rows import write_lines


def test_control_questions_are_told_apart_from_what_is_left_to_do(tmp_path: Path) -> None:
    workspace, path = tiny.workspace(tmp_path / "W"), tmp_path / "controls.jsonl"
    store = ReviewStore(workspace)
    store.set_project({"key": "k", "url": "http://labels", "id": 3, "tasks": ["q1", "q2", "q3"]})
    store.set_sync({"project": ["k", 3], "tasks": 3, "done": 2})
    write_lines(path, [{"question_id": question, "correct": ["x"]} for question in ("q1", "q9")])
    first, *_ = pieces(review_status(workspace, Review(controls=str(path))))
    assert "2 of 3 tasks done, 1 open (among them 1 control question, open to everyone), as of" in first
    assert "2 of 3 tasks done, 1 open, as of" in pieces(review_status(workspace, Review()))[0]


def test_flags_on_hints_that_have_changed_are_told(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    header = next(row for row in tiny.reviews() if row["kind"] == "annotation")
    before = {**header, "annotation": 99, "review_id": "r99", "annotator": "cy", "content_with_hints": "of other hints"}
    flags = [{**before, "kind": "flag", "text": flag} for flag in ("leak", "hint_false", "ambiguous")]
    ReviewStore(workspace).append([before, *flags])
    status = review_status(workspace, Review())
    assert (status["reviews"]["set_aside"], status["reviews"]["set_aside_flags"]) == (0, 2)
    assert "Set aside: 2 flags on hints that have changed. They count again when these come back." in pieces(status)
