"""The folder of a run over questions: one trace per question, each made once, and the files that follow from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from quit.common.files import read_json, remove_leftovers, write_json, write_lines, writing
from quit.common.ids import content_hash
from quit.common.manifests import as_written, with_checksum
from quit.common.progress import advance, note
from quit.common.safe import safe_id
from quit.errors import InputError, WorkspaceError
from quit.qa.experiment import write_rows
from quit.qa.sunar.queries import Query
from quit.qa.sunar.scores import scores
from quit.qa.sunar.system import SunarSystem
from quit.qa.sunar.trace import Trace
from quit.retrieval.trec import run_line
from quit.text.words import first_names

VERSION = 6
"""Version of what traces hold; rises when the same run would give others."""
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Run:
    """The folder of one variant's run: ``run.json`` (what it depends on), ``traces/``, ``run.trec``, ``answers.jsonl``,
    ``scores.json``.

    ``description``: what decides the traces, settings and identities. Raises :class:`WorkspaceError` where the folder
    holds another run, for traces of two systems must not be mixed.
    """

    def __init__(self, path: Path, description: dict[str, Any]) -> None:
        self.path = path
        description = {"version": VERSION, **description}
        self._run_hash = content_hash(description)
        earlier = _read_object(path / "run.json") if (path / "run.json").is_file() else None
        if earlier is not None and earlier != description:
            raise WorkspaceError(
                f"{path} holds a run that differs in {_differences(earlier, description)}. "
                "Give another --out, or delete that folder."
            )
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        if earlier is None:
            write_json(path / "run.json", description)

    def missing(self, queries: Sequence[Query]) -> list[Query]:
        """Return the questions that have no trace yet, or one of an earlier wording, answers or relevant documents, or
        one that another run wrote or that was altered since."""

        def has_trace(query: Query) -> bool:
            trace = as_written(read_json(trace_path(self.path, query.query_id))) or {}
            return trace.items() >= self._hashes(query).items()

        return [query for query in queries if not has_trace(query)]

    def _hashes(self, query: Query) -> dict[str, str]:
        return {"query": content_hash(asdict(query)), "run": self._run_hash}

    def work(self, system: SunarSystem, queries: Sequence[Query], workers: int) -> None:
        """Answer the questions without a trace; a kill loses those in flight."""

        def answer(query: Query) -> None:
            trace = with_checksum({**system.answer(query), **self._hashes(query)})
            write_json(trace_path(self.path, query.query_id), trace)

        missing = self.missing(queries)
        note(f"{self.path.name}: {len(missing)} of {len(queries)} questions to answer")
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(answer, query) for query in missing]
            try:
                for each in as_completed(futures):
                    each.result()
                    advance(f"{self.path.name}: questions", total=len(futures))
            finally:
                for each in futures:
                    each.cancel()

    def finish(self, queries: Sequence[Query], name: str) -> dict[str, Any]:
        """Write ``run.trec``, ``answers.jsonl`` and ``scores.json`` of these questions; return the figures."""
        traces = [read_trace(self.path, query.query_id) for query in queries]
        lines = (
            run_line(safe_id(trace["query_id"]), document, rank, len(trace["evidence"]) - rank + 1, name)
            for trace in traces
            for rank, document in enumerate(trace["evidence"], start=1)
        )
        write_lines(self.path / "run.trec", lines)
        answers = ({"query_id": trace["query_id"], "prediction": trace["prediction"]} for trace in traces)
        write_rows(self.path / "answers.jsonl", answers)
        figures = scores(traces, by_substring(self.path))
        write_json(self.path / "scores.json", figures)
        return figures


def by_substring(path: Path) -> bool:
    """Return whether cover-EM of the run in a folder counts an answer within a word."""
    return _read_object(path / "run.json").get("settings", {}).get("cover_em") == "substring"


def read_trace(path: Path, query_id: str) -> Trace:
    """Return a trace of the run in a folder. Raises :class:`InputError` where there is no run or trace, the run is of
    another version, or the trace is not as it was written."""
    run_hash, file = content_hash(_checked_run(path)), trace_path(path, query_id)
    if not file.is_file():
        raise InputError(f"{path} has no trace of the question {query_id!r}.{_traces_note(path)}")
    if (trace := as_written(read_json(file))) is None:
        raise InputError(f"{file} was altered since it was written. Run quit sunar run again: it makes the trace anew.")
    if trace.get("run") != run_hash:
        raise InputError(f"{file} is of an earlier run in {path}, not of this one.{_traces_note(path)}")
    return cast(Trace, trace)


def trace_ids(path: Path) -> list[str]:
    """Return the sorted ids of the questions that this run has answered: its ``run.json`` may have been deleted, and
    another run begun in the folder. Raises :class:`InputError` where there is no run, or one of another version."""
    run_hash = content_hash(_checked_run(path))
    traces = (_read_object(file) for file in (path / "traces").glob("*.json"))
    return sorted(trace["query_id"] for trace in traces if trace.get("run") == run_hash)


def _checked_run(path: Path) -> dict[str, Any]:
    """Return what ``run.json`` says, after checking that this version of the program can read the traces."""
    if not (path / "run.json").is_file():
        raise InputError(f"{path} holds no run. Make one: quit sunar run")
    description = _read_object(path / "run.json")
    if (version := description.get("version")) != VERSION:
        raise InputError(
            f"{path} holds a run of version {version}, and this program reads version {VERSION}. Run quit sunar run "
            "again with another --out."
        )
    return description


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


def _traces_note(path: Path) -> str:
    names = sorted(file.stem for file in (path / "traces").glob("*.json"))
    return f" It has {len(names)}: {first_names(names)}" if names else " It has none yet."


def _differences(earlier: dict[str, Any], description: dict[str, Any]) -> str:
    """Return which settings differ, by name and value; where something else does too, what that is."""
    differences = sorted(key for key in {*earlier, *description} if earlier.get(key) != description.get(key))
    if differences == ["settings"]:
        before, after = earlier["settings"], description["settings"]
        keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        differences = [f"sunar.{key} ({before.get(key)!r}, now {after.get(key)!r})" for key in keys]
    return ", ".join(differences)


def _read_object(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"{path} cannot be read as a JSON object. Delete it and run the same command again.")
    return value
