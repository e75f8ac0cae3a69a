"""A run over questions: one trace per question on disk, each made once; the figures follow from the traces."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from quit.common.files import read_json, remove_leftovers, write_json, write_lines, writing
from quit.common.progress import advance
from quit.errors import InputError, WorkspaceError
from quit.systems.experiment import write_rows
from quit.systems.sunar.queries import Query
from quit.systems.sunar.scores import scores
from quit.systems.sunar.system import SunarSystem

VERSION = 4
"""Version of what traces hold; rises when the same run would give others."""
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Run:
    """The folder of one variant's run: ``run.json`` (what it depends on), ``traces/``, ``run.trec``, ``answers.jsonl``,
    ``scores.json``.

    ``described``: what decides the traces, settings and identities. Raises :class:`WorkspaceError` where the folder
    holds another run, for traces of two systems must not be mixed.
    """

    def __init__(self, path: Path, described: dict[str, Any]) -> None:
        self.path = path
        described = {"version": VERSION, **described}
        earlier = _read(path / "run.json") if (path / "run.json").is_file() else None
        if earlier is not None and earlier != described:
            raise WorkspaceError(
                f"{path} holds a run that differs in {_differences(earlier, described)}. "
                "Give another --out, or delete that folder."
            )
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        if earlier is None:
            write_json(path / "run.json", described)

    def missing(self, queries: Sequence[Query]) -> list[Query]:
        """Return the questions that have no trace yet."""
        return [query for query in queries if not trace_path(self.path, query.query_id).is_file()]

    def work(self, system: SunarSystem, queries: Sequence[Query], workers: int) -> None:
        """Answer the questions without a trace; a kill loses those in flight."""

        def answer(query: Query) -> None:
            write_json(trace_path(self.path, query.query_id), system.answer(query))

        with ThreadPoolExecutor(workers) as pool:
            running = [pool.submit(answer, query) for query in self.missing(queries)]
            try:
                for each in as_completed(running):
                    each.result()
                    advance(f"{self.path.name}: questions", total=len(running))
            finally:
                for each in running:
                    each.cancel()

    def finish(self, queries: Sequence[Query], name: str) -> dict[str, Any]:
        """Write ``run.trec``, ``answers.jsonl`` and ``scores.json`` of these questions; return the figures."""
        traces = [read_trace(self.path, query.query_id) for query in queries]
        lines = (
            f"{trace['query_id']} Q0 {document} {rank} {len(trace['evidence']) - rank + 1} {name}\n"
            for trace in traces
            for rank, document in enumerate(trace["evidence"], start=1)
        )
        write_lines(self.path / "run.trec", lines)
        answers = ({key: trace[key] for key in ("query_id", "prediction")} for trace in traces)
        write_rows(self.path / "answers.jsonl", answers)
        figures = scores(traces, queries, by_substring(self.path))
        write_json(self.path / "scores.json", figures)
        return figures


def by_substring(path: Path) -> bool:
    """Return whether cover-EM of the run in a folder counts an answer within a word."""
    return _read(path / "run.json").get("settings", {}).get("cover_em") == "substring"


def read_trace(path: Path, query_id: str) -> dict[str, Any]:
    """Return a trace of the run in a folder. Raises :class:`InputError` where there is none, or it cannot be read."""
    file = trace_path(path, query_id)
    if not file.is_file():
        raise InputError(f"{path} has no trace of the question {query_id!r}.{_known(path)}")
    return _read(file)


def trace_ids(path: Path) -> list[str]:
    """Return the sorted ids of the answered questions. Raises :class:`InputError` where there is no run."""
    if not (path / "run.json").is_file():
        raise InputError(f"{path} holds no run. Make one: quit sunar run")
    return sorted(_read(file)["query_id"] for file in (path / "traces").glob("*.json"))


def runs_in(path: Path) -> list[Path]:
    """Return the folders of runs: the given one, or those right below it."""
    if (path / "run.json").is_file():
        return [path]
    return sorted(each.parent for each in path.glob("*/run.json"))


def trace_path(path: Path, query_id: str) -> Path:
    """Return where a run keeps a question's trace."""
    # Ids that are no safe file names (or too long) go by their hash, which a safe name cannot look like.
    safe = _SAFE.fullmatch(query_id) and not query_id.startswith("id-")
    name = query_id if safe else f"id-{hashlib.sha256(query_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return path / "traces" / f"{name}.json"


def _known(path: Path) -> str:
    files = sorted((path / "traces").glob("*.json")) if (path / "traces").is_dir() else []
    some = ", ".join(file.stem for file in files[:3])
    return f" It has {len(files)}: {some}{', ...' if len(files) > 3 else ''}" if files else " It has none yet."


def _differences(earlier: dict[str, Any], described: dict[str, Any]) -> str:
    """Return which settings differ, by name and value; where something else does too, what that is."""
    changed = sorted(key for key in {*earlier, *described} if earlier.get(key) != described.get(key))
    if changed == ["settings"]:
        before, after = earlier["settings"], described["settings"]
        keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        changed = [f"sunar.{key} ({before.get(key)!r}, now {after.get(key)!r})" for key in keys]
    return ", ".join(changed)


def _read(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"{path} cannot be read as a JSON object. Delete it and run the same command again.")
    return value
