"""Read sources as a build would and say what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from quit.common.progress import advance
from quit.common.rows import first_by
from quit.sources.fields import quote
from quit.sources.files import shown_file, unit

if TYPE_CHECKING:
    from quit.models.factory import Models
    from quit.settings import Settings
    from quit.sources import SourceRef
    from quit.sources.records import SourceRecord


class Fault(TypedDict):
    """What would be left out: ``detail`` has place and reason in words."""

    file: str | None
    reason: str
    detail: str


class Note(TypedDict):
    """What looks odd in a file."""

    file: str
    detail: str


class SourceCheck(TypedDict):
    """What a build would take from sources: numbers of ``records``, usable ``questions`` and ``hints``, and distinct
    ``answers``, candidates among them. ``skipped``: what was not looked for."""

    records: int
    questions: int
    hints: int
    answers: int
    skipped: str
    faults: list[Fault]
    notes: list[Note]


def examine(refs: Sequence[SourceRef], settings: Settings, models: Models | None = None) -> SourceCheck:
    """Return what the stages collect and filter make of sources.

    ``models`` None: leaks are sought by rules alone, and ``skipped`` says so. Raises ``InputError`` where nothing can
    be collected, and what the readers raise.
    """
    from quit.models.readers.pool import pool_size
    from quit.stages.collect import collect_stage
    from quit.stages.filter import filter_leaks
    from quit.stages.stage import Context

    units = {ref.path.name: _unit(ref) for ref in refs}
    records = _Records(refs, units)
    tables = collect_stage.function(Context({}, settings, cast("Models", models)), records)  # it asks no model
    filtered = filter_leaks(
        tables["questions"],
        tables["hints"],
        models.equivalence if models else None,
        models.encoder if models else None,
        settings.leakage,
        settings.passages.needed_hints,
        given=settings.passages.is_given,
    )
    usable, candidates = filtered["usable_hints"], tables["candidates"]["candidate"].to_pylist()
    return {
        "records": records.count,
        "questions": len(usable["question_id"].unique()),
        "hints": len(usable),
        "answers": pool_size(chain(*tables["questions"]["answers"].to_pylist(), candidates)),
        "skipped": "" if models else "leaks that models find (--no-models, models=False); a build may leave out more",
        "faults": _faults(tables, filtered["rejects"], units),
        "notes": records.notes + _paraphrases(tables, models) + _notes_on_files(refs, records),
    }


class _Records:
    """The records of sources, counted and looked at as they pass."""

    def __init__(self, refs: Sequence[SourceRef], units: dict[str, str]) -> None:
        self._refs, self._units = refs, units
        self.count = 0
        self.notes: list[Note] = []
        self.without_candidates, self.with_gold = Counter[str](), Counter[str]()

    def __iter__(self) -> Iterator[SourceRecord]:
        from quit.sources import read_sources
        from quit.sources.notes import notes
        from quit.text.answers import answer_key

        for record in read_sources(self._refs):
            self.count += 1
            advance("records")
            if question := record.question:
                where = _where(self._units, question.file, question.position, question.record_id)
                file = shown_file(question.file)
                self.notes += [{"file": file, "detail": f"{where}: {note}"} for note in notes(question)]
                self.without_candidates[question.file] += not question.candidates
                golds = {answer_key(answer) for answer in question.answers}
                self.with_gold[question.file] += any(answer_key(text) in golds for text in question.candidates)
            yield record


def _faults(tables: Mapping[str, Any], leaks: Any, units: dict[str, str]) -> list[Fault]:
    """Return what would be left out, by file and position; a leak is where its question came from first."""
    origins = first_by((row["question_id"], row) for row in tables["origins"].to_pylist())
    rows = tables["rejects"].to_pylist()
    for row in leaks.to_pylist():
        origin = origins[row["question_id"]]
        rows.append({**row, **{name: origin[name] for name in ("file", "position", "record_id")}})
    faults: list[Fault] = []
    for row in sorted(rows, key=lambda row: (row["file"] or "", row["position"] or 0)):
        detail = row["detail"]
        if not detail.startswith(("line ", "record ", "row ")):
            detail = f"{_where(units, row['file'], row['position'], row['record_id'])}: {detail}"
        faults.append({"file": row["file"] and shown_file(row["file"]), "reason": row["reason"], "detail": detail})
    return faults


def _paraphrases(tables: Mapping[str, Any], models: Models | None) -> list[Note]:
    """Return a note on each pair of questions that ask the same in other words; none without models."""
    from quit.stages.questions.alike import paraphrases

    origins = first_by((row["question_id"], row) for row in tables["origins"].to_pylist())
    result: list[Note] = []
    for pair in paraphrases(tables["questions"], models.encoder) if models else ():
        first, other = (f"{row['question_id']} ({quote(row['question'])})" for row in pair)
        advice = "One may come into train, the other into test: take one out."
        file = shown_file(origins[pair[0]["question_id"]]["file"])
        result.append({"file": file, "detail": f"{first} and {other} seem to ask the same. {advice}"})
    return result


def _notes_on_files(refs: Sequence[SourceRef], records: _Records) -> list[Note]:
    from quit.sources.csv import column_notes
    from quit.sources.notes import key_notes

    notes: list[Note] = []
    for ref in refs:
        if ref.kind == "csv" or (ref.kind == "jsonl" and ref.path.suffix.lower() != ".parquet"):
            remarks = (column_notes if ref.kind == "csv" else key_notes)(ref.path)
            notes += [{"file": shown_file(ref.path.name), "detail": remark} for remark in remarks]
    for file, count in (+records.with_gold).items():
        harmless = "with the gold answer among the candidates: it is not taken for a wrong answer."
        notes.append({"file": shown_file(file), "detail": f"{count:,} {harmless}"})
    for file, count in (+records.without_candidates).items():
        pool = "without candidates (plausible wrong answers): the pool of all answers replaces them."
        notes.append({"file": shown_file(file), "detail": f"{count:,} {pool}"})
    return notes


def _unit(ref: SourceRef) -> str:
    """Return what a position counts."""
    from quit.sources.items import is_array

    counts = unit(ref.kind, ref.path.name)
    return "record" if counts == "line" and is_array(ref.path) else counts


def _where(units: dict[str, str], file: str | None, position: int | None, record_id: str | None) -> str:
    place = f"{units.get(Path(file or '').name.partition('#')[0], 'record')} {(position or 0) + 1}"
    return f"{place} ({record_id})" if record_id else place
