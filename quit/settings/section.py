"""The base of all sections of the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, field_validator

MAX_NUMBER = 10**15


@dataclass(frozen=True)
class File:
    """Marks a setting whose values are a file's or folder's path where they match ``pattern``."""

    pattern: str = "."


Prompt = Annotated[str, File(r"\.txt$")]
"""A prompt that comes with the program, or a file."""


class Section(BaseModel):
    """One section: frozen, no unknown keys, no NaN or infinity, no number that a table cannot hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _is_bounded(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise ValueError(f"must be at most {MAX_NUMBER:,}")
        return value
