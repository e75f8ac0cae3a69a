"""Settings of releases."""

from __future__ import annotations

from pydantic import Field

from quit.settings.section import Section


class ReleaseSettings(Section):
    """Quality gates of a release (`quit release check`)."""

    human_coverage: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the distinct answers in the splits under review (`review.splits`) that people must have "
        "judged.",
    )
    examples: int = Field(5, ge=1, description="Examples that a failed gate names.")
    memory_mb: int = Field(1024, ge=64, description="Memory that DuckDB may take in checks and comparisons, in MB.")
