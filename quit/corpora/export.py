"""A corpus in the layouts of other tools: BEIR, TREC, Pyserini. Streamed, document by document.

Each query set (``musique``, ``musique/sub-questions``) has topics and qrels of its own; the documents are shared.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quit.common.files import json_bytes, read_json, write_lines, writing
from quit.common.manifests import file_entry
from quit.common.safe import TEXT_RULE, json_text, one_line
from quit.errors import SettingsError, did_you_mean
from quit.retrieval.built import BuiltCorpus, query_set
from quit.retrieval.records import whole
from quit.version import __version__

MANIFEST = "manifest.json"
MADE_BY = "QUIT builder corpus export"
VERSION = 1
Row = dict[str, Any]


def export(corpus: BuiltCorpus, formats: Sequence[str], out: Path, *, overwrite: bool = False) -> list[Path]:
    """Write each format into ``out/<format>``; return the folders. The same corpus gives the same bytes.

    A folder appears whole or not at all; its manifest holds counts, licences and checksums. Raises
    :class:`SettingsError` for an unknown format, none at all, or a target that is not an earlier export (or is one,
    without ``overwrite``); :class:`quit.errors.WorkspaceError` when the disk refuses.
    """
    names = list(dict.fromkeys(formats))
    if not names:
        raise SettingsError(f"No export format was named. Known: {', '.join(FORMATS)}.")
    for name in names:
        if name not in FORMATS:
            raise SettingsError(f"Unknown export format {name!r}.{did_you_mean(name, list(FORMATS))}")
        _check_target(out / name, overwrite)
    return [_export_one(corpus, name, out) for name in names]


def _export_one(corpus: BuiltCorpus, name: str, out: Path) -> Path:
    target, temporary = out / name, out / f".{name}.partial"
    with writing(target):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        facts = FORMATS[name](corpus, temporary)
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        manifest = {
            "made_by": MADE_BY,
            "format": name,
            "format_version": VERSION,
            "program_version": __version__,
            "corpus": corpus.identity,
            "counts": corpus.manifest["counts"],
            "datasets": corpus.manifest["datasets"],
            "sources": corpus.manifest["sources"],
            "facts": facts,
            "files": {path.relative_to(temporary).as_posix(): file_entry(path) for path in files},
        }
        (temporary / MANIFEST).write_bytes(json_bytes(manifest))
        for path in [*files, temporary / MANIFEST]:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        shutil.rmtree(target, ignore_errors=True)
        os.replace(temporary, target)
    return target


def _check_target(target: Path, overwrite: bool) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    manifest = read_json(target / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("made_by") != MADE_BY:
        raise SettingsError(f"{target} exists and is not an earlier export: choose another --out, or remove it first.")
    if not overwrite:
        raise SettingsError(
            f"{target} already holds an export: choose another --out, or pass --overwrite to replace it."
        )


# What all formats read.


def _documents(corpus: BuiltCorpus) -> Iterator[tuple[str, str, str]]:
    """Yield (id, title, text)."""
    for batch in corpus.batches():
        columns = (batch.column(name).to_pylist() for name in ("doc_id", "title", "text"))
        yield from zip(*columns, strict=True)


def _sets(corpus: BuiltCorpus) -> dict[str, tuple[list[Row], list[Row]]]:
    """Return query set (a dash for the slash of its name) -> its queries and qrels, in the corpus's order."""
    sets: dict[str, tuple[list[Row], list[Row]]] = {name: ([], []) for name in corpus.manifest["datasets"]}
    queries = corpus.queries.to_pylist()
    set_of = {row["query_id"]: query_set(row) for row in queries}
    for column, rows in enumerate((queries, corpus.qrels.to_pylist())):
        for row in rows:
            sets[set_of[row["query_id"]]][column].append(row)
    return {name.replace("/", "-"): tables for name, tables in sets.items()}


def _beir(corpus: BuiltCorpus, folder: Path) -> Row:
    """``corpus.jsonl``, ``queries.jsonl``, ``qrels/<set>.tsv``."""

    def metadata(query: Row) -> Row:
        return {key: query[key] for key in ("answers", "parent_id", "hop", "kind") if query[key] not in (None, [])}

    documents = ({"_id": document_id, "title": title, "text": text} for document_id, title, text in _documents(corpus))
    write_lines(folder / "corpus.jsonl", (json_text(row) + "\n" for row in documents))
    sets = _sets(corpus)
    every = (query for queries, _ in sets.values() for query in queries)
    rows = ({"_id": query["query_id"], "text": query["text"], "metadata": metadata(query)} for query in every)
    write_lines(folder / "queries.jsonl", (json_text(row) + "\n" for row in rows))
    for name, (_, qrels) in sets.items():
        lines = (f"{row['query_id']}\t{row['doc_id']}\t{row['relevance']}\n" for row in qrels)
        write_lines(folder / "qrels" / f"{name}.tsv", ["query-id\tcorpus-id\tscore\n", *lines])
    return {}


def _topics(corpus: BuiltCorpus, folder: Path) -> Row:
    changed = 0
    for name, (queries, qrels) in _sets(corpus).items():
        changed += sum(one_line(row["text"]) != row["text"] for row in queries)
        topics = (f"{row['query_id']}\t{one_line(row['text'])}\n" for row in queries)
        write_lines(folder / f"topics.{name}.tsv", topics)
        relevant = (f"{row['query_id']} 0 {row['doc_id']} {row['relevance']}\n" for row in qrels)
        write_lines(folder / f"qrels.{name}.txt", relevant)
    return {"texts_changed": changed, "text_rule": TEXT_RULE}


def _trec(corpus: BuiltCorpus, folder: Path) -> Row:
    """``collection.tsv`` (id, title and text), ``topics.<set>.tsv``, ``qrels.<set>.txt``."""
    lines = (f"{document_id}\t{one_line(whole(title, text))}\n" for document_id, title, text in _documents(corpus))
    write_lines(folder / "collection.tsv", lines)
    return _topics(corpus, folder)


def _pyserini(corpus: BuiltCorpus, folder: Path) -> Row:
    """``corpus/docs.jsonl`` of {id, contents}: the title, a line end, the text; topics and qrels as TREC's."""
    rows = (
        {"id": document_id, "contents": f"{title}\n{text}" if title else text}
        for document_id, title, text in _documents(corpus)
    )
    write_lines(folder / "corpus" / "docs.jsonl", (json_text(row) + "\n" for row in rows))
    return _topics(corpus, folder)


FORMATS: dict[str, Callable[[BuiltCorpus, Path], Row]] = {
    "beir": _beir,
    "trec": _trec,
    "pyserini": _pyserini,
}
