"""Whose type counts, and that the classifier's stands beside it."""

from dataclasses import dataclass

import pytest

from quit.settings import QuestionTypeSettings
from quit.stages.questions.question_type import question_types
from tests.rows import table_of


@dataclass
class Guess:
    coarse: str = "NUM:NUMERIC"
    fine: str = "date:Date"
    confidence: float = 0.7


class AlwaysDate:
    identity = "always-date"

    def classify(self, questions):
        return [Guess() for _ in questions]


def _questions(*types: tuple[str | None, str | None]):
    rows = [{"question_id": f"q{n}", "coarse": coarse, "fine": fine} for n, (coarse, fine) in enumerate(types)]
    return table_of("questions", rows)


@pytest.mark.parametrize(
    ("prefer_source", "first"), [(True, ("LOC:LOCATION", "source")), (False, ("NUM:NUMERIC", "always-date"))]
)
def test_the_source_counts_where_it_names_both_levels(prefer_source: bool, first: tuple[str, str]) -> None:
    table = _questions(("LOC:LOCATION", "city:City"), ("LOC:LOCATION", None), (None, None))
    typed = question_types(table, AlwaysDate(), QuestionTypeSettings(prefer_source=prefer_source))
    assert (typed[0].coarse, typed[0].producer) == first
    assert [one.producer for one in typed[1:]] == ["always-date"] * 2
    assert {(one.classifier_coarse, one.classifier_fine) for one in typed} == {("NUM:NUMERIC", "date:Date")}
    assert question_types(_questions(), AlwaysDate(), QuestionTypeSettings()) == []
