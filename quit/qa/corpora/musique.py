"""MuSiQue (Trivedi et al., TACL 2022): two- to four-hop questions, twenty paragraphs each, with their decomposition.

The official JSON Lines: ``{id, question, answer, answer_aliases, answerable, question_decomposition: [{id, question,
answer, paragraph_support_idx}], paragraphs: [{idx, title, paragraph_text, is_supporting}]}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from quit.qa.corpora.context import Draft, corpus_records
from quit.retrieval.records import CorpusRecord, RawQuery, clean
from quit.sources import fields
from quit.sources.drafts import distinct
from quit.sources.fields import BadRecord

EXPECTED = "MuSiQue's JSON Lines with id, question, answer, question_decomposition and paragraphs"
_REFERENCE = re.compile(r"#(\d+)")
_ARTICLE, _WORD = re.compile(r"\bthe $", re.IGNORECASE), re.compile(r" (?!of\b)\w")
_PARAGRAPHS = "a list of paragraphs"
_STEPS = "a list of steps"


def read(path: Path, *, all_context: bool = False, aliases: bool = True) -> Iterator[CorpusRecord]:
    """Yield the records of a file. ``all_context``: every paragraph is relevant to the whole question. ``aliases``:
    whether ``answer_aliases`` are answers too.

    A question marked unanswerable is rejected, its paragraphs are kept. Raises ``InputError`` as ``corpus_records``
    does.
    """
    parse = partial(_parse, all_context=all_context, aliases=aliases)
    return corpus_records(path, "musique", EXPECTED, _identify, parse)


def resolve(question: str, answers: Sequence[str]) -> str:
    """Return a sub-question with ``#1`` replaced by the first earlier answer, ``#2`` by the second, and so on.

    A number that no earlier step has is no reference and stays, as does a rank: of a number that is there twice, the
    one between "the" and a word.

    >>> resolve("#1 >> capital", ["Mountrail County"])
    'Mountrail County >> capital'
    >>> resolve("Who sang the #1 hit of 1990 in #1?", ["Ohio"])
    'Who sang the #1 hit of 1990 in Ohio?'
    """
    numbers = _REFERENCE.findall(question)

    def put(reference: re.Match[str]) -> str:
        step = int(reference.group(1)) - 1
        before, after = question[: reference.start()], question[reference.end() :]
        if numbers.count(reference.group(1)) > 1 and _ARTICLE.search(before) and _WORD.match(after):
            return reference.group()
        return answers[step] if 0 <= step < len(answers) else reference.group()

    return _REFERENCE.sub(put, question)


def _identify(record: dict[str, Any]) -> str:
    return fields.as_id(fields.need(record, "id", "a text"), "id")


def _parse(record: dict[str, Any], draft: Draft, all_context: bool, aliases: bool) -> None:
    value = fields.rows_of(fields.need(record, "paragraphs", _PARAGRAPHS))
    paragraphs = fields.as_list(value, "paragraphs", _PARAGRAPHS)
    supporting: list[int] = []
    for position, paragraph in enumerate(paragraphs):
        name = f"paragraphs[{position}]"
        fields.as_object(paragraph, name)
        number = _number(paragraph.get("idx", position), f"{name}.idx")
        if number in draft.rows:
            raise BadRecord("bad_value", f"Two paragraphs have the idx {number}.")
        title = fields.as_text(paragraph.get("title") or "", f"{name}.title")
        text = fields.need(paragraph, "paragraph_text", "a text", f"{name}.")
        draft.add(number, title, fields.as_text(text, f"{name}.paragraph_text"))
        if paragraph.get("is_supporting"):
            supporting.append(number)
    if record.get("answerable") is False:
        raise BadRecord("unanswerable", "The question is marked as not answerable from its paragraphs.")
    question = clean(fields.as_text(fields.need(record, "question", "a text"), "question"))
    answer = fields.as_text(fields.need(record, "answer", "a text"), "answer")
    others = fields.as_texts(record.get("answer_aliases") or [], "answer_aliases") if aliases else []
    answers = distinct(clean(text) for text in (answer, *others))
    if not question or not answers:
        raise BadRecord("no_question" if not question else "no_answer", "The question or its answer is blank.")
    kind = draft.record_id.partition("__")[0] if "__" in draft.record_id else None
    relevant = draft.relevant(list(draft.rows) if all_context else supporting)
    if not relevant:
        raise BadRecord("no_support", "No paragraph is marked as supporting.")
    value = fields.rows_of(record.get("question_decomposition") or [])
    steps = fields.as_list(value, "question_decomposition", _STEPS)
    draft.queries += [RawQuery(question, answers, relevant, kind=kind), *_sub_questions(steps, draft, kind)]


def _sub_questions(steps: list[Any], draft: Draft, kind: str | None) -> Iterator[RawQuery]:
    numbers: list[str] = []
    for position, step in enumerate(steps):
        name = f"question_decomposition[{position}]"
        fields.as_object(step, name)
        text = clean(fields.as_text(fields.need(step, "question", "a text", f"{name}."), f"{name}.question"))
        answer = clean(fields.as_text(fields.need(step, "answer", "a text", f"{name}."), f"{name}.answer"))
        number = step.get("paragraph_support_idx")
        support = [] if number is None else [_number(number, f"{name}.paragraph_support_idx")]
        if not text:
            raise BadRecord("no_question", f"The sub-question {position + 1} is blank.")
        answers = (answer,) if answer else ()
        yield RawQuery(resolve(text, numbers), answers, draft.relevant(support), hop=position + 1, kind=kind)
        numbers.append(answer)


def _number(value: Any, name: str) -> int:
    number = fields.as_number(value, name, "a whole number")  # 0.0 where a column with gaps went through pandas
    if number is None or number != int(number):
        raise fields.wrong_type(name, "a whole number", value)
    return int(number)
