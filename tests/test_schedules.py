"""Settings of schedules: when one comes."""

from datetime import UTC, datetime

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
