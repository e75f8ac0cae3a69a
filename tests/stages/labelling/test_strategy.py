"""What the labelling strategies tell stages and plans."""

import itertools

import pytest

from quit.settings import Settings
from quit.stages.labelling.strategy import labelling_strategy

FIRST, SECOND, READER = "minilm-vector", "minilm-late", "minilm-names"
READERS = [{"name": READER, "role": "reader"}, *({"name": name, "role": "labeler"} for name in (FIRST, SECOND))]


def _settings(**labels: object) -> Settings:
    return Settings.model_validate({"readers": READERS, "labels": labels})


@pytest.mark.parametrize(
    ("partial", "readers", "in_turn", "deciding"),
    [
        ("off", [READER, FIRST, SECOND], False, {}),
        ("exact", [SECOND, FIRST, READER], True, {FIRST: [f"read:{SECOND}"]}),
    ],
)
def test_who_reads_when_and_which_tables_decide(partial, readers, in_turn, deciding) -> None:
    strategy = labelling_strategy(_settings(partial=partial, order=[SECOND, FIRST]))
    strategy.check()
    assert strategy.readers == readers and strategy.in_turn == in_turn
    assert {name: runs for name in readers if (runs := strategy.deciding_runs(name))} == deciding


def test_a_fingerprint_names_only_what_partial_labelling_changes() -> None:
    """The judge depends on the order of the labelers, later labelers on the judge."""

    def changed(one: dict[str, object], other: dict[str, object]) -> set[tuple[str, str | None]]:
        ours, theirs = (labelling_strategy(_settings(**labels)) for labels in (one, other))
        readers = itertools.product(("probe", "read"), (READER, FIRST, SECOND))
        runs = [("judge", None), ("label", None), *readers]
        return {run for run in runs if ours.fingerprint_parts(*run) != theirs.fingerprint_parts(*run)}

    exact = {"partial": "exact"}
    assert changed({"partial": "off"}, exact) == {("judge", None), ("read", SECOND)}
    both = {("read", FIRST), ("read", SECOND)}
    assert changed({**exact, "order": [SECOND, FIRST]}, exact) == {("judge", None), *both}
