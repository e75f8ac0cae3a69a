"""Whose type counts, and that the classifier's stands beside it."""

from types import SimpleNamespace

import pytest

from quit.models.question_type import PredictedType
from quit.settings import QuestionTypeSettings
from quit.stages.questions.question_type import question_types
from tests.rows import table_of

GUESS = PredictedType("NUM:NUMERIC", "date:Date", 0.7)
ALWAYS_DATE = SimpleNamespace(identity="always-date", classify=lambda questions: [GUESS for _ in questions])


def _questions(*types: tuple[str | None, str | None]):
    rows = [{"question_id": f"q{n}", "coarse": coarse, "fine": fine} for n, (coarse, fine) in enumerate(types)]
    return table_of("questions", rows)


@pytest.mark.parametrize(
    ("prefer_source", "first"), [(True, ("LOC:LOCATION", "source")), (False, ("NUM:NUMERIC", "always-date"))]
)
def test_the_source_counts_where_it_names_both_levels(prefer_source: bool, first: tuple[str, str]) -> None:
    table = _questions(("LOC:LOCATION", "city:City"), ("LOC:LOCATION", None), (None, None))
    typed = question_types(table, ALWAYS_DATE, QuestionTypeSettings(prefer_source=prefer_source))
    assert (typed[0].coarse, typed[0].type_producer) == first
    assert [one.type_producer for one in typed[1:]] == ["always-date"] * 2
    assert {(one.classifier_coarse, one.classifier_fine) for one in typed} == {("NUM:NUMERIC", "date:Date")}
    assert question_types(_questions(), ALWAYS_DATE, QuestionTypeSettings()) == []
