"""Types of the flows' parameters. What a form says of a parameter is the ``Args`` of its flow's docstring: Prefect
reads it from there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quit.settings import Limits

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
Step = Literal["push", "pull", "update"]
Split = Literal["train", "dev", "test", "all"]
NO_LIMITS = Limits()
