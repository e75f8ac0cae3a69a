"""Settings of schedules: what is refused, and how it is said."""

from datetime import UTC, datetime

import pytest

from quit.errors import SettingsError
from quit.settings import load


def _schedule(text: str):
    return load("embedded", [f"schedules=[{{ {text} }}]"]).settings.schedules[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("flow = 'build', cron = '61 3 * * *'", "minute"),
        ("flow = 'build', cron = '3 * * *'", "five fields"),
        ("flow = 'build', cron = '0 3 30 2 *'", "day-of-month|never comes"),
        ("flow = 'build', cron = '@daily'", "five fields"),
        ("flow = 'build', timezone = 'Mars/Olympus'", "Europe/Vienna"),
        ("flow = 'buidl'", "'label-update'"),
        ("flow = 'build', crn = '0 3 * * *'", "'schedules.0.cron'"),
        ("flow = 'build', webhook_env = 'https://hooks.example.com/secret'", "name of an environment variable"),
        ("flow = 'build', block = 'slack'", "block-type/name"),
        ("flow = 'build', name = 'Every Night'", "schedules.0.name"),
        ("flow = 'build', retries = -1", "schedules.0.retries"),
    ],
)
def test_a_wrong_schedule_is_named_with_what_would_be_right(text: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        _schedule(text)


def test_two_schedules_of_a_flow_need_names() -> None:
    with pytest.raises(SettingsError, match="needs a different name"):
        load("embedded", ["schedules=[{flow='build'}, {flow='build', cron='0 3 * * *'}]"])
    assert len(load("embedded", ["schedules=[{flow='build'}, {flow='build', name='weekly'}]"]).settings.schedules) == 2


def test_the_next_time_is_told_in_the_schedules_own_zone_across_a_change_of_clocks() -> None:
    """On 29 March 2026 Vienna's clocks go from 2 to 3: three in the morning is at 1:00 UTC, the day before at 2:00."""
    one = _schedule("flow = 'build', cron = '0 3 * * *', timezone = 'Europe/Vienna'")
    before = one.next_time(datetime(2026, 3, 27, 12, tzinfo=UTC))
    after = one.next_time(datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert before and before.astimezone(UTC) == datetime(2026, 3, 28, 2, tzinfo=UTC)
    assert after and after.astimezone(UTC) == datetime(2026, 3, 29, 1, tzinfo=UTC)
    for without in ("cron = '0 3 * * *', enabled = false", "name = 'by-hand'"):
        assert _schedule(f"flow = 'build', {without}").next_time(datetime(2026, 1, 1, tzinfo=UTC)) is None
