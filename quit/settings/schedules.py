"""Settings of scheduled runs: deployments, times and limits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import Field, field_validator

from quit.settings.section import Section

FlowName = Literal["build", "review-sync", "label-update", "release"]


class Limits(Section):
    """Limits of one run of a flow; a parameter of every flow, so that a deployment's form shows them."""

    timeout_seconds: float = Field(0, ge=0, title="Timeout")
    """Seconds after which a run stops, with the shards in hand; 0 is none."""
    retries: int = Field(0, ge=0, title="Retries")
    """How often a run is tried again after a fault that may pass (server, disk)."""
    retry_seconds: float = Field(60.0, ge=0, title="Pause before a retry")
    """Seconds before the first new try; doubles each time."""


class Schedule(Limits):
    """One deployment of a flow for a workspace. `quit serve` offers every flow; these say when, and how."""

    flow: FlowName
    """The flow."""
    name: str = Field("", pattern=r"^[a-z0-9-]*$")
    """Its name, where a flow has several schedules; the flow's own if not given."""
    cron: str = ""
    """When: five cron fields, such as `0 3 * * *`; empty: only when asked."""
    timezone: str = "UTC"
    """Time zone of `cron`, such as Europe/Vienna."""
    enabled: bool = True
    """Whether the schedule is active; one that is not can still be started by hand."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Further parameters of the flow, such as { formats = ['huggingface'] }."""

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, text: str) -> str:
        text = text.strip()
        if text and len(text.split()) != 5:
            raise ValueError("cron has five fields: minute, hour, day, month, weekday, such as 0 3 * * *")
        if re.search(r"\dL|W\b", text, re.IGNORECASE):
            raise ValueError("Prefect knows neither 5L nor W; name the days, or start the flow by hand")
        days = text.split()[2::2]
        if "*" not in days and "*/" in "".join(days):  # cron takes days that are both, Prefect those that are either
            raise ValueError("a step (*/2) in one field of days means nothing sure beside the other; list the days")
        try:
            if text:
                next(CronSim(text, datetime.now(UTC)))
        except (CronSimError, StopIteration) as error:
            why = "it never comes" if isinstance(error, StopIteration) else str(error)
            raise ValueError(f"{why}; cron is minute, hour, day, month, weekday, such as 0 3 * * *") from None
        return text

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, text: str) -> str:
        try:
            ZoneInfo(text)
        except (KeyError, ValueError, OSError):
            raise ValueError("there is no such time zone; write it as Europe/Vienna or UTC") from None
        return text

    @property
    def title(self) -> str:
        """The schedule's name, or that of its flow."""
        return self.name or self.flow

    def next_time(self, after: datetime) -> datetime | None:
        """Return when Prefect runs it next after a moment (with a zone), or None where nothing is planned.

        Of an hour that clocks show twice it is the first; an hour that they leave out counts as the hour after.
        """
        if not self.cron or not self.enabled:
            return None
        zone = ZoneInfo(self.timezone)
        for wall in CronSim(self.cron, after.astimezone(zone).replace(tzinfo=None)):
            moment = wall.replace(tzinfo=zone).astimezone(UTC)
            if moment > after:
                return moment.astimezone(zone)
        return None


class ServeSettings(Section):
    """`quit serve`: the process that starts scheduled runs."""

    limit: int = Field(4, ge=1)
    """Runs at a time, over all workspaces."""
    poll_seconds: int = Field(10, ge=1)
    """How often the server is asked for runs that are due."""
