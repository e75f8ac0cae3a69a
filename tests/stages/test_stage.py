"""What a stage declares, and the order of stages."""

from __future__ import annotations

import pyarrow as pa
import pytest

import quit.stages.stage as stage_module
from quit.stages.stage import LazyTable, Stage, number_stages, stage


def _first(context, sources): ...
def _second(context, questions): ...
def _third(context, hints, answers=None): ...


def _alias(context, labels: Lazy, answers: stage_module.LazyTable | None = None, hints: pa.Table | None = None): ...
def _before(context, passages: LazyTable, later: Later): ...


Lazy, Later = LazyTable, pa.Table


def _stages() -> list[Stage]:
    return [
        stage("first", outputs=("questions",))(_first),
        stage("second", outputs=("hints",))(_second),
        stage("aside", outputs=("notes",), whole=("questions",))(_second),
        stage("third", outputs=("answers",))(_third),
    ]


def test_an_input_is_lazy_by_its_type_however_that_is_written() -> None:
    of_alias = stage("alias", outputs=())(_alias)
    assert (of_alias.inputs, of_alias.optional) == (("labels",), ("answers", "hints"))
    assert of_alias.lazy_inputs == {"labels", "answers"} and not of_alias.takes_tables_alone
    of_before = stage("before", outputs=(), before=_before)(lambda context, chosen, hints: {})
    assert of_before.inputs == ("hints", "passages", "later")
    assert of_before.lazy_inputs == {"passages"} and of_before.takes_tables_alone


def test_stages_are_numbered_in_their_order() -> None:
    assert [(each.name, each.number) for each in number_stages(*_stages())] == [
        ("first", 1), ("second", 2), ("aside", 3), ("third", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ((1, 0, 2, 3), "The stage 'second' reads 'questions', which no earlier stage makes; 'first' does."),
        ((2, 0, 1, 3), "The stage 'aside' reads 'questions', which no earlier stage makes; 'first' does."),
        ((0, 3), "The stage 'third' reads 'hints', which no earlier stage makes."),
    ],
)
def test_a_stage_may_only_read_tables_of_earlier_ones(order: tuple[int, ...], says: str) -> None:
    stages = _stages()
    with pytest.raises(ValueError) as error:
        number_stages(*(stages[position] for position in order))
    assert str(error.value) == says
