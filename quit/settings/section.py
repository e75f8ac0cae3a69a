"""The base of all sections of the settings."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

MAX_NUMBER = 10**15


class Section(BaseModel):
    """One section: frozen, no unknown keys, no NaN or infinity, no number that a table cannot hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _is_bounded(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise ValueError(f"must be at most {MAX_NUMBER:,}")
        return value
