"""Settings of query decomposition as a bandit, and of reports from the documents that a policy picked."""

from __future__ import annotations

from pydantic import Field, field_validator

from quit.settings.section import Prompt, Section


class Bandits(Section):
    """Query decomposition as a bandit (Petcu et al.; `quit bandits`). Defaults are the paper's numbers where it gives
    one."""

    documents: int = Field(10, ge=1)
    """N: documents that are retrieved for each sub-query."""
    arms: int = Field(16, ge=1)
    """K: sub-queries of a request, where they are made and not given."""
    runs: int = Field(1000, ge=1)
    """Runs per request and policy."""
    budgets: tuple[float, ...] = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))
    """b: shares of all documents of a request that may be observed; rounded down to whole documents."""
    seed: int = Field(0, ge=0)
    """Seed of all runs; each request and policy draws from its own stream."""
    ucb_c: float = Field(0.1, ge=0)
    """c of the UCB term; the paper lets it go to 0."""
    expand_after: int = Field(4, ge=1)
    """n: pulls from which an arm may be expanded (3.5)."""
    expand_above: float = Field(0.77, ge=0, le=1)
    """tau: an arm is expanded when its mean is above this (3.5)."""
    inheritance: float = Field(0.91, gt=0, le=1)
    """lambda: a child starts at Beta(lambda alpha, lambda beta)."""
    trials: int = Field(50, ge=1)
    """`--tune`: trials of n, tau and lambda, the first with the three settings above."""
    least_relevant: float = Field(0.0, ge=0, le=1)
    """Requests with a smaller share of relevant documents among those retrieved are left out (the paper: 0.1 on
    ResearchyQuestions)."""
    language_model: str | None = None
    """Reader or judge of the profile that decomposes requests, judges documents and writes reports."""
    definitional_prompt: Prompt = "decompose_definitional"
    """Prompt for definitions: our own in the form of figure 6, or a .txt file with its text."""
    specialised_prompt: Prompt = "decompose_specialised"
    """Prompt for details: our own in the form of figure 7, or a .txt file with its text."""
    decompositions: int = Field(10, ge=1)
    """Sampled decompositions of a request (4.3), averaged."""
    temperature: float = Field(0.7, ge=0)
    """Temperature of decompositions; the paper samples and does not give it."""
    date: str = "not stated"
    """The current date, for the decomposition prompts."""
    attempts: int = Field(3, ge=1)
    """How often a reply that cannot be read is asked for again, a report's verdicts too."""

    @field_validator("budgets")
    @classmethod
    def _shares(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if not budgets or any(not 0 < share <= 1 for share in budgets):
            raise ValueError("budgets are shares above 0 and up to 1")
        return tuple(sorted(set(budgets)))


class Reports(Section):
    """Cited answers from selected documents and their scores (bandit paper, 5.2; `quit bandits report`)."""

    prompt: Prompt = "report"
    """Prompt of the writer, or a .txt file."""
    max_new_tokens: int = Field(512, ge=1)
    """Longest report, in tokens."""
