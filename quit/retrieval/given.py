"""The first documents of a run as passages given with their questions: records for ``quit build``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quit.common.progress import note
from quit.errors import InputError
from quit.retrieval.corpus import read
from quit.retrieval.records import clean_id
from quit.retrieval.trec import best_first, read_qrels, read_run
from quit.sources.drafts import as_record
from quit.sources.fields import BadRecord, as_id, need, quote
from quit.sources.items import line_items
from quit.text.words import counted

EXPECTED = "JSON Lines or Parquet with id, question and answers"


def run_records(run: Path, corpus: Path, questions: Path, top: int, qrels: Path | None = None) -> list[dict[str, Any]]:
    """Return the records of a file of questions, each with the first ``top`` documents that a run has for its id as
    ``passages``: {id, title, text, rank} and, with ``qrels``, relevance: 0 where it is not judged, as
    in trec_eval, and null for a question without judgements.

    A question that the run lacks has none. Raises ``InputError`` for a file that cannot be read, a document that the
    corpus lacks, and a run without any of the questions.
    """
    rankings, judgements = read_run(run)[1], read_qrels(qrels) if qrels else {}
    first = {question: [*best_first(scores)][:top] for question, scores in rankings.items()}
    document_ids = {name for names in first.values() for name in names}
    texts, without_text = dict[str, dict[str, str]](), set[str]()
    for of_corpus in read(corpus):
        if (name := clean_id(of_corpus.record_id)) in document_ids:
            if of_corpus.rejects:
                without_text.add(name)
            for document in of_corpus.documents:
                texts[name] = {"title": document.title, "text": document.text}
    if without_text := without_text - texts.keys():
        count = counted(len(without_text), "document")
        note(f"{count} that {run} ranks first cannot be used, such as {quote(min(without_text))}: left out", loud=True)
    if missing := sorted(document_ids - texts.keys() - without_text):
        few = f"{len(missing):,} of the {len(document_ids):,} documents"
        raise InputError(f"{corpus} lacks {few} that {run} ranks first, such as {quote(missing[0])}.")
    records, matches = [], 0
    for item in line_items(questions, EXPECTED):
        try:
            record = as_record(item)
            question_id = clean_id(as_id(need(record, "id", "a text or a whole number"), "id"))
        except BadRecord as fault:
            raise InputError(f"{questions}, {item.where}: {fault.detail} Expected {EXPECTED}.") from None
        matches += question_id in first
        names, labels = first.get(question_id, []), judgements.get(question_id, {})
        passages = [
            {"id": name, **texts[name], "rank": rank, "relevance": labels.get(name, 0) if labels else None}
            for rank, name in enumerate(names, 1)
            if name in texts
        ]
        records.append({key: value for key, value in record.items() if key != "hints"} | {"passages": passages})
    if not matches:
        raise InputError(f"{run} ranks no question of {questions}; it has {quote(next(iter(first), 'none'))}.")
    return records
