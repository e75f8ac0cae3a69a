"""Retrieval complexity: ratings follow the formulas."""

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from quit.common.progress import Listener, listening
from quit.qa.commands.complexity import pieces
from quit.qa.complexity.agreement import agreement
from quit.qa.complexity.questions import ComplexityQuestion, questions_of
from quit.qa.complexity.retrieval_complexity import DECISIONS, Ratings, rate, write
from quit.qa.opening import Opened, questions
from quit.qa.settings.complexity import Complexity
from quit.retrieval.complexity import Retrieved
from tests.qa.scripted import SmallCollection, WordOverlap

DOCUMENTS = [("Lesotho", "lies inside South Africa"), ("Letsie III", "is king of Lesotho"), ("Bread", "is of flour")]
QUERIES = [
    {"query_id": "q", "text": "Who is king of the land inside South Africa?", "answers": ["Moshoeshoe"],
     "kind": "2hop"},
    {"query_id": "q-s1", "text": "Which land lies inside South Africa?", "answers": ["Lesotho"], "parent_id": "q",
     "hop": 1},
    {"query_id": "q-s2", "text": "xyzzy", "answers": ["nothing"], "parent_id": "q", "hop": 2},
    {"query_id": "open", "text": "Why?", "answers": []},
]  # fmt: skip
SETTINGS = Complexity(documents=2, resamples=100)
T_COM = SETTINGS.model_copy(update={"t_com": 0.9})
TOKENS = SimpleNamespace(
    identity="tokens",
    prepare=lambda texts: None,
    relevance=lambda _, texts: np.array([[1.0, 1.0] if "king" in text else [1.0, 0.0] for text in texts]),
)
ANSWERS = SimpleNamespace(
    identity="answers",
    scores=lambda _, answers, texts, vectors: np.array([float(any(one in text for one in answers)) for text in texts]),
)


Rated = tuple[ComplexityQuestion, Retrieved]


def rated_of(encoder) -> list[Rated]:
    collection = SmallCollection(DOCUMENTS, QUERIES, {})
    opened = Opened(collection, WordOverlap(collection), SimpleNamespace(encoder=encoder), None)
    items = questions_of(questions(collection))
    return [*zip(items, rate(items, opened, ANSWERS, TOKENS, SETTINGS), strict=True)]


def rating(answerability: float = 0.1, complete: float = 0.5, documents: int = 3, **question) -> Rated:
    item = ComplexityQuestion(**{"query_id": "q", "text": "q", "answers": ("Letsie III",), **question})
    return item, Retrieved(answerability, 0.0, complete, 0.1, documents)


def test_each_question_is_reported(encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, int, int | None]] = []
    listener = Listener()
    monkeypatch.setattr(listener, "advanced", lambda *report: heard.append(report))
    with listening(listener):
        rated_of(encoder)
    assert heard.count(("complexity: questions", 1, 3)) == 3  # the encoder reports too


def test_ratings(encoder, tmp_path: Path) -> None:
    ratings = Ratings.of(*zip(*rated_of(encoder), strict=True), SETTINGS)
    whole, step, nothing = ratings.table.to_pylist()
    assert [(row["query_id"], row["hops"]) for row in (whole, step, nothing)] == [("q", 2), ("q-s1", 1), ("q-s2", 1)]
    # One document of two speaks of both tokens.
    assert (whole["documents"], whole["completeness"]) == (2, 0.5)
    assert (whole["answerable"], whole["complete"], whole["complex"]) == (False, False, True)
    assert whole["margin"] == pytest.approx(min(0.5 - 0.0, SETTINGS.t_com - 0.5))
    assert step["answerable"] and not step["complex"] and step["margin"] == pytest.approx(-0.5)
    assert not any(nothing[name] for name in asdict(Retrieved(0, 0, 0, 0, 0))) and nothing["complex"]
    report = write(ratings, tmp_path, {"agreement": agreement(ratings)})
    assert (report["questions"], report["complex"], report["without_documents"]) == (3, 2, 1)
    table = pq.read_table(tmp_path / "complexity.parquet", columns=["query_id", "complex"])
    assert table.to_pydict() == {"query_id": ["q", "q-s1", "q-s2"], "complex": [True, False, True]}
    assert next(pieces(report)).startswith("3 questions")


@pytest.mark.parametrize(
    ("scores", "thresholds", "answerable", "complete"),
    [
        ((0.5, 0.2), (0.5, 0.9), True, False),
        ((0.49, 0.9), (0.5, 0.9), False, True),
        ((0.49, 0.89), (0.5, 0.9), False, False),
        ((0.0, 0.0, 0), (0.0, 0.0), False, False),  # no documents: neither
    ],
)
def test_complex_is_neither_answerable_nor_complete(scores, thresholds, answerable: bool, complete: bool) -> None:
    t_ans, t_com = thresholds
    ratings = Ratings.of(*zip(rating(*scores), strict=True), Complexity(t_ans=t_ans, t_com=t_com))
    decisions = [bool(ratings[name][0]) for name in DECISIONS]
    assert decisions == [answerable, complete, not answerable and not complete]
