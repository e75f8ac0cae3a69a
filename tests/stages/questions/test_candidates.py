"""Candidates from the collection: alike in kind, near, and not the answer itself."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from quit.models.protocols import Pair
from quit.models.question_type import PredictedType as Guess
from quit.settings import Convergence, QuestionTypeSettings
from quit.stages.questions.candidates import CandidatePool
from tests.rows import table_of

ROWS = [
    ("Which city?", ["Paris"], "city:City"),
    ("Which other city?", ["London"], "city:City"),
    ("The German one?", ["Berlin"], "city:City"),
    ("The Italian one?", ["Rome"], "city:City"),
    ("Again in France?", ["City of Light"], "city:City"),
    ("Paris once more?", ["paris"], "city:City"),
    ("Which country?", ["France"], "country:Country"),
    ("Which man?", ["Paris Hilton"], "ind:Individual"),
    ("Typed by nobody, a city?", ["Madrid"], None),
]


class CityGuesser:
    """Takes every untyped question for one about a city."""

    identity = "cities"

    def classify(self, questions: Sequence[str]) -> list[Guess]:
        return [Guess("LOC:LOCATION", "city:City", 0.9) for _ in questions]


class Aliases:
    """Knows one alias."""

    identity = "aliases"

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        alias = {"Paris", "City of Light"}
        return np.array([0.9 if {pair.reference, pair.candidate} == alias else 0.1 for pair in pairs])


def _questions() -> pa.Table:
    names = ("question", "answers", "coarse", "fine")
    rows = [(question, answers, fine and "LOC:LOCATION", fine) for question, answers, fine in ROWS]
    return table_of("questions", [{"question_id": f"q{n}", **dict(zip(names, row))} for n, row in enumerate(rows)])


def _pool(encoder, **settings) -> CandidatePool:
    return CandidatePool(
        _questions(), CityGuesser(), encoder, Aliases(), QuestionTypeSettings(), Convergence(**settings)
    )


def _asked(question_id: str, question: str, answer: str) -> dict[str, object]:
    return {"question_id": question_id, "question": question, "answers": [answer]}


def test_candidates_have_the_fine_type_and_are_not_the_answer(encoder) -> None:
    drawn = _pool(encoder).draw([_asked("q0", "Which city?", "Paris")])[0]
    # Not France or Paris Hilton (other types, though nearest), not paris (the answer), not City of Light (equivalent).
    assert {one.candidate for one in drawn} == {"London", "Berlin", "Rome", "Madrid"}
    assert {one.fine for one in drawn} == {"city:City"}


def test_nearest_candidates_come_first_and_the_cap_holds(encoder) -> None:
    everything = _pool(encoder).draw([_asked("q0", "Which city?", "Paris")])[0]
    names = ("London", "Berlin", "Rome", "Madrid")
    cosine = dict(zip(names, encoder.encode(names) @ encoder.encode(["Paris"])[0]))
    assert [one.candidate for one in everything] == sorted(cosine, key=lambda name: -cosine[name])
    assert all(first.similarity >= second.similarity for first, second in pairwise(everything))
    assert everything[0].similarity == pytest.approx(float(max(cosine.values())), abs=1e-6)
    assert _pool(encoder, candidate_cap=3).draw([_asked("q0", "Which city?", "Paris")])[0] == everything[:2]


def test_the_equivalence_threshold_is_a_setting(encoder) -> None:
    drawn = _pool(encoder, candidate_equivalence=0.95).draw([_asked("q0", "Which city?", "Paris")])[0]
    assert "City of Light" in {one.candidate for one in drawn}


def test_an_only_child_gets_no_candidates_rather_than_wrong_ones(encoder) -> None:
    assert _pool(encoder).draw([_asked("q6", "Which country?", "France")])[0] == []
