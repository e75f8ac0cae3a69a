"""Settings of what people look at."""

from __future__ import annotations

from pydantic import Field

from quit.settings.section import Section


class Pages(Section):
    """The HTML report (`quit report`) and the browser view (`quit browse`); they change no table."""

    bins: int = Field(20, ge=2, description="Bars of a histogram.")
    examples: int = Field(3, ge=0, description="Examples of each kind in the report.")
    rows: int = Field(50, ge=1, description="Rows of a list in the report; the rest is counted.")
    port: int = Field(8095, ge=0, le=65535, description="Port of `quit browse` on this machine; 0 takes a free one.")
