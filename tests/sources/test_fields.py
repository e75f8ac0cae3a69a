"""Records with a fault in a field, of every kind that is JSON: each is left out with its reason, and costs no other."""

from pathlib import Path
from typing import Any

import pytest

from tests.rows import cases
from tests.sources.records import good, read_two

FAULTS: list[tuple[str, dict[str, Any], str, str]] = [("wikihint", {"hints": ["x"] * 1001}, "too_many", "1001")]
for kind, without, changes, reason, words in cases(__file__, "faults.jsonl"):
    FAULTS.append((kind, {**dict.fromkeys(without, ...), **changes}, reason, words))
"""Kind of source, changes of a good record (``...`` takes a field away), reason and words of the fault."""


@pytest.mark.parametrize(("kind", "changes", "reason", "words"), FAULTS)
def test_a_malformed_record_is_rejected_and_costs_no_other(tmp_path: Path, kind, changes, reason, words) -> None:
    bad, fine = read_two(kind, tmp_path, good(kind, **changes), good(kind))
    assert bad.question is None and fine.question is not None
    (reject,) = bad.rejects
    assert (reject.stage, reject.kind, reject.reason) == ("collect", "record", reason)
    assert words in reject.detail and len(reject.detail) < 400
    assert reject.detail.startswith({"jsonl": "line 1: ", "triviahg": "record 1: "}.get(kind, ""))
    assert (reject.source, reject.position) == (kind, 0) and reject.file.startswith("s.json")
    assert reject.record_id in ("q1", None)


def test_quotes_from_input_are_short_and_escaped(tmp_path: Path) -> None:
    changes = {"Convergence": ["\x1b[31m" + "x" * 5000, 0]}
    bad, _ = read_two("triviahg", tmp_path, good("triviahg", **changes), good("triviahg"))
    assert len(bad.rejects[0].detail) < 250 and "\x1b" not in bad.rejects[0].detail
