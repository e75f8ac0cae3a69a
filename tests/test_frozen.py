"""Today's results for the starter, for WikiHint and for a small corpus are those that were frozen."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.frozen.parts import NEEDS_DATA, PARTS, WIKIHINT
from tests.frozen.tables import table
from tests.frozen.values import PERMUTATIONS, differences, read


def _part(name: str) -> object:
    marks = [] if name.endswith("answers") else [pytest.mark.slow]
    if name in NEEDS_DATA:
        marks.append(pytest.mark.skipif(not WIKIHINT.exists(), reason="the shared real data is not here"))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("part", [_part(name) for name in PARTS])
def test_what_is_made_is_what_was_frozen(part: str, tmp_path: Path) -> None:
    assert list(differences(read(part), PARTS[part](tmp_path), part)) == []


CHANGED: dict[str, tuple[dict, list[str]]] = {
    "nothing": ({}, []),
    "a label": (
        {"labels": {"label": 1, "labelers": []}},
        ["labels columns label", "labels columns labelers", "labels questions q: 1 passages: passage 012: 1 -> 0"],
    ),
    "a verdict": ({"verdicts": {"correct": False}}, ["columns correct", 'questions q: "lima | 0 others" -> "1 o']),
    "a probability": ({"verdicts": {"probability": 0.50001}}, ["verdicts means q probability: 0.5 -> 0.50001"]),
    "the last digits of a probability": (
        {"verdicts": {"probability": 0.5 + 1e-9}},
        ["verdicts means q probability: 0.5 -> 0.500000001"],
    ),
    "a model": ({"verdicts": {"producer": "m@2"}}, ["columns producer", 'identities producer[0]: "m@1" -> "m@2"']),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_difference_names_table_column_and_row(name: str) -> None:
    changes, expected = CHANGED[name]
    labels = [{"question_id": "q", "permutation": one, "label": 2, "labelers": ["a"]} for one in PERMUTATIONS]
    verdict = {"question_id": "q", "answer_key": "lima", "correct": True, "probability": 0.5, "producer": "m@1"}

    def short(labels: list[dict], verdict: dict) -> dict:
        rows = {"labels": labels, "verdicts": [verdict]}
        return {name: table(name, pa.Table.from_pylist(of_table)) for name, of_table in rows.items()}

    other = [*labels[:2], {**labels[2], **changes.get("labels", {})}, *labels[3:]]
    ruled = {**verdict, **changes.get("verdicts", {})}
    lines = list(differences(short(labels, verdict), short(other[::-1], ruled), ""))
    assert len(lines) == len(expected)
    assert all(part in line for part, line in zip(expected, lines, strict=True)), lines
