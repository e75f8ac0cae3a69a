"""Settings of the inferential QA benchmark."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quit.settings.section import Prompt, Section

Measures = tuple[str, ...]


class FineTune(Section):
    """Fine-tuning of retrievers and rerankers (`quit benchmark finetune`, section 5.2 and appendix A.2, A.3)."""

    epochs: float = Field(1.0, gt=0)
    """Passes over the examples."""
    max_steps: int = Field(0, ge=0)
    """Most optimiser steps; 0 for no limit."""
    batch: int = Field(16, ge=2)
    """Examples per step."""
    learning_rate: float = Field(2e-5, gt=0)
    """Highest learning rate."""
    max_length: int = Field(256, ge=8)
    """Longest text (cross-encoder: pair), in tokens; the model keeps it."""
    negative_kind: Literal["other", "any"] = "other"
    """Kind of negatives, as in `quit export`; `other` is the paper's (footnote 11)."""
    id_titles: bool = False
    """Whether each passage has its question's id before its text, as the authors' inputs of Tevatron have it; the
    benchmark of the tuned models then has it too."""
    optimizer: Literal["adamw", "adafactor"] = "adamw"
    """Optimiser; PyGaggle's MonoT5 takes adafactor."""
    seed: int = Field(0, ge=0)
    """Seed of initialisation and of the order of examples."""


class Benchmark(Section):
    """The inferential QA benchmark (sections 4 and 5)."""

    depth: int = Field(100, ge=1, le=10_000)
    """Passages a retriever returns."""
    rerank_depth: int = Field(100, ge=1)
    """Of these, passages a reranker scores; the rest stay behind them."""
    k: tuple[Annotated[int, Field(ge=1)], ...] = Field((1, 3, 5), min_length=1)
    """Passages from which a reader's context is made."""
    strategies: tuple[Literal["norm", "freq"], ...] = Field(("norm", "freq"), min_length=1)
    """Union_norm and Union_freq (section 5.4)."""
    alpha: float = Field(0.6, ge=0)
    """Union_freq: weight of 1 / rank of the passage."""
    beta: float = Field(0.4, ge=0)
    """Union_freq: weight of 1 / position of the sentence."""
    grid: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), min_length=1
    )
    """`quit benchmark grid`: the alphas tried, each with beta = 1 - alpha (footnote 13; ours, the paper does not print
    its grid)."""
    freq_sentences: int = Field(0, ge=0)
    """Union_freq: sentences that are kept, best first; 0 keeps all. (The paper keeps `the top-k`, without a number.)"""
    metrics: Measures = Field(
        (
            *(f"Hit@{k}" for k in (1, 5, 10, 50, 100)),
            *(f"Recall@{k}" for k in (5, 10, 50)),
            "MRR@100",
            *(f"nDCG(exp)@{k}" for k in (1, 5, 10, 20, 50, 100)),
            *(f"nDCG@{k}" for k in (10, 100)),
            *(f"Hit(rel=2)@{k}" for k in (1, 10, 50, 100)),
            "MRR(rel=2)@100",
        ),
        min_length=1,
    )
    """Ranking metrics; `rel`: the lowest relevant label (1; tables 2 and 3 take 2); `nDCG`: gain is the label, as in
    trec_eval; `nDCG(exp)`: 2^label - 1, as in the paper's scripts."""  # fmt: skip
    compare: Measures = ("Hit@1", "nDCG@10", "EM")
    """Metrics on which every two systems are compared."""
    without_relevant: Literal["zero", "skip"] = "zero"
    """Questions without a relevant passage, in every metric: count as 0, or are left out."""
    resamples: int = Field(10_000, ge=100)
    """Resamples of intervals and of randomisation tests."""
    seed: int = Field(0, ge=0)
    """Seed of the resamples."""
    k1: float = Field(0.9, ge=0)
    """BM25 (Pyserini's value)."""
    b: float = Field(0.4, ge=0, le=1)
    """BM25 (Pyserini's value)."""
    granularity: Literal["permutation", "subset"] = "permutation"
    """What dense retrievers encode: every passage (2.4 million at the paper's size), or each subset once, as its first
    passage (the hints in rank order), for all its permutations (229,431)."""
    id_titles: tuple[str, ...] = ()
    """Neural retrievers and rerankers, as they are named, that read the question's id before a passage of the release:
    the authors' code gives it as a title to fine-tuned DPR and, behind a retriever, to UPR."""
    batch: int = Field(32, ge=1)
    """Texts or pairs that a neural model takes at a time."""
    chunk: int = Field(8192, ge=1)
    """Vectors in memory, and in a file of the cache, at a time."""
    max_length: int = Field(512, ge=8)
    """Longest (question, passage) pair of a reranker, in tokens."""
    device: str = "cpu"
    """Where neural retrievers and rerankers run: cpu, cuda."""
    pooling: Literal["auto", "cls", "mean", "last"] = "auto"
    """How a plain checkpoint makes one vector of its tokens': the first, their mean, the last; `auto`: the last of a
    class whose name ends in `ForCausalLM`, else the mean. Models with files of sentence-transformers say it themselves;
    DPR's take `cls`, Contriever `mean`."""
    similarity: Literal["cosine", "dot"] = "cosine"
    """How vectors of a plain checkpoint are compared; those of DPR and Contriever by `dot`."""
    query_prompts: dict[str, str] = Field(default_factory=dict)
    """Model -> what its queries begin with, where the model itself does not say (BGE's instruction)."""
    upr_prompt: str = Field("Passage: {passage} A question about what this passage describes:", pattern=r"\{passage\}")
    """UPR: what the model reads before the question. Ours; its paper's own text can be put here."""
    window: int = Field(20, ge=2)
    """Listwise reranking: passages per prompt (RankGPT)."""
    stride: int = Field(10, ge=1)
    """Listwise reranking: how far the window moves."""
    rank_prompt: Prompt = "rank"
    """Listwise reranking: its prompt, or a .txt file."""
