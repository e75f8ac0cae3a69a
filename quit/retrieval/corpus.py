"""A corpus: documents of JSONL files, also in gzip, or of Parquet. Only places are kept in memory; texts are read again
when they are asked for."""

from __future__ import annotations

import hashlib
import json
import shutil
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quit.common.opening import GZIP, PACKED, PARQUET, ZSTD, begins_with, open_bytes
from quit.errors import InputError
from quit.retrieval.records import STAGE, CorpusRecord, RawDocument, clean, clean_id, whole
from quit.sources.drafts import Item
from quit.sources.fields import quote
from quit.sources.files import plain_name
from quit.sources.items import is_array
from quit.sources.lines import objects
from quit.sources.records import Reject

_IDS = ("id", "_id", "doc_id")
_TEXTS = ("text", "contents")
ENDINGS = (".jsonl", *(f".jsonl{ending}" for ending in PACKED), ".parquet")
_EXPECTED = "JSON Lines of {id, text, title?}"


class Corpus:
    """The documents of a file, or of a folder: its ``corpus.jsonl``, else all of its ``*.jsonl`` by name; or the same
    with another of :data:`ENDINGS`, which are unpacked to a temporary folder.

    A line or row is {id | _id | doc_id, text | contents, title?}. ``text`` (BEIR) is preceded by the title;
    ``contents`` (Pyserini, our releases) is complete in itself. Texts are NFC with single spaces. Of equal texts the
    first is kept; of documents with one id and different texts too, the other is a reject, as is a document without id
    or without title and text. Raises :class:`InputError` for a file that cannot be read, a line that is not a JSON
    object, and a corpus without a usable document. Implements :class:`quit.retrieval.protocols.Documents`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = TemporaryDirectory()  # removed with this object
        self._files = [_unpacked(file, Path(self._folder.name) / str(n)) for n, file in enumerate(corpus_files(path))]
        self._file, self._offset = array("H"), array("Q")
        self.rejects: list[Reject] = []
        texts: set[bytes] = set()
        for line in _lines(path, self._files):
            if line.fault:
                reason, detail = line.fault
                reason = "missing_field" if reason == "no_text" else reason
                name = plain_name(self._files[line.file].name)
                where = (name, line.item.position, line.record_id)
                self.rejects.append(Reject("describe", "document", reason, detail, "corpus", *where))
            elif (content := _digest(whole(line.title, line.text))) not in texts:
                texts.add(content)
                self._file.append(line.file)
                self._offset.append(line.item.offset)

    @cached_property
    def identity(self) -> str:
        """Changes with any byte of the files."""
        return f"jsonl@{corpus_checksum(self.path)}"

    def __len__(self) -> int:
        return len(self._file)

    def __getitem__(self, row: int) -> str:
        """Return the text of a document (with its title), read from its file."""
        return self.texts([row])[0]

    def __iter__(self) -> Iterator[str]:
        """Yield the texts in order, one at a time."""
        return (whole(title, text) for _, title, text in self._documents(range(len(self))))

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' ids, read from their files."""
        return [str(identity) for identity, _, _ in self._documents(rows)]

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' texts (with their titles), read from their files."""
        return [whole(title, text) for _, title, text in self._documents(rows)]

    def _documents(self, rows: Sequence[int]) -> Iterator[tuple[Any, str, str]]:
        for number, rows_of_file in groupby(rows, self._file.__getitem__):
            with self._files[number].open("rb") as file:
                for row in rows_of_file:
                    file.seek(self._offset[row])
                    yield _fields(json.loads(file.readline()))


def one_of(folder: Path, stem: str) -> Path | None:
    """Return the file of a stem in a folder: JSON Lines, plain or in gzip, or Parquet; None where there is none."""
    return next((path for ending in ENDINGS if (path := folder / f"{stem}{ending}").is_file()), None)


def corpus_files(path: Path) -> list[Path]:
    """Return the files of a corpus. Raises :class:`InputError` when there are none."""
    if path.is_dir():
        single = one_of(path, "corpus")
        files = [single] if single else sorted(file for ending in ENDINGS for file in path.glob(f"*{ending}"))
    else:
        files = [path] if path.is_file() else []
    if not files:
        raise InputError(
            f"There is no corpus {path}. Name a file ({', '.join(ENDINGS)}), or a folder with corpus.jsonl or others."
        )
    return files


def _unpacked(path: Path, folder: Path) -> Path:
    """Return a file of lines whose places can be kept: the file itself, or a copy of the same name in ``folder``."""
    with _reading(path):
        of_rows = begins_with(path, PARQUET) or is_array(path)
        if not (of_rows or begins_with(path, GZIP, ZSTD)):
            return path
        folder.mkdir()
        with (folder / path.name).open("wb") as copy, open_bytes(path) as file:
            if of_rows:
                copy.writelines(json.dumps(row, default=str).encode() + b"\n" for _, row in objects(path, _EXPECTED))
            else:
                shutil.copyfileobj(file, copy)
    return folder / path.name


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot read the corpus {path}: {error.strerror or error}.") from error


def corpus_checksum(path: Path) -> str:
    """Return what a corpus holds as 16 hexadecimal digits: the bytes of its files, not their names.

    Raises :class:`InputError` for a file that cannot be read.
    """
    return checksum_of(corpus_files(path))


def checksum_of(files: Sequence[Path]) -> str:
    """Return what some files hold as 16 hexadecimal digits. Raises :class:`InputError` for one that cannot be read."""
    digest = hashlib.sha256()
    for file in files:
        with _reading(file), file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def read(path: Path, source: str = "jsonl") -> Iterator[CorpusRecord]:
    """Yield one record per line of a JSONL corpus (see :class:`Corpus`), for ``quit corpus build``. ``source``: kind.

    A document without id, one without title and text, and one whose id an earlier document has with another text are
    rejects. Raises :class:`InputError` as :class:`Corpus` does.
    """
    files = corpus_files(path)
    for line in _lines(path, files):
        name, position, identity = plain_name(files[line.file].name), line.item.position, line.record_id or ""
        if line.fault:
            detail = f"{line.item.where}: {line.fault[1]}"
            reject = Reject(STAGE, "document", line.fault[0], detail, source, name, position, line.record_id)
            yield CorpusRecord(source, name, position, identity, rejects=(reject,))
        else:
            yield CorpusRecord(source, name, position, identity, (RawDocument(line.title, line.text, ""),))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a corpus: number of its file, what was read there, and what is wrong (reason, detail)."""

    file: int
    item: Item
    record_id: str | None
    title: str
    text: str
    fault: tuple[str, str] | None


def _lines(path: Path, files: Sequence[Path]) -> Iterator[_Line]:
    """Yield the lines of a corpus from its files. Raises :class:`InputError` for what cannot be read, at the end also
    where no line was usable."""
    contents: dict[str, bytes] = {}
    first = ""
    filled = ((number, file) for number, file in enumerate(files) if file.stat().st_size)
    for number, (item, row) in ((number, each) for number, file in filled for each in objects(file, _EXPECTED)):
        identity, title, text = _fields(row)
        content = _digest(json.dumps([title, text]))
        fault = None
        if not isinstance(identity, str | int) or identity == "":
            fault = "missing_field", f"the document has no id: one of {', '.join(_IDS)}"
        elif not title and not text:
            fault = "no_text", f"the document {quote(str(identity))} has no text ({', '.join(_TEXTS)}) and no title"
        elif contents.setdefault(str(identity), content) != content:
            detail = f"an earlier document has the id {quote(str(identity))} and another text; that one is kept"
            fault = "duplicate_id", detail
        if fault and not first:
            first = f" ({item.where} of {files[number].name}: {fault[1]})"
        yield _Line(number, item, None if identity is None else str(identity), title, text, fault)
    if not contents:
        raise InputError(f"The corpus {path} holds no usable document{first}. A line is {{id, text, title?}}.")


def _fields(row: dict[str, Any]) -> tuple[Any, str, str]:
    """Return id (None where there is none), title and text of a row, cleaned, empty where there is none."""
    identity = next((row[key] for key in _IDS if row.get(key) is not None), None)
    texts = [key for key in _TEXTS if isinstance(row.get(key), str)]
    key = next((key for key in texts if row[key].strip()), texts[0] if texts else None)
    title = row.get("title") if key == "text" else None
    identity = clean_id(identity) if isinstance(identity, str) else identity
    return identity, clean(title) if isinstance(title, str) else "", clean(row[key]) if key else ""


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=12).digest()
