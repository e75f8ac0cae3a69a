"""What a cap on cost begins with: earlier requests at the price of their time, whatever the profile names now."""

from pathlib import Path

import pytest

from quit.engine.usage import capped, record
from quit.models.generation.ledger import Ledger
from quit.models.generation.meter import Count
from quit.settings import load

PRICES = ["readers.0.price_prompt=2", "readers.0.price_completion=4", "run.max_cost=50"]
"""A currency unit for a million tokens of the profile server's first reader."""


@pytest.mark.parametrize(
    ("then", "now", "cost", "is_said"),
    [
        (PRICES, PRICES, 6.0, False),
        (PRICES, [*PRICES, "readers.0.price_prompt=200"], 6.0, False),
        (PRICES, [*PRICES, "servers.0.batch=true"], 6.0, False),
        (PRICES, [*PRICES, "readers.0.name=renamed"], 6.0, False),
        ([], PRICES, 6.0, False),
        ([], [*PRICES, "readers.0.name=renamed"], 0.0, True),
    ],
)
def test_earlier_requests_count_at_the_price_of_their_time(tmp_path: Path, notes, then, now, cost, is_said) -> None:
    first, settings = load("server", then).settings, load("server", now).settings
    count = Count(requests=9, prompt_tokens=10**6, completion_tokens=10**6)
    record(tmp_path, "read:a", {}, {first.readers[0].name: count}, first)
    ledger = Ledger(settings.run.max_cost)
    with capped(tmp_path, settings, ledger):
        assert (ledger.spent.cost, ledger.spent.tokens) == (cost, 2_000_000)
    assert any("no price is known" in text for text in notes) is is_said
