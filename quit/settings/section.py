"""What every section of the settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One section: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
