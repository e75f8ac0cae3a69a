"""Parquet files of exports: shards of a config's splits, and the row groups in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit.common.ids import draw
from quit.common.parquet import parquet_writer
from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.files import questions_at_once
from quit.export.files import ExportFolder

QRELS = pa.schema({"query-id": pa.string(), "corpus-id": pa.string(), "score": pa.int32()})
QUESTIONS_A_GROUP = 512  # on average, and twice as many at most: what is in memory at a time


class Shard(NamedTuple):
    """One Parquet file: its config and split, path within the folder, rows, size in bytes on disk and in memory."""

    config: str
    split: str
    path: str
    rows: int
    bytes: int
    loaded_bytes: int


def row_counts(shards: Iterable[Shard]) -> dict[str, dict[str, int]]:
    """Return config -> split -> its rows."""
    counts: dict[str, dict[str, int]] = {}
    for shard in shards:
        of_config = counts.setdefault(shard.config, {})
        of_config[shard.split] = of_config.get(shard.split, 0) + shard.rows
    return counts


def row_groups(dataset: Dataset, positions: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the positions of each row group's questions: :data:`QUESTIONS_A_GROUP` on average.

    Ids draw where groups end, so a question that comes or goes changes its own group's bytes only, and the hub, which
    keeps equal pieces of files once, is sent less of the next version. Parquet's own chunking
    (``use_content_defined_chunking``) finds no boundaries in passages, which repeat five texts, and adds 3% of bytes.
    """
    ends = [draw(dataset.ids[position], "row group") < 1 / QUESTIONS_A_GROUP for position in positions]
    for group in np.split(positions, np.flatnonzero(ends) + 1):
        max_questions = questions_at_once(2 * QUESTIONS_A_GROUP, len(dataset.ids), len(dataset.rows))
        for start in range(0, len(group), max_questions):
            yield group[start : start + max_questions]


def fully_relevant_qrels(qrels: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the rows of label 2; columns of ``QRELS``."""
    mask = pc.equal(qrels["score"], FULLY)
    return {name: column.filter(mask) for name, column in qrels.items()}


@dataclass
class ParquetShard:
    """A Parquet file of one config and split, if it gets rows; columns that ``schema`` does not name are left out.
    ``distinct``: columns whose texts begin like the text before, which is how they are encoded; the others have
    dictionary pages. ``number``, ``count``: which of how many files.

    The page index lets the hub's viewer read a page without its row group. Dictionary columns are written as plain
    strings that happen to be dictionary pages.

    The Arrow schema is not stored: it would tell readers to give dictionaries back, which ``datasets`` refuses.
    """

    folder: ExportFolder
    config: str
    split: str
    schema: pa.Schema
    distinct: Collection[str]
    number: int = 0
    count: int = 1
    rows: int = 0
    loaded_bytes: int = 0
    writer: pq.ParquetWriter | None = None

    @property
    def name(self) -> str:
        """The file's path within the folder."""
        return f"{self.config}/{self.split}-{self.number:05d}-of-{self.count:05d}.parquet"

    def __enter__(self) -> ParquetShard:
        return self

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Write one row group; none for no rows, since ``datasets`` loads no split without any."""
        table = pa.table({name: columns[name] for name in self.schema.names})
        if not len(table):
            return
        table = table.cast(_keep_dictionaries(self.schema, table.schema))
        if self.writer is None:
            self.writer = parquet_writer(
                self.folder.path(self.name),
                table.schema,
                compression_level=1,
                store_schema=False,
                use_dictionary=[name for name in self.schema.names if name not in self.distinct],
                column_encoding={name: "DELTA_BYTE_ARRAY" for name in self.schema.names if name in self.distinct},
                dictionary_pagesize_limit=8 * 2**20,
                write_page_index=True,
            )
        self.writer.write_table(table, row_group_size=len(table))
        self.rows += len(table)
        self.loaded_bytes += sum(_plain_size(chunk) for column in table.columns for chunk in column.chunks)

    def __exit__(self, kind: object, *error: object) -> None:
        if self.writer is not None:
            self.writer.close()
        if kind is None and self.rows:
            self.folder.record(self.name, self.rows)

    @property
    def shards(self) -> list[Shard]:
        """The finished file; none where it got no rows."""
        if not self.rows:
            return []
        size = self.folder.path(self.name).stat().st_size
        return [Shard(self.config, self.split, self.name, self.rows, size, self.loaded_bytes)]


def _plain_size(column: pa.Array) -> int:
    """Return the size of a column in bytes once dictionaries are strings (offsets of four bytes)."""
    if not pa.types.is_dictionary(column.type):
        return column.nbytes
    lengths = pc.binary_length(column.dictionary).to_numpy(zero_copy_only=False)
    return int(lengths[column.indices.drop_null().to_numpy()].sum(dtype=np.int64)) + 4 * len(column)


def _keep_dictionaries(schema: pa.Schema, present: pa.Schema) -> pa.Schema:
    """Return ``schema``, but with dictionaries for the columns that are dictionaries in ``present``."""
    fields = [new if pa.types.is_dictionary(new.type) else old for old, new in zip(schema, present, strict=True)]
    return pa.schema(fields)
