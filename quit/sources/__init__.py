"""Sources: readers that turn a raw file into records and rejects.

``SOURCES`` names them all; ``parse_source("triviahg:FILE")`` is how a user names one. A reader repairs text and checks
structure; pooling and the demand for enough hints come later, in :mod:`quit.stages.collect`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any

from quit.common.checksums import FileMark, file_mark, known_checksum
from quit.common.files import files_to_read
from quit.common.opening import ending
from quit.errors import InputError, QuitError, SettingsError, check_known
from quit.sources.files import check_file, plain_name, read_text
from quit.sources.json_text import DECODER
from quit.sources.records import SourceRecord


@dataclass(frozen=True)
class Source:
    """One kind of source, read by the module of its name.

    ``licence`` and ``citation`` are those of the published data; a user's own file has none. ``passages``: whether its
    records may have passages in place of hints. ``marks``: fields that tell a JSON record of this kind from others.
    """

    name: str
    doc: str
    licence: str | None = None
    citation: str | None = None
    folder: bool = False
    passages: bool = False
    marks: frozenset[str] = frozenset()

    def read(self, path: Path) -> Iterator[SourceRecord]:
        """Yield a ``SourceRecord`` for each position of the file."""
        return self._module.read(path)

    @property
    def expected(self) -> str:
        """What the file should be, in words."""
        return self._module.EXPECTED

    @property
    def _module(self) -> Any:
        return import_module(f"quit.sources.{self.name}")


@dataclass(frozen=True)
class SourceRef:
    """A source as the user named it: its kind and its file or folder."""

    kind: str
    path: Path

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}"


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "triviahg",
            "TriviaHG JSON: machine-written hints with candidates, scores and convergence.",
            licence="MIT",
            citation="Mozafari, Jangra and Jatowt. TriviaHG: A Dataset for Automatic Hint Generation from Factoid "
            "Questions. SIGIR 2024. https://doi.org/10.1145/3626772.3657855",
            marks=frozenset({"Question", "Hints", "ExactAnswer"}),
        ),
        Source(
            "wikihint",
            "WikiHint JSON: five human hints per question, ranked by people.",
            licence="CC BY 4.0",
            citation="Mozafari, Gerhold and Jatowt. WikiHint: A Human-Annotated Dataset for Hint Ranking and "
            "Generation. SIGIR 2025.",
            marks=frozenset({"question", "answer", "hints"}),
        ),
        Source(
            "jsonl",
            "Your own questions: JSON Lines or Parquet of the documented schema.",
            passages=True,
            marks=frozenset({"question", "answers", "hints"}),
        ),
        Source("csv", "Your own questions from a spreadsheet: CSV.", passages=True),
        Source("huggingface", "A Hugging Face dataset folder with the same columns.", folder=True, passages=True),
        Source(
            "musique",
            "MuSiQue's official JSON Lines: a question's own paragraphs are its passages.",
            licence="CC BY 4.0",
            citation="Trivedi, Balasubramanian, Khot and Sabharwal. MuSiQue: Multihop Questions via Single-hop "
            "Question Composition. TACL 2022. https://doi.org/10.1162/tacl_a_00475",
            marks=frozenset({"question", "paragraphs", "question_decomposition"}),
            passages=True,
        ),
        Source("hinteval", "A dataset of the toolkit HintEval, stored as JSON.", marks=frozenset({"subsets"})),
    )
}

BARE = {".jsonl": "jsonl", ".parquet": "jsonl", ".csv": "csv", ".tsv": "csv"}
_SHEETS = (".xlsx", ".xls", ".ods")


def kind_of(path: Path) -> str:
    """Return the source kind whose fields the first record of a JSON or JSON Lines file has; "" if of none."""
    try:
        value, _ = DECODER.raw_decode(read_text(path, "JSON").lstrip())
    except (InputError, ValueError, RecursionError):
        return ""
    while isinstance(value, dict | list) and value:  # an array, ids or splits of records
        if isinstance(value, dict):
            kind = next((name for name, source in SOURCES.items() if source.marks and source.marks <= value.keys()), "")
            if kind and (kind != "wikihint" or isinstance(value["question"], dict)):
                return kind
            value = list(value.values())
        value = value[0]
    return ""


def split_source(text: str) -> tuple[str, str]:
    """Return kind and path of ``KIND:PATH``; a bare path is of the kind that its ending says, else of ""."""
    kind, colon, rest = text.partition(":")
    if colon and "/" not in kind:
        return kind, rest
    return BARE.get(ending(text), ""), text


def parse_source(text: str) -> SourceRef:
    """Return the source that ``KIND:PATH`` names; a bare path in ``.jsonl`` or ``.parquet`` is of kind ``jsonl``, one
    in ``.csv`` or ``.tsv`` of kind ``csv``.

    Raises ``SettingsError`` for an unknown or missing kind, ``InputError`` for a path that is missing, unreadable or
    empty.
    """
    kind, rest = split_source(text)
    if text.lower().endswith(_SHEETS):
        raise SettingsError(
            f"Source {text!r} is a spreadsheet, which no kind reads: save it as CSV (Excel: 'CSV UTF-8') and name that."
        )
    if not kind and not Path(text).expanduser().exists():
        raise InputError(
            f"{text} does not exist; expected a file ({', '.join(BARE)}) or KIND:PATH. Check the path (working folder: "
            f"{Path.cwd()})."
        )
    if not kind:
        what = "is a folder" if text and Path(text).expanduser().is_dir() else "names no kind"
        fitting = kind_of(Path(text).expanduser())
        meant = f"its fields are those of {fitting}: name it {fitting}:{text}" if fitting else ""
        meant = meant or f"write KIND:PATH with one of {', '.join(SOURCES)}."
        raise SettingsError(f"Source {text!r} {what}: {meant}")
    if kind == "run":
        raise SettingsError("A run is a source of quit build alone: quit build --source run:RUN --corpus C ...")
    check_known(kind, SOURCES, "kind of source")
    if not rest.strip():
        raise SettingsError(f"Source {text!r} names no path: write {kind}:PATH.")
    ref = SourceRef(kind, Path(rest).expanduser())
    _check(ref)
    return ref


def _check(ref: SourceRef) -> None:
    source = SOURCES[ref.kind]
    check_file(ref.path, source.expected, folder=source.folder)


def has_passages(ref: SourceRef) -> bool:
    """Return whether the first usable record of a source has passages in place of hints."""
    with suppress(QuitError):  # what cannot be read is for the build to say
        records = read_source(ref) if SOURCES[ref.kind].passages else ()
        return next((record.question.given for record in records if record.question), False)
    return False


def source_checksum(ref: SourceRef) -> str:
    """Return the SHA-256 of a file's content, or of a folder's relative names, sizes and contents in sorted order.

    Raises ``InputError`` for what cannot be read.
    """
    _check(ref)
    try:
        if ref.path.is_file():
            return known_checksum(ref.path)
        digest = hashlib.sha256()
        names = sorted(part.relative_to(ref.path).as_posix() for part in files_to_read(ref.path))
        for name in names:
            # The size in the header keeps a byte that moves from one file's end to the next one's name from going
            # unnoticed.
            digest.update(f"{name}\0{(ref.path / name).stat().st_size}\0".encode("utf-8", "surrogateescape"))
            with (ref.path / name).open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()
    except OSError as error:
        raise InputError(f"{ref.path} cannot be read ({error.strerror or error}).") from None


def read_source(ref: SourceRef) -> Iterator[SourceRecord]:
    """Yield the records of one source. Raises what its reader raises, and ``SettingsError`` for an unknown kind."""
    check_known(ref.kind, SOURCES, "kind of source")
    try:
        yield from SOURCES[ref.kind].read(ref.path)
    except InputError as error:
        if (kind := kind_of(ref.path)) in ("", ref.kind):
            raise
        raise InputError(f"{error} Its fields are those of {kind}: name it {kind}:{ref.path}") from None


def read_sources(refs: Sequence[SourceRef], planned: Sequence[str] | None = None) -> Iterator[SourceRecord]:
    """Yield the records of several sources in order.

    ``planned``: their checksums when the run was planned. Raises ``InputError`` where a source has another one now, or
    was written to while it was read.

    Records know their file by its name alone. Where two files of one kind share it (``a/test.json``, ``b/test.json``),
    as much of their folders is put before it as tells them apart, so that equal ids in them are not taken for a
    repetition in one file.
    """
    for ref, checksum in zip(refs, planned if planned is not None else repeat(None, len(refs)), strict=True):
        label = _label(ref, refs)
        marks = _marks(ref)
        if checksum is not None and source_checksum(ref) != checksum:
            raise _changed(ref)
        for record in read_source(ref):
            yield record if label == plain_name(ref.path.name) else _renamed(record, len(ref.path.name), label)
        if checksum is not None and _marks(ref) != marks:
            raise _changed(ref)


def _marks(ref: SourceRef) -> list[FileMark]:
    """Return what changes with every write to a source's files, even one that is taken back."""
    try:
        files = [ref.path] if ref.path.is_file() else sorted(files_to_read(ref.path))
        return [*map(file_mark, files)]
    except OSError as error:
        raise InputError(f"{ref.path} cannot be read ({error.strerror or error}).") from None


def _changed(ref: SourceRef) -> InputError:
    return InputError(
        f"{ref.path} has changed since this run was planned. Nothing of it was used: run the same command again."
    )


def _label(ref: SourceRef, refs: Sequence[SourceRef]) -> str:
    path = ref.path.absolute()
    others = {other.path.absolute() for other in refs if other.kind == ref.kind} - {path}
    depth = 1
    while depth < len(path.parts) and any(other.parts[-depth:] == path.parts[-depth:] for other in others):
        depth += 1
    return plain_name("/".join(path.parts[-depth:]))


def _renamed(record: SourceRecord, cut: int, label: str) -> SourceRecord:
    question = record.question and replace(record.question, file=label + record.question.file[cut:])
    rejects = tuple(replace(reject, file=label + (reject.file or "")[cut:]) for reject in record.rejects)
    return SourceRecord(question, rejects)
