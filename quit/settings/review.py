"""Settings of human verification."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quit.settings.section import File, Section


class Review(Section):
    """Human verification (3.2.3) and label update (3.2.4)."""

    splits: tuple[Literal["train", "dev", "test"], ...] = ("dev", "test")
    """Splits whose questions people verify."""
    overlap: int = Field(1, ge=1)
    """Annotators per question."""
    overlap_share: float = Field(1.0, gt=0, le=1)
    """Share of the questions that get `overlap` annotators; the others get one."""
    adjudication: Literal["majority", "adjudicator"] = "majority"
    """Where annotators disagree: `majority` counts (a tie stays open), `adjudicator` asks the person named."""
    adjudicator: str | None = None
    """E-mail of the person whose verdict settles disagreements."""
    minimum: int = Field(1, ge=1)
    """Annotators who must have judged an answer before their verdict counts."""
    removing_flags: tuple[Literal["leak", "hint_false", "gold_wrong", "ambiguous", "offensive"], ...] = (
        "leak",
        "offensive",
    )
    """Flags that take a question out of the dataset once they are agreed on; the others change nothing."""
    controls: Annotated[str | None, File()] = None
    """JSONL file of {question_id, correct: [...], incorrect: [...]}: questions with known verdicts."""
    control_share: float = Field(0.05, ge=0, lt=1)
    """Share of the tasks that are control questions, as far as there are enough."""
    blind: float = Field(0.0, ge=0, le=1)
    """Share of the questions whose tasks are blind: nothing is ticked and no judge is shown. Which ones follows from
    their ids; 1: all."""
    audit: int = Field(0, ge=0)
    """Passages of all splits drawn at random for people to judge, so that totals have intervals."""
    people: Annotated[str | None, File()] = None
    """JSONL file of {annotator, gender, age, education}: what annotators say of themselves and agree to publish. Cards
    list it without names (the paper's table 9)."""
    title: str = Field("QUIT review", min_length=3, max_length=50)
    """Title of the project."""
    port: int = Field(8080, ge=0, le=65535)
    """Port of the local server; 0 takes a free one."""
    page_tasks: int = Field(500, ge=1)
    """Tasks per request."""
    retries: int = Field(3, ge=0)
    """How often a request that failed on the server's side is tried again."""
