"""Arrow schemas of the workspace's tables, in the order in which data flows through them.

Records (questions, hints, candidates) are frozen; what someone or something thinks of them is a row of another table,
joined by id. Every table is ordered by question, so parts can be concatenated in order whatever the number of shards.
What conditions in SQL may name: :class:`quit.contracts.TableContract`.
"""

from __future__ import annotations

from quit.contracts.columns import (
    ANSWER,
    ANSWER_KEY,
    COUNT,
    DESCRIBED,
    FLAG,
    HINT,
    KEYED,
    PERMUTATION,
    PRODUCER,
    QUESTION,
    RANKED,
    RAW,
    READER,
    REAL,
    RULED,
    SMALL,
    TEXT,
    TEXTS,
    VERDICT,
)
from quit.contracts.contract import Column, Nullable, Reference, TableContract
from quit.contracts.people import PEOPLE

MEDIUM_FROM, HARD_FROM = 0.55, 0.7
"""Difficulty from which a question's bin is `medium`, and `hard`; ours."""
_EVERY_QUESTION = (Reference(("question_id",), "splits"),)

TABLES: dict[str, TableContract] = {
    table.name: table
    for table in (
        TableContract(
            "questions",
            stage="collect",
            key=("question_id",),
            doc="The collection: one row per question, after pooling.",
            columns=(
                QUESTION,
                Column("question", TEXT, "The question, repaired (mojibake, white space)."),
                Column("answers", TEXTS, "Gold answers, first the one the source names first; never empty."),
                Column("source", TEXT, "Source kind of the first record: `triviahg`, `wikihint`, `jsonl`, ..."),
                Nullable("coarse", TEXT, "The source's own coarse type, such as `LOC:LOCATION`."),
                Nullable("fine", TEXT, "The source's own fine type, such as `country:Country`."),
                Nullable("difficulty", TEXT, "The source's own difficulty, such as `Easy`."),
                Column("content_key", TEXT, "Hash of the normalised question: stable across sources and files."),
            ),
            required=_EVERY_QUESTION,
            follows={"content_key": "key_of(question)"},
            released=True,
        ),
        TableContract(
            "origins",
            stage="collect",
            key=("question_id", "file", "position"),
            doc="Where each question came from: one row per source record that was pooled into it.",
            columns=(
                QUESTION,
                Column("source", TEXT, "Source kind."),
                Column("file", TEXT, "Name of the file, without its folder."),
                Column("position", COUNT, "Position of the record in the file, from 0."),
                Column("record_id", TEXT, "The record's own id in that file."),
            ),
        ),
        TableContract(
            "hints",
            stage="collect",
            key=("hint_id",),
            doc="Hints in pooled order, each with its origin; or the passages given in place of hints.",
            columns=(
                HINT,
                QUESTION,
                Column("position", SMALL, "Position among the question's pooled hints, from 0."),
                Column("hint", TEXT, "The hint, repaired and without citation marks."),
                Column("source", TEXT, "Source kind of the record that gave it."),
                Column("file", TEXT, "File of the record that gave it."),
                Nullable(
                    "rank", SMALL, "The source's own (human) rank, lowest is best; or a passage's by its retriever."
                ),
                Nullable("convergence", REAL, "The source's own, 0 to 1; of a given passage, its relevance, from 0."),
                Nullable("url", TEXT, "Where the hint's author found it."),
            ),
            follows={
                "hint_id": "CASE WHEN getvariable('given') THEN question_id || ':' || "
                "hint_id[length(question_id) + 2:] ELSE format('{}-h{:02d}', question_id, position) END"
            },
            released=True,
        ),
        TableContract(
            "candidates",
            stage="collect",
            key=("question_id", "candidate"),
            doc="Candidate answers: distractors (and gold answers) that hints have to tell apart.",
            columns=(
                QUESTION,
                Column("position", SMALL, "Position among the question's pooled candidates, from 0."),
                Column("candidate", TEXT, "The candidate answer."),
                Column("is_gold", FLAG, "Whether it has a gold answer's key."),
            ),
        ),
        TableContract(
            "scores",
            stage="collect",
            key=("hint_id", "candidate"),
            doc="The source's own judgement whether a hint may refer to a candidate answer.",
            columns=(
                HINT,
                QUESTION,
                Column("position", SMALL, "Position of the candidate in the source's list, from 0."),
                Column("candidate", TEXT, "The candidate answer."),
                Column("score", SMALL, "1 if the hint may refer to the candidate, else 0."),
            ),
        ),
        TableContract(
            "leak_findings",
            stage="filter",
            key=("hint_id", "span", "answer"),
            doc="Every span of a hint that gives an answer away, with the reason.",
            columns=(
                HINT,
                QUESTION,
                Column("span", TEXT, "The words of the hint that leak."),
                Column("answer", TEXT, "The answer they give away."),
                Column("probability", REAL, "Probability of equivalence; 1 for a lexical match."),
                Column(
                    "method",
                    TEXT,
                    "How it was found: `exact`, `inflection`, ..., `equivalence`, `contained` or `person`.",
                ),
                Column("producer", TEXT, "Identity of the model or rule; `person` (who: see `overrides`)."),
                Column(
                    "overridden",
                    FLAG,
                    "Whether a person said that this is no leak (who and why: `overrides`); it then discards nothing.",
                ),
            ),
        ),
        TableContract(
            "usable_hints",
            stage="filter",
            key=("hint_id",),
            doc="Hints of the questions that pass the leakage filter.",
            columns=(HINT, QUESTION),
        ),
        TableContract(
            "ranked_hints",
            stage="rank",
            key=("hint_id",),
            doc="Usable hints by convergence; the first `passages.hints` make the passages.",
            columns=RANKED,
            required=_EVERY_QUESTION,
            references=(Reference(("hint_id", "question_id", "hint"), "hints"),),
            follows={
                "rank": "row_number() OVER (PARTITION BY question_id ORDER BY rank) - 1",
                "selected": "rank < getvariable('hints')",
            },
            released=True,
        ),
        TableContract(
            "drawn_candidates",
            stage="rank",
            key=("question_id", "position"),
            doc="Candidate answers drawn from the collection, for questions that needed some and whose source has "
            "none.",
            columns=(
                QUESTION,
                Column("position", SMALL, "Place by similarity, from 0."),
                Column("candidate", TEXT, "A gold answer of another question."),
                Column("fine", TEXT, "The fine type that both questions have."),
                Column("similarity", REAL, "Cosine to the nearest gold answer of this question, -1 to 1."),
                Column("producer", TEXT, "Identity of the method and its models."),
            ),
        ),
        TableContract(
            "descriptions",
            stage="describe",
            key=("question_id",),
            doc="Question type (TREC; our classifier, the paper takes HintEval's) and difficulty (reference-based "
            "retrieval complexity).",
            columns=DESCRIBED,
            required=_EVERY_QUESTION,
            follows={
                "difficulty_bin": f"CASE WHEN difficulty >= {HARD_FROM} THEN 'hard' WHEN difficulty >= {MEDIUM_FROM} "
                "THEN 'medium' ELSE 'easy' END"
            },
            released=True,
        ),
        TableContract(
            "probe_answers",
            stage="probe",
            key=("question_id", "reader", "repetition"),
            doc="Answers to the question alone, without any hint.",
            columns=(
                QUESTION,
                READER,
                Column("repetition", SMALL, "Repetition, from 0."),
                RAW,
                ANSWER,
                Nullable("correct", FLAG, "The judge's verdict on `raw`; null where unreadable."),
                PRODUCER,
                Column("judge", TEXT, "Identity of the judge."),
            ),
        ),
        TableContract(
            "splits",
            stage="split",
            key=("question_id",),
            doc="Which split each question belongs to.",
            columns=(
                QUESTION,
                Column("parametric", FLAG, "Whether any reader answers it without hints, in any repetition."),
                Column("split", TEXT, "`train`, `dev` or `test`.", values=("train", "dev", "test")),
                Column("draw", REAL, "The question's keyed hash as a number in [0, 1): decides its place."),
            ),
            follows={
                "draw": "(SELECT draw_of(content_key) FROM questions AS q WHERE q.question_id = this.question_id)"
            },
            released=True,
        ),
        TableContract(
            "passages",
            stage="enumerate",
            key=("question_id", "permutation"),
            doc="The ordered selections of a question's hints that are its passages (settings `passages`; by default "
            "all), depth first; text follows from hints and permutation and is never stored.",
            columns=(
                QUESTION,
                Column("subset", TEXT, "Indices of the chosen hints, ascending, such as `024`."),
                PERMUTATION,
                Column("hints", SMALL, "Number of hints."),
            ),
            passages=True,
            references=(Reference(("permutation", "subset", "hints"), "permutations"),),
            released=True,
        ),
        TableContract(
            "answers",
            stage="read",
            key=("question_id", "permutation", "reader"),
            doc="Which reply each reader gave to each passage, by its number in `distinct_answers`.",
            columns=(
                QUESTION,
                PERMUTATION,
                READER,
                Column("number", SMALL, "Number of the reply among the reader's distinct ones to the question."),
                Nullable(
                    "ended",
                    TEXT,
                    "Why the reply ended: `stop`, `length` (cut) or `content_filter` (withheld, or its prompt refused, "
                    "with the vendor's word where that is another: `content_filter: SAFETY`); null where no model "
                    "wrote one.",
                ),
                Column(
                    "asked",
                    FLAG,
                    "Whether the reader was asked about this passage (`labels.partial`); if not, its reply is "
                    "`NO ANSWER` with an empty `raw`.",
                ),
                PRODUCER,
            ),
            passages=True,
            references=(Reference(("question_id", "reader", "number"), "distinct_answers"),),
            follows={
                "reader": "file",
                "producer": "(SELECT mode(producer ORDER BY producer DESC) FROM answers AS a WHERE a.file = this.file)",
                "asked": "asked OR ended IS NOT NULL OR says",
            },
        ),
        TableContract(
            "distinct_answers",
            stage="read",
            key=("question_id", "reader", "number"),
            doc="The distinct replies of each reader to each question.",
            columns=(
                QUESTION,
                READER,
                Column("number", SMALL, "Number of the reply, from 0, in the order of the first passage that got it."),
                ANSWER,
                ANSWER_KEY,
                RAW,
            ),
            references=(
                Reference(
                    ("question_id", "answer_key"), "judged", "unjudged-answer", "passages > 0 AND answer <> 'NO ANSWER'"
                ),
            ),
            follows={
                **KEYED,
                "reader": "file",
                "number": "place",
            },
        ),
        TableContract(
            "verdicts",
            stage="judge",
            key=("question_id", "answer_key", "judge"),
            doc="The judge's verdict on each distinct answer of a question.",
            columns=VERDICT,
            references=(Reference(("question_id", "answer_key", "answer"), "distinct_answers"),),
            follows={
                **RULED,
                "correct": "CASE WHEN basis = 'model' AND correct IS NULL THEN NULL "
                "WHEN basis IN ('exact', 'review') OR (question_id, answer_key) IN (SELECT "
                "(question_id, answer_key) FROM distinct_answers WHERE labels AND passages > 0) THEN "
                "(question_id, answer_key) IN (SELECT (question_id, answer_key) FROM valid_answers) ELSE correct END",
            },
            released=True,
        ),
        TableContract(
            "second_verdicts",
            stage="judge",
            key=("question_id", "answer_key", "judge"),
            doc="Other judges' verdicts on the same answers: of the equivalence model, where it is not the judge, and "
            "of those asked by `quit release rejudge`, which lie beside the tables and are in no release.",
            columns=VERDICT,
            references=(Reference(("question_id", "answer_key", "answer"), "verdicts"),),
            follows=RULED,
            released=True,
        ),
        TableContract(
            "labels",
            stage="label",
            key=("question_id", "permutation"),
            doc="Relevance of a passage to its own question: 2 fully, 1 partially. Passages of other questions are 0 "
            "and not stored.",
            columns=(
                QUESTION,
                PERMUTATION,
                Column("label", SMALL, "2 if the answer of at least one labeler is correct, else 1.", values=(1, 2)),
                Column("labelers", TEXTS, "Names of the labelers whose answer is correct."),
            ),
            passages=True,
            follows={
                "label": "CASE WHEN len(labelers) > 0 THEN 2 ELSE 1 END",
                "labelers": "right_labelers",
            },
            released=True,
        ),
        TableContract(
            "valid_answers",
            stage="label",
            key=("question_id", "answer"),
            doc="Accepted surface forms of a question: gold answers, labelers' answers judged correct, and all that "
            "people accept.",
            columns=(
                QUESTION,
                Column("answer", TEXT, "The accepted answer as written."),
                ANSWER_KEY,
                Column(
                    "origin",
                    TEXT,
                    "`gold`, `labeler`, or `review` (accepted by people, given by no labeler).",
                    values=("gold", "labeler", "review"),
                ),
                Column("passages", COUNT, "Number of (passage, labeler) pairs that gave exactly this form."),
            ),
            required=(*_EVERY_QUESTION, Reference(("question_id", "answer"), "gold")),
            follows={
                **KEYED,
                "passages": "(SELECT coalesce(sum(passages), 0) FROM distinct_answers AS d WHERE labels AND "
                "(d.question_id, d.answer) = (this.question_id, this.answer))",
                "origin": "CASE WHEN (question_id, answer) IN (SELECT (question_id, answer) FROM gold) THEN 'gold' "
                "WHEN passages > 0 THEN 'labeler' WHEN (question_id, answer) IN (SELECT "
                "(question_id, answer) FROM changes WHERE change = 'answer_added') THEN 'review' END",
            },
            released=True,
        ),
        *PEOPLE,
        TableContract(
            "hint_roles",
            stage="roles",
            key=("hint_id",),
            doc="What each hint that makes passages contributes to label 2. p(S) is the share of the orders of a set S "
            "of hints that have label 2; S suffices where p(S) = 1, and is minimal where no proper subset of it "
            "suffices. The Shapley values of v(S) = p(S) sum to p of all hints less `question_roles.without_hints`. "
            "Empty unless passages are all ordered selections of as many hints per question.",
            columns=(
                HINT,
                QUESTION,
                Column("rank", SMALL, "The hint's place by convergence, from 0: its digit in `permutation`."),
                Column("shapley", REAL, "Its Shapley value, -1 to 1."),
                Nullable("smallest_set", SMALL, "Hints in the smallest minimal set with it; null: it is in none."),
                Column("harmed", REAL, "Share of the sets S without it, the empty one too, with p(S + it) < p(S)."),
            ),
            required=(Reference(("question_id", "rank"), "hint_roles_again"),),
            references=(Reference(("hint_id", "question_id", "rank"), "ranked_hints"),),
            follows={
                name: f"(SELECT {name} FROM hint_roles_again AS r WHERE r.question_id = this.question_id AND r.rank = "
                "this.rank)"
                for name in ("shapley", "smallest_set", "harmed")
            },
            released=True,
        ),
        TableContract(
            "question_roles",
            stage="roles",
            key=("question_id",),
            doc="How many hints a question needs, and whether their order matters. Sets have at least one hint. Empty "
            "where `hint_roles` is.",
            columns=(
                QUESTION,
                Nullable("fewest_in_every_order", SMALL, "Hints in the smallest set that suffices; null: none does."),
                Nullable("fewest_in_some_order", SMALL, "Hints in the shortest passage with label 2, if any."),
                Column("order_dependent_sets", SMALL, "Sets of hints of which some orders have label 2 and others 1."),
                Nullable("unneeded_hints", SMALL, "Hints that are in no minimal set; null: no set suffices."),
                Nullable("without_hints", REAL, "p of no hints, by the probe; null: not probed, counts as 0."),
            ),
            required=(Reference(("question_id",), "question_roles_again"),),
            follows={
                name: f"(SELECT {name} FROM question_roles_again AS r WHERE r.question_id = this.question_id)"
                for name in ("fewest_in_every_order", "fewest_in_some_order", "order_dependent_sets", "unneeded_hints")
            },
            released=True,
        ),
        TableContract(
            "rejects",
            stage="every stage",
            key=(),
            doc="Rejected records, with stage and reason. Nothing is dropped silently.",
            columns=(
                Column("stage", TEXT, "The stage that rejected it."),
                Column(
                    "kind",
                    TEXT,
                    "`record`, `question`, `hint` or `document` (of a corpus).",
                    values=("record", "question", "hint", "document"),
                ),
                Column("reason", TEXT, "A short code, such as `too_few_hints`."),
                Column("detail", TEXT, "The fault, in words."),
                Nullable("source", TEXT, "Source kind, where known."),
                Nullable("file", TEXT, "File name, where known."),
                Nullable("position", COUNT, "Position of the record in its file, from 0."),
                Nullable("record_id", TEXT, "The record's own id, where it has one."),
                Nullable("question_id", TEXT, "The question, where it got that far."),
                Nullable("hint_id", TEXT, "The hint, where one hint is meant."),
            ),
            follows={
                "kind": "CASE WHEN kind <> 'question' OR question_id NOT IN (SELECT q.question_id FROM splits AS q) "
                "THEN kind END"
            },
            released=True,
        ),
    )
}


def table(name: str) -> TableContract:
    """Return the contract of a table. Raises ``KeyError`` for an unknown name."""
    return TABLES[name]
