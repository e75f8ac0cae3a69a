"""The base of all sections of the settings."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_NUMBER = 10**15
Share = Annotated[float, Field(ge=0, le=1)]
Port = Annotated[int, Field(ge=0, le=65535)]


class Section(BaseModel):
    """One section: frozen, no unknown keys, no NaN or infinity, no number that a table cannot hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _is_bounded(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise ValueError(f"must be at most {MAX_NUMBER:,}")
        return value
