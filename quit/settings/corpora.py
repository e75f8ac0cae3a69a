"""Settings of corpora, first stages and neighbourhood graphs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quit.settings.section import Section


class Corpora(Section):
    """Corpora for the QA systems (`quit corpus`)."""

    all_context: bool = Field(
        False,
        description="Whether every context paragraph has relevance 1, as SUNAR's own evaluation has it; else "
        "supporting ones only.",
    )
    sub_questions: bool = Field(True, description="Whether decompositions become queries of their own.")
    granularity: Literal["hint", "subset", "permutation"] = Field(
        "subset", description="What a document of a QUIT release is: a hint, a subset of hints, or every permutation."
    )
    strict: bool = Field(False, description="Whether the first document or question that is left out ends the build.")
    block: int = Field(
        2000, ge=1, description="Source records a step; a killed build resumes after its last whole step."
    )
    memory_rows: int = Field(16_384, ge=1, description="Documents a row group and a batch of the memory-mapped file.")


class FirstStages(Section):
    """Indexes over a corpus (`quit index`)."""

    bm25_k1: float = Field(1.2, ge=0, description="BM25: how soon repetitions of a term stop counting.")
    bm25_b: float = Field(0.75, ge=0, le=1, description="BM25: how far long documents are penalised.")
    fusion_constant: int = Field(60, ge=0, description="Added to every rank in reciprocal rank fusion.")
    block: int = Field(
        2048, ge=1, description="Documents encoded a step; a killed run resumes after its last whole step."
    )
    batch: int = Field(32, ge=1, description="Texts a batch of a sentence-transformers encoder.")
    precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="Arithmetic of the encoder; bf16 is about three times faster (cosine to fp32 >= 0.9999)."
    )
    device: str = Field("auto", description="Where encoders and searches run: `cpu`, `cuda`, `cuda:1`, or `auto`.")
    threads: int = Field(0, ge=0, description="Threads of encoders and searches; 0: one a core.")


class Graph(Section):
    """Neighbourhood graphs (`quit graph`)."""

    method: Literal["auto", "exact", "faiss"] = Field(
        "auto", description="Exact blocked search, or faiss's HNSW; `auto` takes faiss past `exact_up_to`."
    )
    exact_up_to: int = Field(600_000, ge=1, description="Documents up to which `auto` searches exactly.")
    precision: Literal["fp32", "bf16"] = Field(
        "bf16", description="Arithmetic of the exact search; candidates of bf16 are scored again in fp32."
    )
    rescored: int = Field(
        30,
        ge=0,
        description="Candidates beyond k that a bf16 search keeps and fp32 scores again; more is nearer to exact.",
    )
    score_mb: int = Field(512, ge=1, description="Memory of one block of similarities on a CPU, in MB.")
    score_mb_gpu: int = Field(4096, ge=1, description="Memory of one block of similarities on a GPU, in MB.")
    checkpoint: int = Field(8192, ge=1, description="Documents between two points from which a killed search resumes.")
    cross_question_only: bool = Field(
        False, description="QUIT's own corpus: whether edges inside one question are left out."
    )
    hnsw_links: int = Field(32, ge=2, description="faiss: links a node.")
    hnsw_build: int = Field(200, ge=1, description="faiss: efConstruction.")
    hnsw_search: int = Field(256, ge=1, description="faiss: efSearch.")
    late_candidates: int = Field(
        4, ge=1, description="Late interaction: candidates as a multiple of k, by mean vectors, that MaxSim scores."
    )
    recall_sample: int = Field(
        500, ge=1, description="Documents whose neighbours are compared with an exact fp32 search."
    )
    seed: str = Field("quit", min_length=1, description="Key of the hash that draws that sample.")
    hop_width: int = Field(10, ge=1, description="Neighbours a document that count as one hop in the report.")
    depth: int = Field(100, ge=1, description="Documents of a first stage from which the report's hops start.")
