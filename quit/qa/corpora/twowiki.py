"""2WikiMultihopQA (Ho et al., COLING 2020): two- to four-hop questions, ten paragraphs each, with their evidences; and
HotpotQA (Yang et al., EMNLP 2018), which has the same layout without evidences.

A JSON array: ``{_id, type, question, context: [[title, [sentence, ...]]], supporting_facts: [[title, sentence number]],
evidences: [[subject, relation, object]], answer}``, or rows of the hub, ``context: {title: [...], sentences: [...]}``
and ``supporting_facts: {title: [...], sent_id: [...]}``, also as JSON texts. Sub-questions come from ``qa_pairs``
({question, answer}) where a file has them; else they are written ``subject >> relation``, as MuSiQue writes those that
no person has rephrased.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from quit.qa.corpora.context import Draft, corpus_records
from quit.retrieval.records import CorpusRecord, RawQuery, clean
from quit.sources import fields
from quit.sources.fields import BadRecord
from quit.text.answers import answer_key

EXPECTED = "2WikiMultihopQA's or HotpotQA's JSON array with _id, question, context, supporting_facts and answer"
_CONTEXT = "a list of [title, [sentences]]"
_FACTS = "a list of [title, sentence number]"
_EVIDENCES = "a list of [subject, relation, object]"
_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a decomposition: its question, the answer that is accepted, and what it is about (may be empty)."""

    question: str
    answer: str
    subject: str


def read(path: Path, source: str = "2wiki", *, all_context: bool = False) -> Iterator[CorpusRecord]:
    """Yield the records of a file. ``source``: the kind, ``2wiki`` or ``hotpotqa``; ``all_context``: every paragraph is
    relevant to the whole question.

    A question without answer (the public test file) is rejected, its paragraphs are kept. Raises ``InputError`` as
    ``corpus_records`` does.
    """
    parse = partial(_parse, all_context=all_context)
    return corpus_records(path, source, EXPECTED, _identify, parse)


def _identify(record: dict[str, Any]) -> str:
    key = "_id" if record.get("_id") is not None else "id"
    return fields.as_id(fields.need(record, key if key in record else "_id", "a text"), "_id")


def _parse(record: dict[str, Any], draft: Draft, all_context: bool) -> None:
    value = fields.rows_of(fields.need(record, "context", _CONTEXT), "title", "sentences")
    context = fields.as_list(value, "context", _CONTEXT)
    sentences: list[tuple[str, int]] = []
    for number, paragraph in enumerate(context):
        name = f"context[{number}]"
        if not isinstance(paragraph, list) or len(paragraph) != 2:
            raise fields.wrong_type(name, "[title, [sentences]]", paragraph)
        title = fields.as_text(paragraph[0], f"{name}[0]")
        parts = fields.as_texts(paragraph[1], f"{name}[1]")
        draft.add(number, title, " ".join(parts))
        sentences.append((title, len(parts)))
    question = clean(fields.as_text(fields.need(record, "question", "a text"), "question"))
    answer = clean(fields.as_text(record.get("answer") or "", "answer"))
    if not question or not answer:
        raise BadRecord("no_question" if not question else "no_answer", "The question or its answer is blank.")
    supporting = _supporting(record, sentences)
    if not supporting:
        raise BadRecord("no_support", "No paragraph is named as supporting.")
    kind = fields.as_label(record.get("type"), "type")
    relevant = draft.relevant(list(draft.rows) if all_context else supporting)
    support = draft.relevant(supporting)
    draft.queries.append(RawQuery(question, (answer,), relevant, kind=kind))
    steps = _steps(record)
    assignment = _assigned(
        [[_about(step, draft.documents[row].title, draft.documents[row].text) for row, _ in support] for step in steps]
    )
    for hop, (step, position) in enumerate(zip(steps, assignment, strict=True), start=1):
        support_rows = () if position is None else (support[position],)
        draft.queries.append(
            RawQuery(step.question, (step.answer,) if step.answer else (), support_rows, hop=hop, kind=kind)
        )


def _supporting(record: dict[str, Any], sentences: Sequence[tuple[str, int]]) -> list[int]:
    """Return the places of the paragraphs that supporting facts name.

    Of several with the title, the first that has the sentence: titles alone do not tell paragraphs apart.
    """
    rows: list[int] = []
    facts = fields.rows_of(record.get("supporting_facts") or [], "title", "sent_id")
    for position, fact in enumerate(fields.as_list(facts, "supporting_facts", _FACTS)):
        name = f"supporting_facts[{position}]"
        if not isinstance(fact, list) or len(fact) != 2:
            raise fields.wrong_type(name, "[title, sentence number]", fact)
        sentence = fields.as_number(fact[1], name, "[title, sentence number]") or 0.0
        if sentence < 0 or sentence != int(sentence):
            raise fields.wrong_type(name, "[title, sentence number]", fact)
        named = [row for row, (title, _) in enumerate(sentences) if title == fact[0]]
        if not named:
            raise BadRecord(
                "no_support", f"The supporting paragraph {fields.quote(str(fact[0]))} is not in the context."
            )
        rows.append(next((row for row in named if sentence < sentences[row][1]), named[0]))
    return list(dict.fromkeys(rows))


def _steps(record: dict[str, Any]) -> list[Step]:
    evidences = []
    triples = fields.rows_of(record.get("evidences") or [])
    for position, triple in enumerate(fields.as_list(triples, "evidences", _EVIDENCES)):
        parts = fields.as_texts(triple, f"evidences[{position}]")
        if len(parts) != 3 or not all(map(clean, parts)):
            raise fields.wrong_type(f"evidences[{position}]", "[subject, relation, object]", triple)
        evidences.append(tuple(map(clean, parts)))
    value = fields.rows_of(record.get("qa_pairs") or [])
    pairs = fields.as_list(value, "qa_pairs", "a list of {question, answer}")
    if not pairs:
        return [Step(f"{subject} >> {relation}", target, subject) for subject, relation, target in evidences]
    questions = []
    for position, pair in enumerate(pairs):
        name = f"qa_pairs[{position}]"
        fields.as_object(pair, name)
        texts = [fields.as_text(fields.need(pair, key, "a text", f"{name}."), name) for key in ("question", "answer")]
        if not clean(texts[0]):
            raise BadRecord("no_question", f"The sub-question {position + 1} is blank.")
        questions.append((clean(texts[0]), clean(texts[1])))
    # qa_pairs answer in whole sentences and not always in the order of the evidences, whose objects are the short
    # answers.
    assignment = _assigned(
        [[_overlap(e[0], text) + _overlap(e[2], answer_text) for e in evidences] for text, answer_text in questions]
    )
    return [
        Step(text, answer_text, "") if row is None else Step(text, evidences[row][2], evidences[row][0])
        for (text, answer_text), row in zip(questions, assignment, strict=True)
    ]


def _about(step: Step, title: str, text: str) -> float:
    """Return how well a paragraph fits a step: named by it, about its subject, holding its answer."""
    bare = _BRACKETS.sub("", title)
    named = max(_overlap(bare, step.question), _overlap(bare, step.subject) if step.subject else 0.0)
    same = bool(step.subject) and answer_key(_BRACKETS.sub("", step.subject)) == answer_key(bare)
    holds = bool(step.answer) and answer_key(step.answer) in answer_key(text)
    return 0.0 if not named and not same else 2 * named + same + 0.5 * holds


def _overlap(part: str, whole: str) -> float:
    words, whole_words = set(answer_key(part).split()), set(answer_key(whole).split())
    return len(words & whole_words) / len(words) if words else 0.0


def _assigned(scores: Sequence[Sequence[float]]) -> list[int | None]:
    """Return for each row its column in the best one-to-one assignment, None where nothing fits (score 0).

    With fewer columns than rows each row takes its best column.
    """
    if not scores or not scores[0]:
        return [None] * len(scores)
    values = np.array(scores, dtype=float)
    fits = values.shape[0] <= values.shape[1]
    columns = linear_sum_assignment(values, maximize=True)[1] if fits else values.argmax(axis=1)
    return [column if row[column] > 0 else None for row, column in zip(scores, columns.tolist(), strict=True)]
