"""A corpus: documents of JSONL files. Only places are kept in memory; texts are read again when they are asked for."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from quit.common.json_lines import json_object
from quit.corpora.records import STAGE, CorpusRecord, RawDocument, clean
from quit.errors import InputError
from quit.sources.records import Reject

_IDS = ("id", "_id", "doc_id")
_TEXTS = ("text", "contents")


class Corpus:
    """The documents of a JSONL file, or of a folder: its ``corpus.jsonl``, else all of its ``*.jsonl`` by name.

    A line is {id | _id | doc_id, text | contents, title?}. ``text`` (BEIR) is preceded by the title; ``contents``
    (Pyserini, our releases) is complete in itself. Texts are NFC with single spaces. Of equal texts the first is kept;
    of documents with one id and different texts too, the other is a reject, as is a document without id or text. Raises
    :class:`InputError` for a file that cannot be read, a line that is no JSON object, and a corpus without a usable
    document.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = corpus_files(path)
        self._file, self._offset = array("H"), array("Q")
        self.rejects: list[Reject] = []
        ids: dict[str, bytes] = {}
        texts: set[bytes] = set()
        for number, offset, where, row in _rows(self._files):
            document = _document(row)
            if isinstance(document, str):
                self.rejects.append(self._reject("missing_field", document, number, where, row))
                continue
            identity, text = document[0], _whole(*document[1:])
            content = hashlib.blake2b(text.encode(), digest_size=12).digest()
            if ids.setdefault(identity, content) != content:
                detail = f"an earlier document has the id {identity!r} and another text; that one is kept"
                self.rejects.append(self._reject("duplicate_id", detail, number, where, row))
            elif content not in texts:
                texts.add(content)
                self._file.append(number)
                self._offset.append(offset)
        if not self._file:
            detail = f" ({self.rejects[0].detail})" if self.rejects else ""
            raise InputError(f"The corpus {path} holds no usable document{detail}. A line is {{id, text, title?}}.")

    def __len__(self) -> int:
        return len(self._file)

    def __getitem__(self, row: int) -> str:
        """Return the text of a document (with its title), read from its file."""
        path = self._files[self._file[row]]
        with path.open("rb") as file:
            return self._text(file, row)

    def __iter__(self) -> Iterator[str]:
        """Yield the texts in order, one at a time."""
        at = -1
        file: BinaryIO | None = None
        try:
            for row, number in enumerate(self._file):
                if number != at:
                    if file:
                        file.close()
                    at, file = number, self._files[number].open("rb")
                assert file is not None  # no file has the number -1
                yield self._text(file, row)
        finally:
            if file:
                file.close()

    def _text(self, file: BinaryIO, row: int) -> str:
        file.seek(self._offset[row])
        document = _document(json.loads(file.readline()))
        assert not isinstance(document, str)
        return _whole(*document[1:])

    def _reject(self, reason: str, detail: str, number: int, position: int, row: dict[str, Any]) -> Reject:
        identity = next((str(row[key]) for key in _IDS if row.get(key) is not None), None)
        file = self._files[number].name
        return Reject("describe", "document", reason, detail, "corpus", file, position, identity)


def corpus_files(path: Path) -> list[Path]:
    """Return the files of a corpus. Raises :class:`InputError` when there are none."""
    if path.is_dir():
        whole = path / "corpus.jsonl"
        files = [whole] if whole.is_file() else sorted(path.glob("*.jsonl"))
    else:
        files = [path] if path.is_file() else []
    if not files:
        raise InputError(f"There is no corpus {path}. Name a JSONL file, or a folder with corpus.jsonl or *.jsonl.")
    return files


def corpus_checksum(path: Path) -> str:
    """Return what a corpus holds as 16 hexadecimal digits: the bytes of its files, not their names.

    Raises :class:`InputError` for a file that cannot be read.
    """
    digest = hashlib.sha256()
    for file in corpus_files(path):
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise InputError(f"Cannot read the corpus {file}: {error.strerror}.") from error
    return digest.hexdigest()[:16]


def read(path: Path) -> Iterator[CorpusRecord]:
    """Yield one record a line of a JSONL corpus (see :class:`Corpus`), for ``quit corpus build``.

    A document without id or text, and one whose id an earlier document has with another text, is a reject. Raises
    :class:`InputError` as :class:`Corpus` does.
    """
    files = corpus_files(path)
    ids: dict[str, bytes] = {}
    first = ""
    usable = False
    for number, _, position, row in _rows(files):
        document = _document(row)
        fault = (
            ("no_text" if "no text" in document else "missing_field", document) if isinstance(document, str) else None
        )
        if not isinstance(document, str):
            content = hashlib.blake2b(json.dumps(document[1:]).encode(), digest_size=12).digest()
            if ids.setdefault(document[0], content) != content:
                fault = (
                    "duplicate_id",
                    f"an earlier document has the id {document[0]!r} and another text; that one is kept",
                )
        name = files[number].name
        if fault or isinstance(document, str):
            assert fault is not None  # a text in place of a document is a fault
            first = first or f" (line {position + 1} of {name}: {fault[1]})"
            own = next((str(row[key]) for key in _IDS if row.get(key) is not None), None)
            reject = Reject(
                STAGE, "document", fault[0], f"line {position + 1}: {fault[1]}", "jsonl", name, position, own
            )
            yield CorpusRecord("jsonl", name, position, own or "", rejects=(reject,))
            continue
        usable = True
        identity, title, text = document
        yield CorpusRecord("jsonl", name, position, identity, (RawDocument(title, text, ""),))
    if not usable:
        raise InputError(f"The corpus {path} holds no usable document{first}. A line is {{id, text, title?}}.")


def _rows(files: Sequence[Path]) -> Iterator[tuple[int, int, int, dict[str, Any]]]:
    """Yield (file number, byte offset, line from 0, row)."""
    for number, path in enumerate(files):
        try:
            with path.open("rb") as file:
                offset = 0
                for position, line in enumerate(file):
                    if line.strip():
                        where = f"The corpus {path}, line {position + 1}"
                        yield number, offset, position, json_object(line, where)
                    offset += len(line)
        except OSError as error:
            raise InputError(f"Cannot read the corpus {path}: {error.strerror}.") from error


def _document(row: dict[str, Any]) -> tuple[str, str, str] | str:
    """Return (id, title, text) of a row, cleaned, or what it lacks."""
    identity = next((row[key] for key in _IDS if row.get(key) is not None), None)
    if not isinstance(identity, str | int) or identity == "":
        return "the document has no id: one of " + ", ".join(_IDS)
    key = next((key for key in _TEXTS if isinstance(row.get(key), str) and row[key].strip()), None)
    if key is None:
        return f"the document {identity!r} has no text: one of " + ", ".join(_TEXTS)
    title = row.get("title") if key == "text" else None
    return str(identity), clean(title) if isinstance(title, str) else "", clean(row[key])


def _whole(title: str, text: str) -> str:
    return f"{title} {text}" if title else text
