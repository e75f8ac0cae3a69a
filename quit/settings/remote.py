"""Settings of workspaces in an object store."""

from __future__ import annotations

from pydantic import Field

from quit.settings.section import Section


class Remote(Section):
    """A workspace behind a URL (`-w s3://bucket/prefix`); they change no table."""

    lease_seconds: float = Field(
        60, gt=0, description="A run that gives no sign of life for so long loses the workspace to the next one."
    )
    poll_seconds: float = Field(5, gt=0, description="Pause between two looks at a workspace that another run holds.")
    settle_seconds: float = Field(
        3,
        ge=0,
        description="Wait before a new object is believed to be ours, in stores that cannot refuse to replace one.",
    )
    replies_seconds: float = Field(
        300,
        gt=0,
        description="New replies of language models are copied to the store this often, and at the end of a run.",
    )
    connections: int = Field(8, ge=1, description="Objects fetched at the same time.")
    attempts: int = Field(5, ge=1, description="Attempts at a request, with growing pauses.")
    connect_seconds: float = Field(10, gt=0, description="Longest wait for a connection.")
    answer_seconds: float = Field(60, gt=0, description="Longest wait for an answer.")
    quiet_seconds: float = Field(
        2, ge=0, description="Fetching that takes longer than this is reported on the terminal."
    )
