"""Settings of retrieval complexity."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quit.settings.section import Prompt, Section


class Complexity(Section):
    """Reference-based retrieval complexity of any questions over any corpus (Gabburo et al. 2024; `quit
    complexity`)."""

    documents: int = Field(10, ge=1)
    """Documents retrieved for a question."""
    t_ans: float = Field(0.5, ge=0, le=1)
    """T_ans: s_i from which a document holds the answer."""
    t_com: float = Field(1.0, ge=0, le=1)
    """T_com: S_D from which the documents are complete. With MiniLM's token vectors S_D is near 1 for all and higher
    for longer questions (docs/research/systems.md), so by default T_ans alone decides; lower it for a head that
    tells."""
    answer_head: Literal["contained", "judge"] = "contained"
    """s_i: `contained` is 1 where the answer is in the document, else its nearness; `judge` asks the profile's
    judge."""
    token_model: str = ""
    """Rel(d, t), by late interaction: of this ColBERT checkpoint (a hub name, or a folder); if not given, of the
    encoder's token vectors. The paper's GenEval is not published."""
    baseline_model: str = ""
    """Reader or judge of the profile that is asked whether each question is complex: a baseline."""
    baseline_prompt: Prompt = "complex_question"
    """Prompt of the baseline: our own words, or a .txt file with the paper's."""
    answer_model: str = ""
    """Reader or judge of the profile that answers each question without documents; complexity is then compared with
    whether the profile's judge finds the answer correct."""
    resamples: int = Field(1000, ge=10)
    """Resamples of intervals and permutation tests."""
    seed: int = Field(0, ge=0)
    """Seed of these, and of the folds."""
