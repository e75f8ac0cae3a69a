"""``quit check``: read sources and say what is wrong with them, before anything is built."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.options import JsonOption, NamedProfileOption, SetOption, print_json
from quit.common.progress import advance


def check(
    source: Annotated[list[str], typer.Argument(help="KIND:PATH, or a path that ends in .jsonl or .parquet.")],
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
    from quit.commands.console import working
    from quit.models.factory import Models
    from quit.settings import load
    from quit.sources import parse_source

    refs, settings = [parse_source(text) for text in source], load(profile, set_ or ()).settings
    with working("check"):
        findings = examine(refs, settings, None if no_models else Models(settings))
    if as_json:
        print_json(findings)
    else:
        for name, mark in (("faults", "left out"), ("notes", "note")):
            for row in findings[name][: limit or None]:
                typer.echo(
                    f"{row['file']}, {row['detail']}  ({mark}{': ' + row['reason'] if row.get('reason') else ''})"
                )
            if limit and len(findings[name]) > limit:
                typer.echo(f"... {len(findings[name]) - limit:,} more (--limit 0 shows all)")
        if findings["skipped"]:
            typer.echo(f"Skipped: {findings['skipped']}.")
        faults = len(findings["faults"])
        typer.echo(
            f"{findings['records']:,} records: {findings['questions']:,} usable questions with {findings['hints']:,} "
            "hints; " + (f"{faults:,} fault{'s' * (faults > 1)}" if faults else "no faults")
        )
    if findings["faults"]:
        raise typer.Exit(1)


def examine(refs: Any, settings: Any, models: Any = None) -> dict[str, Any]:
    """Return what the stages collect and filter make of sources: counts, ``faults`` and ``notes`` (``file``,
    ``reason``, ``detail``).

    ``models`` None: leaks are sought by rules alone, and ``skipped`` says so. Raises ``InputError`` where nothing can
    be collected, and what the readers raise.
    """
    from quit.sources import read_sources
    from quit.sources.notes import key_notes, notes
    from quit.stages.collect import collect
    from quit.stages.filter import filter_leaks

    wheres = {ref.path.name: _unit(ref) for ref in refs}
    odd: list[dict[str, str]] = []
    seen, bare = 0, Counter[str]()

    def watched() -> Any:
        nonlocal seen
        for record in read_sources(refs):
            seen += 1
            advance("records")
            if record.question:
                where = _where(wheres, record.question.file, record.question.position, record.question.record_id)
                odd.extend(
                    {"file": record.question.file, "detail": f"{where}: {note}"} for note in notes(record.question)
                )
                bare[record.question.file] += not record.question.candidates
            yield record

    tables = collect(watched(), duplicates=settings.collect.duplicates, min_hints=settings.convergence.hints)
    filtered = filter_leaks(
        tables["questions"],
        tables["hints"],
        models and models.equivalence,
        models and models.encoder,
        settings.leakage,
        settings.convergence.hints,
    )
    usable = filtered["usable_hints"]
    first = {row["question_id"]: row for row in reversed(tables["origins"].to_pylist())}
    origin = ("file", "position", "record_id")
    leaks = [
        {**row, **{name: first[row["question_id"]][name] for name in origin}} for row in filtered["rejects"].to_pylist()
    ]
    faults = []
    rows = tables["rejects"].to_pylist() + leaks
    for row in sorted(rows, key=lambda row: (row["file"] or "", row["position"] or 0)):
        detail = row["detail"]
        if not detail.startswith(("line ", "record ", "row ")):
            detail = f"{_where(wheres, row['file'], row['position'], row['record_id'])}: {detail}"
        faults.append({"file": row["file"], "reason": row["reason"], "detail": detail})
    for ref in refs:
        if ref.kind == "jsonl" and ref.path.suffix.lower() != ".parquet":
            odd.extend({"file": ref.path.name, "detail": remark} for remark in key_notes(ref.path))
    for file, count in bare.items():
        if count:
            notice = (
                f"{count:,} without candidates (plausible wrong answers): the pool of all answers stands in for them."
            )
            odd.append({"file": file, "detail": notice})
    return {
        "records": seen,
        "questions": len(usable["question_id"].unique()),
        "hints": len(usable),
        "skipped": "" if models else "leaks that only the models find (--no-models); a build may leave out more",
        "faults": faults,
        "notes": odd,
    }


def _unit(ref: Any) -> str:
    """Return what a position counts: lines (from 1 for people), rows or records."""
    from quit.sources.files import is_array

    if ref.kind != "jsonl":
        return "record"
    if ref.path.suffix.lower() == ".parquet":
        return "row"
    return "record" if is_array(ref.path) else "line"


def _where(units: dict[str, str], file: str | None, position: int | None, record_id: str | None) -> str:
    unit = units.get(Path(file or "").name.partition("#")[0], "record")
    number = (position or 0) + (unit == "line")
    return f"{unit} {number} ({record_id})" if record_id else f"{unit} {number}"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(check)
