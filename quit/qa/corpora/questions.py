"""Questions with answers and without paragraphs, for retrieval complexity over another source's documents:
ComplexWebQuestions (Talmor and Berant, NAACL 2018), StrategyQA (Geva et al., TACL 2021) and Natural Questions
(Kwiatkowski et al., TACL 2019), as their authors publish them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from quit.qa.corpora.context import Draft, corpus_records
from quit.retrieval.records import CorpusRecord, RawQuery, clean
from quit.sources import fields
from quit.sources.drafts import distinct
from quit.sources.fields import BadRecord

EXPECTED = {
    "cwq": "ComplexWebQuestions' JSON array with ID, question and answers ({answer, aliases})",
    "strategyqa": "StrategyQA's JSON array with qid, question and answer (true or false)",
    "nq": "Natural Questions as JSON Lines: question and answer (a list), or example_id, question_text, document_text "
    "and annotations",
}
_ID = {"cwq": "ID", "strategyqa": "qid", "nq": "example_id"}


def read(path: Path, source: str) -> Iterator[CorpusRecord]:
    """Yield the records of a file; ``source``: a key of :data:`EXPECTED`. A record without an id has its question's
    text as id. A question without answer is rejected. Raises ``InputError`` as ``corpus_records`` does."""
    identify, parse = partial(_identify, source), partial(_parse, _ANSWERS[source])
    return corpus_records(path, source, EXPECTED[source], identify, parse, documents=False)


def _identify(source: str, record: dict[str, Any]) -> str:
    name = next((name for name in (_ID[source], "id") if record.get(name) is not None), "")
    return fields.as_id(record[name], name) if name else _question(record)[: fields.MAX_ID]


def _question(record: Mapping[str, Any]) -> str:
    name = "question_text" if "question_text" in record else "question"
    question = clean(fields.as_text(fields.need(dict(record), name, "a text"), name))
    if not question:
        raise BadRecord("no_question", "The question is blank.")
    return question


def _parse(answers_of: Callable[[dict[str, Any]], list[str]], record: dict[str, Any], draft: Draft) -> None:
    answers = distinct(map(clean, answers_of(record)))
    if not answers:
        raise BadRecord("no_answer", "The question has no answer.")
    kind = fields.as_label(record.get("compositionality_type"), "compositionality_type")
    draft.queries.append(RawQuery(_question(record), answers, (), kind=kind))


def _complex(record: dict[str, Any]) -> list[str]:
    answers: list[str] = []
    value = fields.rows_of(record.get("answers") or [])
    for position, entry in enumerate(fields.as_list(value, "answers", "a list of {answer, aliases}")):
        name = f"answers[{position}]"
        answers.append(fields.as_text(fields.as_object(entry, name).get("answer") or "", f"{name}.answer"))
        answers += fields.as_texts(entry.get("aliases") or [], f"{name}.aliases")
    return answers


def _strategy(record: dict[str, Any]) -> list[str]:
    if not isinstance(answer := fields.need(record, "answer", "true or false"), bool):
        raise fields.wrong_type("answer", "true or false", answer)
    return ["yes" if answer else "no"]


def _natural(record: dict[str, Any]) -> list[str]:
    if "annotations" not in record:
        name = "answers" if "answers" in record else "answer"
        return fields.as_texts(fields.need(record, name, "a text or a list of texts"), name)
    if not isinstance(text := fields.need(record, "document_text", "a text"), str):
        raise fields.wrong_type("document_text", "a text", text)
    tokens, answers = text.split(" "), list[str]()
    for annotation in fields.as_list(record["annotations"], "annotations", "a list of annotations"):
        spans = fields.as_object(annotation, "annotations[]").get("short_answers") or []
        for span in fields.as_list(spans, "short_answers", "a list of {start_token, end_token}"):
            start, end = (fields.as_object(span, "short_answers[]").get(name) for name in ("start_token", "end_token"))
            if type(start) is not int or type(end) is not int:
                raise fields.wrong_type("short_answers", "a list of {start_token, end_token}", span)
            if not 0 <= start <= end <= len(tokens) and (start, end) != (-1, -1):
                raise BadRecord("bad_value", f"A short answer is of tokens {start} to {end} of {len(tokens)}.")
            answers.append(" ".join(tokens[start:end]))
        if (word := str(annotation.get("yes_no_answer", "")).lower()) in ("yes", "no"):
            answers.append(word)
    return answers


_ANSWERS = {"cwq": _complex, "strategyqa": _strategy, "nq": _natural}
