"""Settings of workspaces in an object store."""

from __future__ import annotations

from pydantic import Field

from quit.settings.section import Section


class Remote(Section):
    """A workspace behind a URL (`-w s3://bucket/prefix`); they change no table."""

    lease_seconds: float = Field(
        60, gt=0, description="A run that gives no sign of life for so long loses the workspace to the next one."
    )
    replies_seconds: float = Field(
        300,
        gt=0,
        description="New replies of language models are copied to the store this often, and at the end of a run.",
    )
    attempts: int = Field(5, ge=1, description="Attempts at a request, with growing pauses.")

    @property
    def poll_seconds(self) -> float:
        """Pause between two looks at a workspace that another run holds."""
        return self.lease_seconds / 12

    @property
    def settle_seconds(self) -> float:
        """Wait before a run believes that a new object is its own, in stores that cannot refuse to replace one."""
        return self.lease_seconds / 20
