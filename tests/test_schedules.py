"""Settings of schedules: when one comes."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from quit.settings import load


def _schedule(text: str):
    return load("embedded", [f"schedules=[{{ {text} }}]"]).settings.schedules[0]


def test_the_next_time_is_told_in_the_schedules_own_zone_across_a_change_of_clocks() -> None:
    """On 29 March 2026 Vienna's clocks go from 2 to 3: three in the morning is at 1:00 UTC, the day before at 2:00."""
    one = _schedule("flow = 'build', cron = '0 3 * * *', timezone = 'Europe/Vienna'")
    before = one.next_time(datetime(2026, 3, 27, 12, tzinfo=UTC))
    after = one.next_time(datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert before and before.astimezone(UTC) == datetime(2026, 3, 28, 2, tzinfo=UTC)
    assert after and after.astimezone(UTC) == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert len(load("embedded", ["schedules=[{flow='build'}, {flow='build', name='weekly'}]"]).settings.schedules) == 2
    for without in ("cron = '0 3 * * *', enabled = false", "name = 'by-hand'"):
        assert _schedule(f"flow = 'build', {without}").next_time(datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    "cron", ["30 2 * * *", "0 3 * * *", "*/20 * * * *", "0 */2 * * *", "15 1 * * *", "59 23 * * 0"]
)
@pytest.mark.parametrize(
    ("zone", "day"),
    [("Europe/Vienna", "2027-03-27"), ("Europe/Vienna", "2027-10-30"), ("America/New_York", "2027-03-13"),
     ("America/New_York", "2027-11-06"), ("Australia/Lord_Howe", "2027-04-03"), ("Africa/Casablanca", "2027-02-06"),
     ("Asia/Kolkata", "2027-03-27")],
)  # fmt: skip
def test_the_next_times_are_those_of_prefect_also_where_clocks_change(cron: str, zone: str, day: str) -> None:
    schedules = pytest.importorskip("prefect.server.schemas.schedules")
    start = datetime.fromisoformat(f"{day}T20:00").replace(tzinfo=ZoneInfo(zone))
    end = start + timedelta(hours=40)
    theirs = asyncio.run(schedules.CronSchedule(cron=cron, timezone=zone).get_dates(n=200, start=start, end=end))
    one, ours, time = _schedule(f"flow = 'build', cron = '{cron}', timezone = '{zone}'"), [], start
    while (time := one.next_time(time)) and time <= end:
        ours.append(time.timestamp())
    assert ours == [each.timestamp() for each in theirs if each > start]
