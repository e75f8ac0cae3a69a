"""Candidates from the collection: alike in kind, near, and not the answer itself."""

from types import SimpleNamespace

import numpy as np
import pytest

from quit.models.protocols import Drawn
from quit.models.question_type import PredictedType as Guess
from quit.settings import Convergence, QuestionTypeSettings
from quit.stages.questions.candidates import CandidatePool
from tests.rows import table_of

ROWS = [
    ("Which city?", ["Paris"], "city:City"), ("Which other city?", ["London"], "city:City"),
    ("The German one?", ["Berlin"], "city:City"), ("The Italian one?", ["Rome"], "city:City"),
    ("Again in France?", ["City of Light"], "city:City"), ("Paris once more?", ["paris"], "city:City"),
    ("Which country?", ["France"], "country:Country"), ("Which man?", ["Paris Hilton"], "ind:Individual"),
    ("Typed by nobody, a city?", ["Madrid"], None),
]  # fmt: skip


ALIAS = {"Paris", "City of Light"}
PARIS = {"question_id": "q0", "question": "Which city?", "answers": ["Paris"]}


def _candidates(encoder, row: dict[str, object], **settings) -> list[Drawn]:
    """Draw candidates. A question without a type is taken for one about a city, and one alias is known."""
    names = ("question", "answers", "coarse", "fine")
    rows = [(question, answers, fine and "LOC:LOCATION", fine) for question, answers, fine in ROWS]
    table = table_of("questions", [{"question_id": f"q{n}", **dict(zip(names, row))} for n, row in enumerate(rows)])
    guess = Guess("LOC:LOCATION", "city:City", 0.9)
    guesser = SimpleNamespace(identity="cities", classify=lambda questions: [guess for _ in questions])
    aliases = SimpleNamespace(
        identity="aliases",
        probability=lambda pairs: np.array([0.9 if {one.reference, one.candidate} == ALIAS else 0.1 for one in pairs]),
    )
    pool = CandidatePool(table, guesser, encoder, aliases, QuestionTypeSettings(), Convergence(**settings))
    return pool.draw([row])[0]


def test_nearest_candidates_of_the_fine_type_that_are_not_the_answer_come_first_and_the_cap_holds(encoder) -> None:
    candidates = _candidates(encoder, PARIS)
    # Not France or Paris Hilton (other types, though nearest), not paris (the answer), not City of Light (equivalent).
    names = ("London", "Berlin", "Rome", "Madrid")
    cosine = dict(zip(names, map(float, encoder.encode(names) @ encoder.encode(["Paris"])[0])))
    expected = [(name, "city:City", cosine[name]) for name in sorted(cosine, key=lambda name: -cosine[name])]
    assert [(one.candidate, one.fine, pytest.approx(one.similarity, abs=1e-6)) for one in candidates] == expected
    assert _candidates(encoder, PARIS, candidate_cap=3) == candidates[:2]


def test_an_only_child_gets_no_candidates_rather_than_wrong_ones(encoder) -> None:
    assert _candidates(encoder, {"question_id": "q6", "question": "Which country?", "answers": ["France"]}) == []
