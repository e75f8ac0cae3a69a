"""Settings of corpora, first stages and neighbourhood graphs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quit.settings.section import Section


class Corpora(Section):
    """Corpora for the QA systems (`quit corpus`)."""

    all_context: bool = False
    """Whether every context paragraph has relevance 1, as SUNAR's own evaluation has it; else supporting ones only."""
    aliases: bool = True
    """Whether MuSiQue's `answer_aliases` are gold answers."""
    sub_questions: bool = True
    """Whether decompositions become queries of their own."""
    granularity: Literal["hint", "subset", "permutation"] = "subset"
    """What a document of a QUIT release is: a hint, a subset of hints, or every permutation."""


class FirstStages(Section):
    """Indexes over a corpus (`quit index`)."""

    bm25_k1: float = Field(1.2, ge=0)
    """BM25: how soon repetitions of a term stop counting."""
    bm25_b: float = Field(0.75, ge=0, le=1)
    """BM25: how far long documents are penalised."""
    batch: int = Field(32, ge=1)
    """Texts per batch of a sentence-transformers encoder."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Arithmetic of the encoder; bf16 is about three times faster (cosine to fp32 >= 0.9999), except that `minilm` on a
    CPU computes fp32 in whole numbers, which is faster still."""
    device: str = "auto"
    """Where encoders and searches run: `cpu`, `cuda`, `cuda:1`, or `auto`."""
    sparse_similarity: Literal["dot", "cosine"] = "dot"
    """How vectors of a sparse encoder are compared; SUNAR's code takes the cosine."""


class Graph(Section):
    """Neighbourhood graphs (`quit graph`)."""

    method: Literal["auto", "exact", "faiss"] = "auto"
    """Exact blocked search, or faiss's HNSW; `auto` takes faiss past 600,000 documents."""
    precision: Literal["fp32", "bf16"] = "bf16"
    """Arithmetic of the exact search; candidates of bf16 are scored again in fp32."""
    cross_question_only: bool = False
    """QUIT's own corpus: whether edges inside one question are left out."""
    late_candidates: int = Field(4, ge=1)
    """Late interaction: candidates as a multiple of k, by mean vectors, that MaxSim scores."""
