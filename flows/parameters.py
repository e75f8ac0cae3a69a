"""Types of the flows' parameters. What a form says of a parameter is the ``Args`` of its flow's docstring: Prefect
reads it from there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from quit.export import FORMATS
from quit.release.gates import GATES, parse_waivers
from quit.settings import Limits, profile_names

Profile = (
    Annotated[str, Field(title="Name or TOML file")]
    | Annotated[str, Field(title="List of profiles", json_schema_extra={"enum": [*profile_names()]})]
)
"""The text is first: a form shows a value by the first type of its kind, and a path is not in the list."""
Format = Annotated[str, Field(pattern=f"^({'|'.join(FORMATS)})$", json_schema_extra={"enum": [*FORMATS]})]
Step = Literal["push", "pull"]
Split = Literal["train", "dev", "test", "all"]


class Waiver(BaseModel):
    """A gate that may fail, and why; the text ``GATE=REASON`` is one too. The release checks both."""

    gate: str = Field(json_schema_extra={"enum": [*GATES]})
    reason: str = Field(description="Published with the data.")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return dict(zip(cls.model_fields, *parse_waivers([value]).items(), strict=True))


NO_LIMITS = Limits()
