"""Control questions: the file, their position in the queue, and the score."""

import pytest

from quit import contracts
from quit.errors import InputError
from quit.review.controls import Controls, absent_controls, control_scores, load_controls, mix_controls
from quit.review.items import ReviewItem, with_blind
from quit.settings import Review
from quit.stages.labelling.verdicts import live_reviews
from tests.stages.labelling.test_verdicts import said


def _item(name: str, split: str = "dev") -> ReviewItem:
    return ReviewItem(name, split, "?", (), (), ())


def test_they_are_spread_evenly_and_always_the_same() -> None:
    items = [_item(f"q{number:02d}") for number in range(38)] + [_item(f"c{number}", "train") for number in range(9)]
    controls = Controls({f"c{number}": {"x": True} for number in range(9)})
    queue = mix_controls(items, controls, Review(control_share=0.05), "seed")
    names = [item.question_id for item in queue]
    assert len(queue) == 40 and [place for place, name in enumerate(names) if name in controls.questions] == [10, 30]
    assert [name for name in names if name[0] == "q"] == [item.question_id for item in items[:38]]
    assert mix_controls(items, controls, Review(control_share=0.05), "seed") == queue
    assert mix_controls(items[:38], None, Review(), "seed") == items[:38]
    under_review = mix_controls(items[:2], Controls({"q00": {"x": True}}), Review(control_share=0.0), "s")
    assert {item.question_id for item in under_review} == {"q00", "q01"}  # a control stays where it is asked anyway


def test_those_that_are_no_question_here_are_named() -> None:
    controls = Controls({name: {"x": True} for name in ("q1", "typo2", "typo1")})
    sentence = "Control questions that are no labelled questions here are left out: typo1, typo2."
    assert absent_controls([_item("q1"), _item("q2")], controls) == [sentence]
    assert absent_controls([_item("q1")], Controls({"q1": {"x": True}})) == absent_controls([], None) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: The line is not JSON.*; expected {"),
        ('{"question_id": "q"}', "line 1: neither"),
        ('{"question_id": "q", "correct": ["The Nile"], "incorrect": ["nile"]}', "'nile' is said to be both"),
        ('["q"]', "record 1 is the text 'q'; expected {"),
        ('{"question_id": 7, "correct": ["x"]}', "line 1: .*'question_id' must be a text"),
        ('{"question_id": "q", "correct": "Paris"}', "line 1: 'correct' must be a list of texts, found 'Paris'"),
        ('{"question_id": "q", "incorrect": [3]}', "line 1: 'incorrect' must be a list of texts"),
        ('{"question_id": "q", "corect": ["x"]}', "line 1: 'corect' is no key here. Did you mean 'correct'"),
        ('{"question_id": "q", "correct": ["x"]}\n' * 2, "line 2: 'q' has a line already"),
        ('{"question_id": "q", "correct": ["x", " "]}', "line 1: 'correct' has a blank answer"),
        ("", "holds nothing"),
    ],
)
def test_a_bad_file_is_said_with_its_line(tmp_path, line: str, message: str) -> None:
    path = tmp_path / "controls.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_controls(path)


def test_being_blind_follows_from_the_id_alone_and_grows_with_the_share() -> None:
    items = [_item(f"q{number:04d}") for number in range(2000)]

    def blind(share: float, some: list[ReviewItem] = items) -> set[str]:
        return {item.question_id for item in with_blind(some, share, "seed") if item.blind}

    assert not blind(0.0) and blind(0.1) < blind(0.5) < blind(1.0) == {item.question_id for item in items}
    assert 800 < len(blind(0.5)) < 1200  # nine standard deviations of a fair draw
    assert blind(0.5, items[::-7]) == blind(0.5) & {item.question_id for item in items[::-7]}


def test_the_score_counts_known_verdicts_only(tmp_path) -> None:
    path = tmp_path / "controls.jsonl"
    path.write_text('{"question_id": "q", "correct": ["X"], "incorrect": ["The Y", "z"]}\n', encoding="utf-8")
    rows = [
        *said("a", 1, x=True, y=True, other=True),
        *said("b", 2, x=True, y=False),
        *said("c", 3, question="p", x=False),
        *said("d", 4, x=None, y=True),
    ]
    live = live_reviews(contracts.table("reviews").from_rows(rows))
    scores = [(row["annotator"], row["right"], row["asked"]) for row in control_scores(live, load_controls(path))]
    assert scores == [("a", 1, 2), ("b", 2, 2), ("d", 0, 1)]
