"""Types of the flows' parameters. What a form says of a parameter is the ``Args`` of its flow's docstring: Prefect
reads it from there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from quit.settings import Limits

Profile = (
    Annotated[Literal["cpu", "embedded", "paper", "server", "smollm"], Field(title="Profile")]
    | Annotated[str, Field(title="TOML file")]
)
Source = Annotated[str, Field(pattern=r"^[a-z0-9]+:.+")]
Format = Literal[
    "huggingface",
    "release-json",
    "paper-index",
    "csv",
    "squad",
    "beir",
    "trec",
    "pyserini",
    "mteb",
    "tevatron",
    "colbert",
    "monot5",
    "hinteval",
]
Gate = Literal[
    "schema",
    "missing-passage",
    "answer-in-passage",
    "question-on-two-sides",
    "unjudged-answer",
    "label-mismatch",
    "predicted-label",
    "human-coverage",
]
Step = Literal["push", "pull", "update"]
Split = Literal["train", "dev", "test", "all"]


class Waiver(BaseModel):
    """A gate that may fail, and why; the text ``GATE=REASON`` is one too."""

    gate: Gate
    reason: str = Field(min_length=1, description="Published with the data.")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return dict(zip(("gate", "reason"), value.split("=", 1), strict=False)) if isinstance(value, str) else value


NO_LIMITS = Limits()
