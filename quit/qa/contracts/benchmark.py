"""Arrow schemas of what the benchmark makes. A *system* is a retriever with or without a reranker over one corpus."""

from __future__ import annotations

from quit.contracts.columns import COUNT, REAL, SMALL, TEXT
from quit.contracts.contract import Column, Nullable, TableContract

_CORPUS = Column("corpus", TEXT, "`release`, or another corpus.")
_SYSTEM = (
    _CORPUS,
    Column("retriever", TEXT, "Retriever, as it was asked for; `oracle` returns every relevant passage."),
    Column("reranker", TEXT, "Reranker, empty for none; `oracle` orders by label."),
)
_READING = (
    Column("reader", TEXT, "Reader; empty in rows of ranking metrics."),
    Column("strategy", TEXT, "`norm`, `freq`, `any` (Optimal: one passage alone suffices), or empty."),
    Column("k", SMALL, "Passages in the reader's context; 0 where there is none."),
)
_QUESTION = Column("question_id", TEXT, "Question.")
_METRIC = Column("metric", TEXT, "Metric, such as `nDCG@10`, `nDCG(exp)@10`, `Hit(rel=2)@1` or `EM`.")

RANKINGS = TableContract(
    "rankings",
    stage="benchmark",
    key=("question_id", "row"),
    doc="Retrieved or reranked passages.",
    columns=(
        _QUESTION,
        Column("rank", COUNT, "Rank, from 1."),
        Column("row", COUNT, "The passage's row in its corpus."),
        Column("score", REAL, "The system's score."),
    ),
)
ANSWERS = TableContract(
    "benchmark_answers",
    stage="benchmark",
    key=("question_id", "context"),
    doc="What a reader answered.",
    columns=(
        _QUESTION,
        Column("context", TEXT, "The sentences that the reader saw, joined by one space."),
        Column("answer", TEXT, "Its cleaned answer, or `NO ANSWER`; also where there was no passage to read."),
    ),
)
RELABELLED = TableContract(
    "relabelled",
    stage="benchmark",
    key=("question_id", "row"),
    doc="Labels of retrieved passages of another corpus (tables 2 and 3) or of other questions, by the labelers and "
    "the judge.",
    columns=(
        _QUESTION,
        Column("row", COUNT, "The passage's row in its corpus."),
        Column("label", SMALL, "2: a labeler answered correctly from it; 0: none did. (1 has no meaning here.)"),
    ),
)
VALUES = TableContract(
    "values",
    stage="benchmark",
    key=("corpus", "retriever", "reranker", "reader", "strategy", "k", "metric", "question_id"),
    doc="Each metric of each question.",
    columns=(*_SYSTEM, *_READING, _METRIC, _QUESTION, Nullable("value", REAL, "Null: no passage is relevant.")),
)
RESULTS = TableContract(
    "results",
    stage="benchmark",
    key=("corpus", "retriever", "reranker", "reader", "strategy", "k", "metric"),
    doc="Means over questions.",
    columns=(
        *_SYSTEM,
        *_READING,
        _METRIC,
        Column("value", REAL, "Mean, 0 to 1, under the policy for questions without a relevant passage."),
        Column("low", REAL, "Lower end of the bootstrap interval."),
        Column("high", REAL, "Upper end."),
        Column("questions", COUNT, "Questions in the mean."),
    ),
)
COMPARISONS = TableContract(
    "comparisons",
    stage="benchmark",
    key=("corpus", "metric", "reader", "strategy", "k", "a", "b"),
    doc="Paired comparisons of two systems on the same questions.",
    columns=(
        _CORPUS,
        _METRIC,
        *_READING,
        Column("a", TEXT, "First system, `retriever + reranker`."),
        Column("b", TEXT, "Second system."),
        Column("difference", REAL, "Mean of a minus mean of b."),
        Column("low", REAL, "Lower end of its bootstrap interval."),
        Column("high", REAL, "Upper end."),
        Column("p_randomisation", REAL, "Two-sided p of the paired randomisation test."),
        Nullable(
            "p_t",
            REAL,
            "Two-sided p of the paired t test; null where all questions differ by the same amount other than 0.",
        ),
        Column(
            "p_holm", REAL, "p_randomisation after Holm's correction for all comparisons of this corpus and metric."
        ),
    ),
)
FIGURES = TableContract(
    "figures",
    stage="benchmark",
    key=("figure", "corpus", "retriever", "reranker", "reader", "x"),
    doc="Figures 4 to 6 of the paper, drawn from this run's rows.",
    columns=(
        Column("figure", TEXT, "`4 left`, `4 right`, `5` or `6`."),
        *_SYSTEM,
        *_READING,
        Column("line", TEXT, "What the row is a point of: corpus (4), reader (5), setting (6)."),
        Column("x", TEXT, "k (4 left), relevant passages (4 right), system (5), hints in the passage (6)."),
        Column("y", REAL, "Hit (4), EM (5), share of the passages from which the reader is right (6)."),
        Column("passages", COUNT, "Passages counted: of label 2 (4 right), answered correctly (6); else 0."),
    ),
)
GRID = TableContract(
    "grid",
    stage="benchmark",
    key=("corpus", "retriever", "reranker", "reader", "k", "alpha", "beta"),
    doc="EM by the weights of Union_freq (footnote 13).",
    columns=(
        *_SYSTEM,
        _READING[0],
        _READING[2],
        Column("alpha", REAL, "Weight of 1 / rank of the passage."),
        Column("beta", REAL, "Weight of 1 / position of the sentence: 1 - alpha."),
        Column("value", REAL, "Mean EM, 0 to 1."),
        Column("questions", COUNT, "Questions in the mean."),
    ),
)
