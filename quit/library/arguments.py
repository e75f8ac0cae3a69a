"""What callers may write in place of files and overrides: records, data frames, mappings of settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from quit.errors import InputError
from quit.settings import flatten

if TYPE_CHECKING:
    import datasets

_Text = TypeVar("_Text", bound="str | Path")
STARTER = Path(__file__).parents[1] / "starter" / "questions.jsonl"


class DataFrame(Protocol):
    """A data frame of pandas or polars, or an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table: TypeAlias = "DataFrame | datasets.Dataset"
Records: TypeAlias = "Sequence[Mapping[str, Any]] | Table"
Sources: TypeAlias = "str | Path | Sequence[str | Path] | Mapping[str, Any] | Records"
"""``"starter"``, a file, ``"KIND:PATH"``, or a list of these; records."""
Split = Literal["train", "dev", "test"]
Runner = Literal["threads", "ray"]
Format = Literal[
    "huggingface", "release-json", "paper-index", "csv", "beir", "trec", "pyserini", "mteb", "tevatron",
    "colbert", "monot5",
]  # fmt: skip
Overrides = Mapping[str, Any] | Sequence[str]
"""``{"judge.threshold": 0.6}``, ``{"judge": {"threshold": 0.6}}`` or ``["judge.threshold=0.6"]``; a text alone is
a list of one."""
WriteFile = Callable[[str, bytes], Path]
"""Writes a file of that name and returns its path."""


def as_list(values: _Text | Iterable[_Text]) -> list[_Text]:
    """Return texts or paths as a list; one is a list of one."""
    return [values] if isinstance(values, (str, Path)) else [*values]


def as_texts(values: Any, name: str) -> list[str]:
    """Return texts as a list, also those of Arrow, NumPy and pandas; one is a list of one.

    ``name``: of the argument. Raises ``InputError`` for anything else.
    """
    if not isinstance(values, Iterable):
        raise InputError(f"{name} is {values!r}; expected a text.")
    texts = values.to_pylist() if isinstance(values, pa.Array | pa.ChunkedArray) else as_list(values)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}, entry {position}, is {text!r}; expected a text.")
    return texts


def override_texts(settings: Overrides | None) -> list[str]:
    """Return settings as ``key=value``, the value in TOML; those that are None are left out."""
    if not isinstance(settings, Mapping):
        return as_list(settings or ())
    values = [(key, value) for key, value in flatten(settings) if value is not None]
    return [f"{key}={json.dumps(value, ensure_ascii=False, default=_plain)}" for key, value in values]


def source_texts(sources: Sources, put: WriteFile) -> list[str]:
    """Return sources as ``KIND:PATH``. ``put`` writes records, under a name that follows from their content.

    ``sources``: one or a list of texts and paths, a list of records, or a table (pandas, polars, Arrow,
    ``datasets.Dataset``). Raises ``InputError`` for anything else.
    """
    if isinstance(sources, list | tuple) and not sources:
        raise InputError("The list of sources is empty. Give a source, or records.")
    if isinstance(sources, list | tuple) and not any(isinstance(source, Mapping) for source in sources):
        return [_source_text(source, put) for source in sources]
    if isinstance(sources, list | tuple) and any(isinstance(source, str | Path) for source in sources):
        raise InputError("The list has records and names of sources. Give one kind, or write the records to a file.")
    return [_source_text(sources, put)]


def named_source(source: str | Path) -> str:
    """Return a source by its name: of ``starter``, the file of the bundled collection."""
    return f"jsonl:{STARTER}" if source == "starter" else str(source)


def _source_text(source: Any, put: WriteFile) -> str:
    if isinstance(source, str | Path):
        return named_source(source)
    lines = [json.dumps(row, ensure_ascii=False, default=_plain) + "\n" for row in _rows(source)]
    if not lines:
        raise InputError("There are no records. Give at least one.")
    data = "".join(lines).encode(errors="backslashreplace")  # a lone surrogate becomes its JSON escape
    return f"jsonl:{put(f'records-{hashlib.sha256(data).hexdigest()[:16]}.jsonl', data)}"


def _rows(source: Any) -> list[Any]:
    if isinstance(source, list | tuple):
        return list(source)
    if isinstance(source, Mapping):
        return [source]
    try:
        return as_table(source).to_pylist()
    except InputError as error:
        raise InputError(
            f"{error} Name 'starter', a file or KIND:PATH, or give records: a list of dictionaries, a data frame or a "
            "datasets.Dataset."
        ) from None


def as_table(frame: Table) -> pa.Table:
    """Return a data frame or ``datasets.Dataset`` as Arrow. Raises ``InputError`` for anything else."""
    try:
        # A dataset's own table ignores which of its rows are selected.
        return pa.table(frame.with_format("arrow")[:] if hasattr(frame, "with_format") else frame)
    except (TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise InputError(f"A value of type {type(frame).__name__} cannot be read as a table ({error}).") from None


def _plain(value: Any) -> Any:
    """Return what JSON writes for a value. Bytes, sets and generators become an object, which is refused where a text
    or a list is expected."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, datetime) and value.time() == time():  # how a data frame holds a day
        return str(value.date())
    if type(value).__name__ in ("NAType", "NaTType"):  # what pandas has for missing values
        return None
    return {type(value).__name__: str(value)} if isinstance(value, Iterable) else str(value)
