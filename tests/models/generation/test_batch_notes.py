"""Notes of batches: what is noted is there after a restart, all of a batch or nothing of it."""

import math
from pathlib import Path

import pytest

from quit.models.generation.batch_notes import BatchLine, batch_notes
from quit.models.generation.ledger import Amount

KEYS = [bytes([number]) * 32 for number in range(3)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path))


def test_a_batch_and_its_replies_are_there_after_a_restart() -> None:
    with batch_notes("m") as notes:
        notes.add("tag", KEYS, 300.0, Amount(1.5, 30), "owner")
    with batch_notes("m") as notes:
        notes.set_identity("tag", "batch_1")
        [(tag, identity, _)] = notes.batches()
        assert (tag, identity, notes.waiting(), notes.size("tag")) == ("tag", "batch_1", 300.0, (300.0, 3))
        lines = [BatchLine("reply", 0, None, KEYS[0]), BatchLine(None, 5, "bad", KEYS[1])]
        assert notes.close("tag", lines, "ended") == (Amount(1.5, 30), "owner")
    with batch_notes("m") as notes:
        noted = {request.key: request[1:] for request in notes.requests(KEYS)}
        assert noted == {
            KEYS[0]: (None, 0, "reply", None), KEYS[1]: (None, 6, None, "bad"), KEYS[2]: (None, 1, None, "ended"),
        }  # fmt: skip
        assert (notes.batches(), notes.waiting()) == ([], 0.0)
        notes.fail([("unread", KEYS[0])])
        notes.forget(KEYS[1:])
        assert [request[1:] for request in notes.requests(KEYS)] == [(None, 1, None, "unread")]


def test_a_batch_that_was_never_made_counts_as_no_failure() -> None:
    with batch_notes("m") as notes:
        notes.add("tag", KEYS[:1], 1.0, Amount(), "")
        notes.close("tag", [], None)
        assert [request[1:] for request in notes.requests(KEYS)] == [(None, 0, None, None)]


def test_each_model_has_a_limit_of_its_own() -> None:
    with batch_notes("m") as notes:
        notes.add("tag", KEYS, 300.0, Amount(), "")
        notes.set_limit(1000.0)
        assert notes.limit() == 1000.0
    with batch_notes("other") as other:
        assert (other.limit(), other.waiting()) == (math.inf, 0.0)
