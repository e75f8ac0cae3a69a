"""``quit check``: read sources and say what is wrong with them, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.options import JsonOption, NamedProfileOption, SetOption, load_settings, show
from quit.common.progress import advance
from quit.text.words import counted


def check(
    source: Annotated[
        list[str], typer.Argument(help="KIND:PATH, or a path that ends in .jsonl, .parquet, .csv or .tsv.")
    ],
    profile: NamedProfileOption = "embedded",
    set_: SetOption = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Faults and notes to print; 0 for all.")] = 50,
    no_models: Annotated[
        bool, typer.Option("--no-models", help="Look for hints that give the answer away by rules alone: quicker.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read sources and look for leaks as a build would; say what would be left out and why, and what looks odd. Writes
    nothing.

    Exits with 1 when something would be left out. Duplicates between files are found when all are named together.

    Example: `quit check mine.jsonl triviahg:Copilot.json`
    """
    from quit.commands.progress import working
    from quit.models.factory import Models
    from quit.sources import parse_source

    refs, settings = [parse_source(text) for text in source], load_settings(profile, set_)
    with working("check"):
        findings = examine(refs, settings, None if no_models else Models(settings))
    show(findings, as_json, _lines(findings, limit))
    if findings["faults"]:
        raise typer.Exit(1)


def _lines(findings: dict[str, Any], limit: int) -> list[str]:
    lines = []
    for name, mark in (("faults", "left out"), ("notes", "note")):
        for row in findings[name][: limit or None]:
            why = f"{mark}: {row['reason']}" if row.get("reason") else mark
            lines.append(f"{row['file']}, {row['detail']}  ({why})")
        if limit and len(findings[name]) > limit:
            lines.append(f"... {len(findings[name]) - limit:,} more (--limit 0 shows all)")
    if findings["skipped"]:
        lines.append(f"Skipped: {findings['skipped']}.")
    faults = len(findings["faults"])
    counts = (
        f"{counted(findings['records'], 'record')}: {counted(findings['questions'], 'usable question')} with "
        f"{counted(findings['hints'], 'hint')}"
    )
    return [*lines, f"{counts}; {counted(faults, 'fault') if faults else 'no faults'}"]


def examine(refs: Any, settings: Any, models: Any = None) -> dict[str, Any]:
    """Return what the stages collect and filter make of sources: counts, ``faults`` and ``notes`` (``file``,
    ``reason``, ``detail``).

    ``models`` None: leaks are sought by rules alone, and ``skipped`` says so. Raises ``InputError`` where nothing can
    be collected, and what the readers raise.
    """
    from quit.stages.collect import collect
    from quit.stages.filter import filter_leaks

    units = {ref.path.name: _unit(ref) for ref in refs}
    read = _Read(refs, units)
    tables = collect(
        read,
        duplicates=settings.collect.duplicates,
        min_hints=settings.convergence.hints,
        questions=settings.collect.questions,
    )
    filtered = filter_leaks(
        tables["questions"],
        tables["hints"],
        models and models.equivalence,
        models and models.encoder,
        settings.leakage,
        settings.convergence.hints,
    )
    usable = filtered["usable_hints"]
    return {
        "records": read.records,
        "questions": len(usable["question_id"].unique()),
        "hints": len(usable),
        "skipped": "" if models else "leaks that only the models find (--no-models); a build may leave out more",
        "faults": _faults(tables, filtered["rejects"], units),
        "notes": read.notes + _notes_on_files(refs, read.without_candidates),
    }


class _Read:
    """The records of sources, counted and looked at as they pass."""

    def __init__(self, refs: Any, units: dict[str, tuple[str, int]]) -> None:
        self._refs, self._units = refs, units
        self.records = 0
        self.notes: list[dict[str, str]] = []
        self.without_candidates = Counter[str]()

    def __iter__(self) -> Iterator[Any]:
        from quit.sources import read_sources
        from quit.sources.notes import notes

        for record in read_sources(self._refs):
            self.records += 1
            advance("records")
            if question := record.question:
                where = _where(self._units, question.file, question.position, question.record_id)
                self.notes += [{"file": question.file, "detail": f"{where}: {note}"} for note in notes(question)]
                self.without_candidates[question.file] += not question.candidates
            yield record


def _faults(tables: dict[str, Any], leaks: Any, units: dict[str, tuple[str, int]]) -> list[dict[str, str]]:
    """Return what would be left out, by file and position; a leak is where its question came from first."""
    origins = {row["question_id"]: row for row in reversed(tables["origins"].to_pylist())}
    rows = tables["rejects"].to_pylist()
    for row in leaks.to_pylist():
        origin = origins[row["question_id"]]
        rows.append({**row, **{name: origin[name] for name in ("file", "position", "record_id")}})
    faults = []
    for row in sorted(rows, key=lambda row: (row["file"] or "", row["position"] or 0)):
        detail = row["detail"]
        if not detail.startswith(("line ", "record ", "row ")):
            detail = f"{_where(units, row['file'], row['position'], row['record_id'])}: {detail}"
        faults.append({"file": row["file"], "reason": row["reason"], "detail": detail})
    return faults


def _notes_on_files(refs: Any, without_candidates: Counter[str]) -> list[dict[str, str]]:
    from quit.sources.csv import column_notes
    from quit.sources.notes import key_notes

    notes = []
    for ref in refs:
        if ref.kind == "csv" or (ref.kind == "jsonl" and ref.path.suffix.lower() != ".parquet"):
            remarks = (column_notes if ref.kind == "csv" else key_notes)(ref.path)
            notes += [{"file": ref.path.name, "detail": remark} for remark in remarks]
    for file, count in (+without_candidates).items():
        pool = "without candidates (plausible wrong answers): the pool of all answers replaces them."
        notes.append({"file": file, "detail": f"{count:,} {pool}"})
    return notes


def _unit(ref: Any) -> tuple[str, int]:
    """Return what a position counts, and the number of the first for people: lines and a table's rows from 1."""
    from quit.sources.files import is_array

    if ref.kind == "csv":
        return "row", 1
    if ref.kind != "jsonl":
        return "record", 0
    if ref.path.suffix.lower() == ".parquet":
        return "row", 0
    return ("record", 0) if is_array(ref.path) else ("line", 1)


def _where(units: dict[str, tuple[str, int]], file: str | None, position: int | None, record_id: str | None) -> str:
    unit, first = units.get(Path(file or "").name.partition("#")[0], ("record", 0))
    number = (position or 0) + first
    return f"{unit} {number} ({record_id})" if record_id else f"{unit} {number}"
