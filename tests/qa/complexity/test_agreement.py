"""Agreement with known labels is found where it is and not where it is not."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from quit.qa.commands.complexity import pieces
from quit.qa.complexity.agreement import agreement
from quit.qa.complexity.questions import read_questions
from quit.qa.complexity.retrieval_complexity import DECISIONS, Ratings, write
from quit.render.table import markdown
from tests.qa.complexity.test_retrieval_complexity import T_COM, Rated, rating
from tests.rows import write_lines


@cache
def drawn() -> list[Rated]:
    """Ratings whose answerability falls with the hops, and whose completeness is chance."""
    rng = np.random.default_rng(4)
    ratings = []
    for number in range(120):
        hops = int(rng.integers(1, 5))
        falling = float(np.clip(1 - 0.25 * hops + 0.1 * rng.normal(), 0, 1))
        question = {"query_id": str(number), "hops": hops, "kind": f"{hops}hop", "group": str(number // 2)}
        ratings.append(rating(falling, rng.random(), **question))
    return ratings


def test_agreement_is_found_where_it_is_and_not_elsewhere() -> None:
    figures = agreement(Ratings.of(*zip(*drawn(), strict=True), T_COM))
    two = figures["known_complex"]
    assert two["auc"]["answerability"]["value"] < 0.1 and two["auc"]["answerability"]["p"] < 0.01
    assert two["chosen_thresholds"]["matthews"]["value"] > 0.6
    assert two["auc"]["completeness"]["low"] < 0.5 < two["auc"]["completeness"]["high"]
    two_hops = [one for one in drawn() if one[0].hops == 2]
    assert agreement(Ratings.of(*zip(*two_hops, strict=True), T_COM)) == {}, "one kind"


def test_a_prompted_model_is_one_more_decision_and_its_own_answers_are_compared() -> None:
    known = [one[0].hops > 1 for one in drawn()]
    correct = (~Ratings.of(*zip(*drawn(), strict=True), T_COM)["complex"]).tolist()
    ratings = Ratings.of(*zip(*drawn(), strict=True), T_COM, {"said_complex": [None, *known[1:]], "correct": correct})
    figures = agreement(ratings)
    first = int(known[0])  # what could not be read counts as a no
    assert figures["known_complex"]["language_model"]["accuracy"] == pytest.approx(1 - first / len(known))
    own = figures["correct"]
    assert own["accuracy"]["complex"] == 0.0 and own["accuracy"]["not_complex"] == 1.0
    assert own["pearson"]["complex"]["value"] == pytest.approx(-1.0)
    scores = [one[1].answerability for one in drawn()]
    expected = stats.pearsonr(scores, [float(verdict) for verdict in correct]).statistic
    assert own["pearson"]["answerability"]["value"] == pytest.approx(expected)
    shown = markdown(pieces({"questions": 1, **dict.fromkeys(DECISIONS, 1), "agreement": figures}))
    assert "Pearson's correlation with it" in shown and "| pearson complex | -1.000 | -1.000 to -1.000 |" in shown


def test_labels_of_a_file_are_what_complexity_is_compared_with(tmp_path: Path) -> None:
    rows = [{"complex": True}, {"complex": False, "hops": 3}, {"hops": 2}, {}]
    records = [{"id": number, "question": "q", "answers": ["a"], **row} for number, row in enumerate(rows)]
    items = read_questions(write_lines(tmp_path / "q.jsonl", records))
    assert [item.label for item in items] == [True, False, True, None]
    # Complex are 0 and 1 (no document holds an answer), so of the three labelled ones 0 is right and 1 and 2 are wrong.
    retrieved = [rating(float(number > 1), 0.1)[1] for number in range(len(items))]
    ratings = Ratings.of(items, retrieved, T_COM)
    figures = agreement(ratings)
    two = figures["known_complex"]
    assert (two["items"], two["positive"], two["complex"]["accuracy"]) == (3, 2, pytest.approx(1 / 3))
    page = markdown(pieces(write(ratings, tmp_path, {"agreement": figures})))
    assert "Known to be complex (2 of 3)" in page
    assert "| complex matthews | -0.500 | – |" in page, "a resample of three questions often has one label alone"
    assert pq.read_table(tmp_path / "complexity.parquet")["known_complex"].to_pylist() == [True, False, None, None]
