"""Settings of SUNAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from quit.settings.section import Section


class Sunar(Section):
    """SUNAR and its ablations (`quit sunar run`). Symbols are those of the paper
    (https://aclanthology.org/2025.naacl-long.300)."""

    retrieval: Literal["nar", "rerank", "prf", "first", "gold"] = "nar"
    """Evidence of a sub-question: `nar` (Algorithm 1), `rerank` (the first stage's documents alone), `prf` (the same
    with a query expanded by feedback documents), `first` (the first stage as it is), `gold` (the question's relevant
    documents, an oracle)."""
    asu: bool = True
    """Whether batches are rescored by answer semantic uncertainty."""
    mer: bool = True
    """Whether the meta evidence reasoner answers last."""
    planner: Literal["auto", "self-ask", "react", "searchain", "decomp", "ircot", "gold", "none"] = "auto"
    """Query understanding. `gold`: the corpus's own decomposition, an oracle; `none`: retrieve and read; `auto`:
    `self-ask` where there is a language model, else `gold`."""
    reading: Literal["short", "chain-of-thought", "zero-shot"] = "short"
    """How a language model answers from documents: at once, or after a chain of thought, with examples or without
    (`zero-shot`)."""
    first_encoder: str = ""
    """Encoder that one of the indexes must have, as `quit index build` names it; if not given, any."""
    graph_encoder: str = ""
    """Encoder that the graph must have, as `quit graph build` names it; if not given, any."""
    b: int = Field(16, ge=1)
    """Batch size: documents scored before the pools take turns."""
    c: int = Field(100, ge=0)
    """Budget: documents scored per sub-question."""
    first: int = Field(100, ge=0)
    """Documents of the first stage per sub-question (the size of R)."""
    initial: Literal["sub-question", "question"] = "sub-question"
    """What the first stage ranks for (R): each sub-question, or always the whole question, as in the authors' code.
    Documents are scored for the sub-question in both."""
    rerank_first: int = Field(0, ge=0)
    """`rerank` and `prf`: documents of the first stage that are scored, all of them, in place of `first` and `c`; 0:
    `first` and `c`, the same budget as NAR."""
    neighbours: int = Field(10, ge=0)
    """Neighbours that a scored document brings into N."""
    priority: Literal["rescored", "raw"] = "rescored"
    """Which score of a scored document its neighbours have in N: after ASU, as line 15 of Algorithm 1 reads, or the
    scorer's, as in the authors' code. The same without ASU."""
    frontier: Literal["all", "bounded"] = "all"
    """Whose neighbours enter N: every scored document's, as in Algorithm 1; or, once N could fill the rest of the
    budget, only those of documents with a high enough score, as in GAR and the authors' code."""
    top: int = Field(10, ge=0)
    """Documents that are read (l)."""
    mer_documents: int = Field(0, ge=0)
    """Documents of each sub-question among which the meta evidence reasoner gets the first `top` by score for the
    question; 0: `top`; the authors' code: 2."""
    m: int = Field(10, ge=0)
    """Answers sampled per batch."""
    literal: bool = False
    """Divide raw scores by s, as printed, which promotes negative ones; else their sigmoid."""
    divisor: Literal["sets", "contradictions"] = "sets"
    """s: the number of sets of one meaning (equation 3); or half the number of pairs of distinct answers that
    contradict each other, at least 1/2, as in the authors' code."""
    max_hops: int = Field(6, ge=0)
    """Sub-questions at most."""
    feedback_documents: int = Field(3, ge=0)
    """`prf`: first documents that expand the query; 0: the relevant ones among R (an oracle)."""
    scorer: Literal["late", "cross-encoder"] = "late"
    """`late`: late interaction over MiniLM's tokens; `cross-encoder`: `scorer_model`."""
    scorer_model: str = Field("nreimers/mmarco-mMiniLMv2-L12-H384-v1", min_length=1)
    """Cross-encoder: a hub name, or a folder."""
    entailment: Literal["equivalence", "nli"] = "equivalence"
    """What groups sampled answers: the equivalence model both ways, or entailment by `nli_model` both ways."""
    nli_model: str = Field("FacebookAI/roberta-large-mnli", min_length=1)
    """NLI: a hub name, or a folder."""
    device: str = "cpu"
    """Where cross-encoder and NLI model run: cpu, cuda, cuda:1."""
    batch: int = Field(16, ge=1)
    """Texts per batch of the cross-encoder."""
    language_model: str = ""
    """Reader or judge of the profile that plans, answers and reasons; if not given, the embedded extractive reader
    answers and nothing plans or reasons."""
    prompts: Literal["musique", "2wiki"] = "musique"
    """Set of our own prompts: its exemplars are questions as this dataset has them."""
    prompt_files: dict[str, str] = Field(default_factory=dict)
    """Part -> its prompt in place of the set's: a name, or a .txt file. The parts: `self_ask`, `meta_reasoner`,
    `searchain`, `react`, `decomp`, `chain_of_thought`, `zero_shot`, `ircot`, `sub_answer`."""
    titles: bool = True
    """Whether scorer and reader get a document's title before its text; in the authors' code only encoders do."""
    relevant: Literal["document", "title"] = "document"
    """What is relevant: a document; or the corpus's first document with its title, as in the authors' code."""
    cover_em: Literal["tokens", "substring"] = "tokens"
    """When an answer covers a gold answer, both normalised: by whole tokens, or also within a word (`12` in *2012*), as
    in the authors' code."""
    authors_code: bool = False
    """All that the authors' code does otherwise than the paper, of corpora, indexes and SUNAR, except for prompts; a
    setting that you name has your value."""
    max_tokens: int = Field(1000, ge=1)
    """Longest reply, in tokens."""
    workers: int = Field(1, ge=1)
    """Questions at a time; changes nothing in the result."""


AUTHORS_CODE: Mapping[str, Mapping[str, Any]] = {
    "corpora": {"all_context": True, "aliases": False},
    "first_stages": {"sparse_similarity": "cosine"},
    "sunar": {
        "initial": "question",
        "priority": "raw",
        "frontier": "bounded",
        "mer_documents": 2,
        "literal": True,
        "divisor": "contradictions",
        "titles": False,
        "relevant": "title",
        "cover_em": "substring",
    },
}
"""Section -> values that ``sunar.authors_code`` stands for."""
