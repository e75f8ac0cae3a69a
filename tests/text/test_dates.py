import pytest

from quit.text.dates import dates_in
from tests.rows import cases


@pytest.mark.parametrize(("text", "days"), cases(__file__, "dates.jsonl"))
def test_dates_are_read_in_any_notation(text: str, days: list[list[int | None]]) -> None:
    assert [[month, day, year] for month, day, year, _, _ in dates_in(text)] == days
