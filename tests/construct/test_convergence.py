import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas
from quit.construct.convergence import SimilarityScorer, convergence, rank_hints
from quit.settings import Convergence


def test_hand_computed() -> None:
    assert convergence([0] * 10, 1) == 1.0  # only the gold answer fits
    assert convergence([1] * 10, 1) == 0.09  # every candidate fits: 1 - 10/11
    assert convergence([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], 1) == 0.82
    assert convergence([0] * 10, 0) == 0.0  # does not fit the gold answer
    assert convergence([1] * 5 + [0] * 10, 1) == 0.55  # only the first ten distractors count
    assert convergence([], 1) == 1.0


@pytest.mark.parametrize("name", ["Copilot", "GPT_3.5", "LLaMA_7b_Finetuned"])
def test_published_values_are_reproduced(data, name: str) -> None:
    total = right = 0
    for question in json.loads((data / "triviahg" / f"{name}.json").read_text(encoding="utf-8")):
        for scores, published in zip(question["Scores"], question["Convergence"]):
            *distractors, gold = scores.values()
            total += 1
            right += convergence(distractors, gold) == published
    assert total > 890
    assert right / total >= 0.99


@given(st.lists(st.integers(0, 1), max_size=20))
def test_one_more_rival_never_raises_it(scores: list[int]) -> None:
    value = convergence(scores, 1)
    assert 0 <= value <= 1
    for place, score in enumerate(scores):
        if not score:
            assert convergence([*scores[:place], 1, *scores[place + 1 :]], 1) <= value


def _tables(hints: list[dict], scores: list[dict] | None = None) -> dict[str, pa.Table]:
    question = {
        "question_id": "q",
        "question": "Which city?",
        "answers": ["Paris"],
        "source": "jsonl",
        "content_key": "k",
    }
    rows = [
        {"hint_id": f"q-h{place:02d}", "question_id": "q", "position": place, "source": "jsonl", "file": "f", **hint}
        for place, hint in enumerate(hints)
    ]
    names = ["London", "Berlin", "Madrid", "Rome", "Vienna", "Paris"]
    return {
        "questions": schemas.table("questions").from_rows([question]),
        "hints": schemas.table("hints").from_rows(rows),
        "usable_hints": schemas.table("usable_hints").from_rows(
            [{"hint_id": row["hint_id"], "question_id": "q"} for row in rows]
        ),
        "candidates": schemas.table("candidates").from_rows(
            [
                {"question_id": "q", "position": i, "candidate": name, "is_gold": name == "Paris"}
                for i, name in enumerate(names)
            ]
        ),
        "scores": schemas.table("scores").from_rows(scores or []),
    }


def _rank(tables: dict[str, pa.Table], encoder, **settings) -> dict[str, pa.Table]:
    return rank_hints(**tables, every_answer=["Paris", "Oslo"], encoder=encoder, settings=Convergence(**settings))


def test_ties_go_to_the_shorter_hint_then_to_source_order(encoder) -> None:
    hints = [
        {"hint": "a longer hint of one half", "convergence": 0.5},
        {"hint": "ccc", "convergence": 0.5},
        {"hint": "bbb", "convergence": 0.5},
        {"hint": "the best", "convergence": 0.9},
        {"hint": "the worst", "convergence": 0.0},
        {"hint": "second", "convergence": 0.8},
    ]
    ranked = _rank(_tables(hints), encoder)["ranked_hints"].to_pylist()
    assert [row["hint"] for row in ranked] == [
        "the best",
        "second",
        "ccc",
        "bbb",
        "a longer hint of one half",
        "the worst",
    ]
    assert [row["selected"] for row in ranked] == [True] * 5 + [False]
    assert {row["producer"] for row in ranked} == {"source"}


def test_a_sources_scores_are_used_where_it_has_no_convergence(encoder) -> None:
    hints = [{"hint": f"hint {place}"} for place in range(5)]
    scores = [
        {
            "hint_id": f"q-h{hint:02d}",
            "question_id": "q",
            "position": place,
            "candidate": name,
            "score": int(place < hint or name == "Paris"),
        }
        for hint in range(5)
        for place, name in enumerate(["London", "Berlin", "Madrid", "Rome", "Paris"])
    ]
    ranked = _rank(_tables(hints, scores), encoder)["ranked_hints"].to_pylist()
    assert [row["convergence"] for row in ranked] == [1.0, 0.8, 0.6, 0.4, 0.2]
    assert {row["producer"] for row in ranked} == {"source-scores"}


def test_embedded_scoring_prefers_the_telling_hint(encoder) -> None:
    scorer = SimilarityScorer(encoder, [], Convergence())
    telling, vague, misleading = scorer.convergence(
        [
            "The Eiffel Tower stands in this city on the Seine.",
            "People live in it.",
            "Big Ben and the Thames are its landmarks.",
        ],
        ["Paris"],
        ["London", "Berlin", "Madrid", "Rome", "Vienna"],
    )
    assert telling >= 0.8
    assert misleading < telling
    assert vague < telling


def test_a_question_with_too_few_hints_is_rejected_not_dropped(encoder) -> None:
    made = _rank(_tables([{"hint": f"hint {place}", "convergence": 0.1} for place in range(4)]), encoder)
    assert len(made["ranked_hints"]) == 0
    assert made["rejects"].to_pylist()[0]["reason"] == "too_few_hints"
