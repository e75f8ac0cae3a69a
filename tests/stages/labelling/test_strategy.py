"""What the labelling strategies tell stages and plans."""

import pytest

from quit.settings import Settings
from quit.stages.labelling.strategy import LabellingStrategy

FIRST, SECOND, READER = "minilm-vector", "minilm-late", "minilm-names"


def _strategy(partial: str, *labelers: str) -> LabellingStrategy:
    readers = [{"name": READER, "role": "reader"}, *({"name": name, "role": "labeler"} for name in labelers)]
    return LabellingStrategy(Settings.model_validate({"readers": readers, "labels": {"partial": partial}}))


@pytest.mark.parametrize(
    ("partial", "readers", "earlier"),
    [("off", [READER, FIRST, SECOND], {}), ("exact", [FIRST, SECOND, READER], {SECOND: [FIRST]})],
)
def test_who_reads_when_and_who_spares_whom(partial: str, readers: list[str], earlier: dict) -> None:
    strategy = _strategy(partial, FIRST, SECOND)
    assert strategy.readers == readers and strategy.in_turn is bool(earlier)
    assert {name: names for name in readers if (names := strategy.earlier_labelers(name))} == earlier


def test_a_fingerprint_names_only_what_partial_labelling_changes() -> None:
    """The judge depends on the order of the labelers, later labelers on the judge."""

    def changed(ours: LabellingStrategy, theirs: LabellingStrategy) -> set[str]:
        readers = {name for name in (READER, FIRST, SECOND) if ours.reader_parts(name) != theirs.reader_parts(name)}
        return readers | ({"judge"} if ours.judge_parts() != theirs.judge_parts() else set())

    exact = _strategy("exact", FIRST, SECOND)
    assert changed(_strategy("off", FIRST, SECOND), exact) == {"judge", SECOND}
    assert changed(_strategy("exact", SECOND, FIRST), exact) == {"judge", FIRST, SECOND}
