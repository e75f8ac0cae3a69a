"""A Hugging Face dataset on disk with the documented schema's columns. Nothing is fetched and no code is run."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit.common.files import files_to_read
from quit.errors import InputError, MissingDependency
from quit.sources import drafts, fields, jsonl
from quit.sources.drafts import DraftRecord, Item
from quit.sources.fields import quote
from quit.sources.files import check_file
from quit.sources.records import SourceRecord

EXPECTED = (
    "a folder that datasets.load_from_disk or load_dataset loads, with id, question, answers and hints (or passages)"
)
_FRONT_MATTER = re.compile(r"\A\ufeff?---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_FORMATS = ("parquet", "json", "arrow")
"""Formats that hold rows of text and numbers; others (archives, images) are no questions, and some can run code."""
_DAMAGED = (OSError, ValueError, OverflowError, TypeError, KeyError, AttributeError, RuntimeError, StopIteration)
"""Errors of ``datasets``, beside its own, for files with unexpected content, such as dates after the year 9999; the
last one for an empty file of JSON Lines."""
_CARDS = ("README.md", ".huggingface.yaml")


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the records of all splits of a dataset folder; where there are several, each is ``FOLDER#SPLIT``. A
    position counts the rows of a split over all its files.

    Raises ``InputError`` for a folder that is no dataset, has several configurations, points outside itself or holds no
    usable record, and ``MissingDependency`` where the package ``datasets`` is not installed.
    """
    return drafts.records(_items(path), "huggingface", parse, path, EXPECTED)


def parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    """Return the checked parts of one row. Raises ``BadRecord``."""
    lists = {name: record.get(name) for name in ("hints", "passages")}
    columns = {name: fields.transposed(value) for name, value in lists.items() if isinstance(value, dict)}
    return jsonl.parse(record | columns, key)


def _items(path: Path) -> Iterator[Item]:
    try:
        import datasets
    except ImportError:
        raise MissingDependency("A Hugging Face dataset needs the package datasets: pip install datasets") from None
    check_file(path, EXPECTED, folder=True)
    try:
        splits = _splits(path, datasets)
        for split, rows in splits.items():
            file = path.name if len(splits) == 1 else f"{path.name}#{split}"
            for position, row in enumerate(rows):
                yield Item(row, position, file, f"split {split}, row {position + 1}")
    except (*_DAMAGED, pa.ArrowException, datasets.exceptions.DatasetsError) as error:
        reason = " ".join(str(error).split())[:300] or "a file is empty"
        raise InputError(
            f"{path} could not be read as a dataset ({reason}); expected {EXPECTED}. Files can be "
            "named one by one too: jsonl:FILE."
        ) from error


def _splits(path: Path, datasets: Any) -> dict[str, Any]:
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        dataset = datasets.load_from_disk(str(path))
        _check_inside(path, dataset)
    else:
        _check_local(path)
        with tempfile.TemporaryDirectory() as cache:
            builder = datasets.load_dataset_builder(str(path), cache_dir=cache)
            if (kind := type(builder).__module__.rpartition(".")[2]) not in _FORMATS:
                raise InputError(f"{path} is a dataset of kind {kind!r}; expected {' or '.join(_FORMATS)} files.")
            if kind == "parquet":
                parts = (part for part in files_to_read(path) if part.suffix == ".parquet")
                jsonl.refuse_nulls(path, parts, EXPECTED)
            # Streaming reads the files where they are; otherwise a copy of them would be left in the user's cache.
            dataset = builder.as_streaming_dataset()
    if not isinstance(dataset, dict):
        return {str(dataset.split or "all"): dataset}
    return {str(split): rows for split, rows in dataset.items()}


def _check_inside(path: Path, dataset: Any) -> None:
    """Raise ``InputError`` where a saved dataset names files outside its folder: their changes would go unnoticed."""
    folder = os.path.abspath(path)
    for rows in dataset.values() if isinstance(dataset, dict) else [dataset]:
        for entry in rows.cache_files:
            if os.path.commonpath([folder, os.path.abspath(entry["filename"])]) != folder:
                raise InputError(f"{path} names a data file outside the folder ({quote(entry['filename'])}).")


def _check_local(path: Path) -> None:
    """Raise ``InputError`` where the dataset's card has several configurations or names files outside the folder."""
    import yaml

    for name in _CARDS:
        card = path / name
        if not card.is_file():
            continue
        text = card.read_text(encoding="utf-8", errors="replace")
        front_matter = _FRONT_MATTER.match(text)
        if front_matter:
            text = front_matter[1]
        elif name.endswith(".md"):
            text = ""
        try:
            about = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"{card} has no readable YAML header ({' '.join(str(error).split())[:200]}).") from None
        configs = about.get("configs") if isinstance(about, dict) else None
        configs = [config for config in configs if isinstance(config, dict)] if isinstance(configs, list) else []
        if len({config.get("config_name", "default") for config in configs}) > 1:
            names = ", ".join(str(config.get("config_name", "default")) for config in configs)
            raise InputError(f"{path} holds several configurations ({names}); give the folder of the one to read.")
        for file in _strings([[config.get("data_files"), config.get("data_dir")] for config in configs]):
            if "://" in file or file.startswith(("/", "~")) or ".." in Path(file).parts:
                raise InputError(
                    f"{card} names data files outside the folder ({quote(file)}); only local datasets are read."
                )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
