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


@pytest.mark.frozen
@pytest.mark.parametrize("part", [_part(name) for name in PARTS])
def test_what_is_made_is_what_was_frozen(part: str, tmp_path: Path) -> None:
    assert list(differences(read(part), PARTS[part](tmp_path), part)) == []


def test_a_difference_names_table_column_and_row() -> None:
    labels = [{"question_id": "q", "permutation": one, "label": 2, "labelers": ["a"]} for one in PERMUTATIONS]
    verdict = {"question_id": "q", "answer_key": "lima", "correct": True, "probability": 0.5, "producer": "m@1"}

    def short(labels: list[dict], verdict: dict) -> dict:
        rows = {"labels": labels, "verdicts": [verdict]}
        return {name: table(name, pa.Table.from_pylist(of_table)) for name, of_table in rows.items()}

    before = short(labels, verdict)
    assert not list(differences(before, short(labels[::-1], verdict), ""))
    labels[2] = {**labels[2], "label": 1, "labelers": []}
    other = {"correct": False, "probability": 0.5 + 1e-9, "producer": "m@2"}
    lines = list(differences(before, short(labels, verdict | other), ""))
    for part in ("labels columns label:", "labels columns labelers:", "labels questions q: 1 passages: passage 012:",
                 "columns correct:", 'questions q: "lima | 0 others" -> "1 o', "q probability: 0.5 -> 0.500000001",
                 "columns producer:", 'identities producer[0]: "m@1" -> "m@2"'):  # fmt: skip
        assert len([line for line in lines if part in line]) == 1, (part, lines)
    assert len(lines) == 8
