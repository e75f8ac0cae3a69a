"""Types of columns, and columns that several tables have."""

from __future__ import annotations

from typing import Literal, get_args

import pyarrow as pa

from quit.contracts.contract import Column, Nullable

TEXT = pa.string()
TEXTS = pa.list_(pa.field("element", pa.string(), nullable=False))
REAL = pa.float64()
FLAG = pa.bool_()
SMALL = pa.int16()
COUNT = pa.int64()

QUESTION = Column("question_id", TEXT, "Id of the question, namespaced by source: `wikihint-test_1`.")
NOTE = Nullable(
    "note",
    TEXT,
    "What an embedded model cannot read properly: `not English`, `hint cut to 254 word pieces`, ...; else null.",
)
Basis = Literal["exact", "no_answer", "model", "review"]
ANSWER_KEY = Column("answer_key", TEXT, "The answer's key: texts that are the same answer have one.")
VERDICT = (
    QUESTION,
    ANSWER_KEY,
    Column("answer", TEXT, "Its most frequent surface form."),
    Nullable("correct", FLAG, "The verdict; null when the judge's reply could not be read."),
    Nullable("probability", REAL, "The judge's probability of being correct, if it gives one."),
    Column(
        "basis",
        TEXT,
        "`exact` (equals a gold answer), `no_answer`, `model`, or `review` (people decided).",
        values=get_args(Basis),
    ),
    Column("passages", COUNT, "Number of (passage, reader) pairs that gave it."),
    Column("judge", TEXT, "Name of the judge."),
    Column("producer", TEXT, "Identity of the judge."),
    Column("raw", TEXT, "The judge's reply."),
    NOTE,
)
KEYED = {"answer_key": "answer_key_of(answer)"}
RULED = {
    **KEYED,
    "passages": "(SELECT sum(passages) FROM distinct_answers AS d WHERE (d.question_id, d.answer_key) = "
    "(this.question_id, this.answer_key))",
    "basis": "CASE WHEN basis = 'review' THEN basis WHEN answer = 'NO ANSWER' OR answer_key = '' THEN 'no_answer' WHEN "
    "(question_id, answer_key) IN (SELECT (question_id, answer_key) FROM gold) THEN 'exact' ELSE 'model' END",
    "judge": "CASE WHEN basis = 'review' THEN basis ELSE mode(judge) FILTER (basis <> 'review') OVER () END",
    "producer": "CASE WHEN basis = 'review' THEN producer ELSE mode(producer) FILTER (basis <> 'review') OVER () END",
}
"""What columns of verdicts follow from."""
HINT = Column(
    "hint_id",
    TEXT,
    "Id of the hint: the question's id and its position among the pooled hints, from `-h00`; of a given passage, the "
    "question's id, `:` and its own id.",
)
RANKED = (
    QUESTION,
    Column(
        "rank",
        SMALL,
        "Place by convergence, from 0 (ties: shorter hint first, then source order); of passages: in their source.",
    ),
    HINT,
    Column("hint", TEXT, "The hint's text."),
    Column("convergence", REAL, "How far the hint narrows the candidate answers; of passages: see `producer`. 0 to 1."),
    Column(
        "producer",
        TEXT,
        "`source`, `source-scores` or the identity of the model that scored it; of a given passage, the method that "
        "found a gold answer in it (`exact`, ..., `equivalence`, `person`; `convergence`: its probability) or `none`.",
    ),
    Column("selected", FLAG, "Whether it is one of the hints that make passages."),
    NOTE,
)
DESCRIBED = (
    QUESTION,
    Column("coarse", TEXT, "Coarse type, such as `LOC:LOCATION`."),
    Column("fine", TEXT, "Fine type, such as `country:Country`."),
    Column("type_confidence", REAL, "Confidence of the type; 1 where the source names it."),
    Column("type_producer", TEXT, "`source` or the identity of the classifier."),
    Nullable("classifier_coarse", TEXT, "The classifier's type, also where the source's is used."),
    Nullable("classifier_fine", TEXT, "The classifier's type, also where the source's is used."),
    Column(
        "answerability",
        REAL,
        "max s_i: 1 where a retrieved passage contains an answer; else 0, or with `difficulty.counts = "
        "nearness` the best cosine of passage and answer, scaled to 0 to 1.",
    ),
    Column("answer_share", REAL, "Share of the retrieved passages that contain an answer, 0 to 1."),
    Nullable(
        "near_share",
        REAL,
        "Share of the retrieved passages that contain an answer or are near one by cosine (T_ans), 0 to 1.",
    ),
    Column("completeness", REAL, "S_D: mean normalised entropy of token relevance, 0 to 1."),
    Column("similarity", REAL, "Mean similarity of the retrieved passages to the question, -1 to 1."),
    Column("difficulty", REAL, "0 (easy) to 1 (hard)."),
    Column("difficulty_bin", TEXT, "`easy`, `medium` or `hard`."),
    Column("difficulty_producer", TEXT, "Identity of the method and its models."),
    NOTE,
)
PERMUTATION = Column(
    "permutation",
    TEXT,
    "Ranks of the chosen hints in reading order, such as `402`: a digit each, from the eleventh hint a letter.",
)
READER = Column("reader", TEXT, "Name of the reader.")
ANSWER = Column("answer", TEXT, "The cleaned answer, or `NO ANSWER`.")
RAW = Column("raw", TEXT, "The reply as the model wrote it.")
PRODUCER = Column("producer", TEXT, "Identity of the reader: model, prompt and sampling.")
