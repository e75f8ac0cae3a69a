"""A Hugging Face dataset folder: configs in Parquet shards and a dataset card.

``<config>/<split>-00000-of-0000N.parquet`` with the columns of ``CONFIGS``. The card's YAML names the files, because
a folder of several configs does not load without, and gives the features. A split without questions has no files and
is not named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit import contracts
from quit.common.columns import plain
from quit.common.files import json_bytes
from quit.common.ids import draw
from quit.common.parquet import parquet_writer
from quit.common.progress import advance
from quit.dataset.dataset import FULLY, SPLITS, Block, Dataset
from quit.dataset.files import questions_at_once
from quit.dataset.statistics import TABLES, Statistics, statistics
from quit.errors import SettingsError
from quit.evaluate.labels import (
    Patterns,
    ReaderAgreement,
    labels_by_split,
    of_readers,
    reader_agreement,
    shared_answers,
)
from quit.export import evaluation
from quit.export.card import card
from quit.export.card_facts import CardFacts, Example, Shard, read_baselines
from quit.export.croissant import croissant
from quit.export.files import ExportFolder, Options
from quit.export.lines import QUESTIONS_A_SHARD, PassageIds
from quit.stages.labelling.passages import iter_passage_texts

_TEXTS = pa.list_(pa.string())
QRELS = pa.schema({"query-id": pa.string(), "corpus-id": pa.string(), "score": pa.int32()})
CONFIGS: dict[str, pa.Schema] = {
    "questions": pa.schema(
        {
            "id": pa.string(),
            "question": pa.string(),
            "answers": _TEXTS,  # gold
            "valid_answers": _TEXTS,
            "coarse": pa.string(),
            "fine": pa.string(),
            "type_producer": pa.string(),
            "difficulty": pa.float64(),
            "difficulty_bin": pa.string(),
            "difficulty_producer": pa.string(),
            "parametric": pa.bool_(),
            "source": pa.string(),
            "passages": pa.int32(),
            "fully_relevant_passages": pa.int32(),
            **{column.name: column.type for column in contracts.table("question_roles").columns[1:]},
        }
    ),
    "hints": pa.schema(
        {
            "question_id": pa.string(),
            "index": pa.int8(),
            "hint": pa.string(),
            "convergence": pa.float64(),
            "convergence_producer": pa.string(),
            "origin": pa.string(),
            "url": pa.string(),
        }
    ),
    "passages": pa.schema(
        {
            "id": pa.string(),
            "question_id": pa.string(),
            "subset": pa.string(),
            "permutation": pa.string(),
            "text": pa.string(),
            "label": pa.int8(),
            "n_hints": pa.int8(),
        }
    ),
    "qrels": QRELS,
    "qrels_fully": QRELS,  # label 2 only, for tools to which every label above 0 is relevant
    "answers": pa.schema(
        {
            "passage_id": pa.string(),
            "question_id": pa.string(),
            "reader": pa.string(),
            "role": pa.string(),
            "answer": pa.string(),
            "correct": pa.bool_(),
        }
    ),
}
ASKED = pa.schema({"asked": pa.bool_()})  # of answers, where not every reader was asked about every passage
_DISTINCT = ("id", "text", "question", "hint", "passage_id", "corpus-id")
QUESTIONS_A_GROUP = 512  # on average, and twice as many at most: what is in memory at a time


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write all configs, the card, settings.json and croissant.json; return rows by config and split, readers,
    statistics and what is unjudged.

    Raises ``InputError`` for results of a benchmark that cannot be read or belong to another release, ``SettingsError``
    for tasks of given passages.
    """
    if options.evaluation and dataset.given is not None:
        raise SettingsError("The tasks of --eval are about hints that do not state the answer, not given passages.")
    content_id = dataset.provenance.get("content_id")
    baselines = read_baselines(options.benchmark, content_id) if options.benchmark else None
    shards: list[Shard] = []
    patterns: Patterns = Counter()
    unjudged = 0
    fully = np.zeros(len(dataset.ids), dtype=np.int32)
    for split in SPLITS:
        split_shards, count = _write_split(dataset, split, folder, patterns, fully)
        shards += split_shards
        unjudged += count
    schemas, more = _schemas(dataset), {}
    if options.evaluation:
        tables, more["evaluation"] = evaluation.write(dataset, folder, options, ParquetShard)
        shards, schemas[evaluation.CONFIG] = shards + tables, evaluation.SCHEMA
    everyone, labelers = _agreements(dataset, patterns)
    facts = CardFacts(
        dataset=dataset,
        card=options.card,
        figures=_figures(dataset, options),
        labels=labels_by_split(dataset.splits, dataset.labels.select(["question_id", "label"])),
        agreement=everyone,
        labelers=labelers,
        shared=shared_answers(dataset.splits, dataset.questions),
        example=_example(dataset, fully),
        schemas={name: schema for name, schema in schemas.items() if name in {one.config for one in shards}},
        shards=shards,
        digest=folder.digest(),
        unjudged=unjudged,
        baselines=baselines,
    )
    folder.text("README.md", card(facts))
    settings = {"card": options.card.given, **dataset.provenance, "models": facts.models}
    folder.text("settings.json", json_bytes(settings).decode())
    files = [entry for entry in folder.entries() if entry.path.endswith(".parquet")]
    folder.text("croissant.json", json_bytes(croissant(facts, files)).decode())
    return _manifest_facts(dataset, facts) | more


def _schemas(dataset: Dataset) -> dict[str, pa.Schema]:
    """Return the columns of each config: those of ``CONFIGS``, and which answers were asked where not all were. Given
    passages have their own columns, and no config ``hints``."""
    asked = {"answers": ASKED if dataset.partly_asked else ()}
    configs = {name: pa.schema([*schema, *asked.get(name, ())]) for name, schema in CONFIGS.items()}
    if dataset.given is None:
        return configs
    del configs["hints"]
    own = (configs["passages"].field(name) for name in ("id", "question_id", "text", "label"))
    return configs | {"passages": pa.schema([*own, *[*dataset.given.schema][1:]])}


def _manifest_facts(dataset: Dataset, facts: CardFacts) -> dict[str, Any]:
    rows: dict[str, dict[str, int]] = {}
    for shard in facts.shards:
        of_config = rows.setdefault(shard.config, {})
        of_config[shard.split] = of_config.get(shard.split, 0) + shard.rows
    return {
        "rows": rows,
        "empty_splits": [split for split in SPLITS if not len(dataset.positions(split))],
        "readers": [asdict(info) for info in facts.dataset.ordered_readers],
        "unjudged_answers": facts.unjudged,
        "statistics": facts.figures.to_dict(),
    }


def _figures(dataset: Dataset, options: Options) -> Statistics:
    if dataset.statistics is not None:
        return Statistics.from_dict(dataset.statistics)
    return statistics({name: getattr(dataset, name) for name in TABLES}, options.encoder)


def _agreements(dataset: Dataset, patterns: Patterns) -> tuple[ReaderAgreement, ReaderAgreement]:
    """Return the agreement of all readers, and of the labelers, which have the lowest bits."""
    readers, labelers = dataset.ordered_readers, dataset.labelers
    everyone = reader_agreement([info.name for info in readers], patterns)
    of_labelers = of_readers(patterns, range(len(labelers)))
    return everyone, reader_agreement([info.name for info in labelers], of_labelers)


def _example(dataset: Dataset, fully: np.ndarray) -> Example:
    """Return the first question of test (else dev, train) that has both labels, with the first passage of each; where
    no question has both, the first question of all. ``fully``: fully relevant passages of each question."""
    ordered = np.concatenate([dataset.positions(split) for split in reversed(SPLITS)])
    both = (fully[ordered] > 0) & (fully[ordered] < dataset.rows.counts[ordered])
    block = dataset.block(ordered[both.argmax()][None])
    columns = _passages(dataset, block, *_passage_ids(dataset, block))
    question = pa.table(_questions(dataset, block.positions, fully)).to_pylist()[0]
    first = sorted({int((block.labels == label).argmax()) for label in np.unique(block.labels)[::-1]})
    labelers = len(dataset.labelers)
    passages = [
        {name: column[row].as_py() for name, column in columns.items()}
        | {
            "answers": [
                block.values[code] if is_asked else "(not asked)"
                for code, is_asked in zip(block.codes[row, :labelers], block.asked[row, :labelers], strict=True)
            ]
        }
        for row in first
    ]
    return Example(question, passages)


def _write_split(
    dataset: Dataset, split: str, folder: ExportFolder, patterns: Patterns, fully: np.ndarray
) -> tuple[list[Shard], int]:
    """Return the files made, and how many answers have no verdict; count in ``patterns`` which readers are asked
    and right, set in ``fully`` how many passages of each question are fully relevant."""
    positions = dataset.positions(split)
    count = -(-len(positions) // QUESTIONS_A_SHARD)
    shards: list[Shard] = []
    unjudged = 0
    schemas = _schemas(dataset)
    for number in range(count):
        some = positions[number * QUESTIONS_A_SHARD : (number + 1) * QUESTIONS_A_SHARD]
        names = {config: f"{config}/{split}-{number:05d}-of-{count:05d}.parquet" for config in schemas}
        with ExitStack() as stack:
            writers = {
                config: stack.enter_context(ParquetShard(folder, names[config], schema, _DISTINCT))
                for config, schema in schemas.items()
            }
            for group in row_groups(dataset, some):
                block = dataset.block(group)
                advance(f"{dataset.writing}: answers", len(group), len(dataset.ids))
                fully[block.positions] = block.passages.sums(block.labels == FULLY)
                patterns.update(_patterns(block))
                unjudged += _write_block(dataset, block, writers)
            writers["questions"].write(_questions(dataset, some, fully))
            if "hints" in writers:
                writers["hints"].write(_hints(dataset, some))
        for config, name in names.items():
            writer = writers[config]
            if writer.rows:
                size = folder.path(name).stat().st_size
                shards.append(Shard(config, split, name, writer.rows, size, writer.bytes))
    return shards, unjudged


def _write_block(dataset: Dataset, block: Block, writers: Mapping[str, ParquetShard]) -> int:
    """Write a row group of all configs except questions and hints; return how many answers have no verdict."""
    ids, question_ids = _passage_ids(dataset, block)
    grades = block.labels if dataset.given is None else dataset.grades_of(block.positions)
    qrels = {"query-id": question_ids, "corpus-id": ids, "score": pa.array(grades)}
    writers["qrels"].write(qrels)
    writers["qrels_fully"].write(fully_relevant(qrels))
    # The texts are in memory until they are written, and only then the answers.
    writers["passages"].write(_passages(dataset, block, ids, question_ids))
    answers = _answers(dataset, block, ids, question_ids)
    writers["answers"].write(answers)
    return int(answers["correct"].null_count - answers["answer"].null_count)


def row_groups(dataset: Dataset, positions: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the positions of each row group's questions: :data:`QUESTIONS_A_GROUP` on average.

    Ids draw where groups end, so a question that comes or goes changes its own group's bytes only, and the hub, which
    keeps equal pieces of files once, is sent less of the next version. Parquet's own chunking
    (``use_content_defined_chunking``) finds no boundaries in passages, which repeat five texts, and adds 3% of bytes.
    """
    ends = [draw(dataset.ids[position], "row group") < 1 / QUESTIONS_A_GROUP for position in positions]
    for group in np.split(positions, np.flatnonzero(ends) + 1):
        most = questions_at_once(2 * QUESTIONS_A_GROUP, len(dataset.ids), len(dataset.rows))
        for start in range(0, len(group), most):
            yield group[start : start + most]


def fully_relevant(qrels: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the rows of label 2; columns of ``QRELS``."""
    mask = pc.equal(qrels["score"], FULLY)
    return {name: column.filter(mask) for name, column in qrels.items()}


def _patterns(block: Block) -> Patterns:
    right = block.right == 1
    bits = 1 << np.arange(right.shape[1], dtype=np.int64)
    sets = np.stack([block.asked @ bits, (block.asked & right) @ bits], axis=-1)
    sets, counts = np.unique(sets, axis=0, return_counts=True)
    return Counter(dict(zip(map(tuple, sets.tolist()), counts.tolist(), strict=True)))


class ParquetShard:
    """A Parquet file of one config, if it gets rows; columns that ``schema`` does not name are left out. ``distinct``:
    columns whose texts begin like the text before, which is how they are encoded; the others have dictionary pages.

    The page index lets the hub's viewer read a page without its row group. Dictionary columns are written as plain
    strings that happen to be dictionary pages.

    The Arrow schema is not stored: it would tell readers to give dictionaries back, which ``datasets`` refuses.
    """

    def __init__(self, folder: ExportFolder, name: str, schema: pa.Schema, distinct: Collection[str]) -> None:
        self.folder, self.name, self.schema, self.distinct = folder, name, schema, distinct
        self.writer: pq.ParquetWriter | None = None
        self.rows = self.bytes = 0  # bytes: as plain Arrow columns, what datasets calls num_bytes

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
        self.bytes += sum(_plain_size(chunk) for column in table.columns for chunk in column.chunks)

    def __exit__(self, kind: object, *error: object) -> None:
        if self.writer is not None:
            self.writer.close()
        if kind is None and self.rows:
            self.folder.record(self.name, self.rows)


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


def _passage_ids(dataset: Dataset, block: Block) -> tuple[pa.Array, pa.Array]:
    """Return the id of each passage of a block, and its question's."""
    names = pa.array([dataset.ids[row] for row in block.positions])
    question_ids = _dictionary(block.passages.owner.astype(np.int32), names)
    return PassageIds(dataset, escaped=False).of(block.positions), question_ids


def _passages(dataset: Dataset, block: Block, ids: pa.Array, question_ids: pa.Array) -> dict[str, pa.Array]:
    passages = block.passages
    texts = pa.chunked_array(iter_passage_texts(dataset.hint_lists(block.positions), passages), pa.string())
    return {
        "id": ids,
        "question_id": question_ids,
        "subset": _dictionary(passages.codes, passages.table.subset),
        "permutation": _dictionary(passages.codes, passages.table.permutation),
        "text": texts,
        "label": pa.array(block.labels),
        "n_hints": pa.array(passages.hints),
        **dataset.given_columns(block.positions),
    }


def _answers(dataset: Dataset, block: Block, ids: pa.Array, question_ids: pa.Array) -> dict[str, pa.Array]:
    readers = block.codes.shape[1]
    infos = dataset.ordered_readers
    passage = pa.array(np.repeat(np.arange(len(ids), dtype=np.int32), readers))
    reader = np.tile(np.arange(readers, dtype=np.int32), len(ids))
    correct = block.right.ravel()
    is_asked = block.asked.ravel()
    return {
        "passage_id": _dictionary(passage, ids),
        "question_id": question_ids.take(passage),
        "reader": _dictionary(reader, pa.array([info.name for info in infos])),
        "role": _dictionary(reader, pa.array([info.role for info in infos])),
        "answer": _dictionary(pa.array(block.codes.ravel(), mask=~is_asked), pa.array(block.values, pa.string())),
        "correct": pa.array(correct == 1, mask=(correct < 0) | ~is_asked),
        "asked": pa.array(is_asked),
    }


def _dictionary(codes: np.ndarray | pa.Array, values: pa.Array) -> pa.DictionaryArray:
    """Return ``values`` at ``codes`` (null where these are), its dictionary without repeats.

    From a dictionary with repeats (six readers have two roles) pyarrow 26 writes pages whose bytes differ from run to
    run.
    """
    return values.dictionary_encode().take(codes if isinstance(codes, pa.Array) else pa.array(codes))


def _questions(dataset: Dataset, positions: np.ndarray, fully: np.ndarray) -> dict[str, pa.Array]:
    rows = pa.array(positions)
    questions, descriptions = (dataset.aligned(name).take(rows) for name in ("questions", "descriptions"))
    question_roles = dataset.question_roles  # null where a question has no roles
    roles = question_roles.take(pc.index_in(plain(questions["question_id"]), plain(question_roles["question_id"])))
    names = ("coarse", "fine", "type_producer", "difficulty", "difficulty_bin", "difficulty_producer")
    return {
        "id": questions["question_id"],
        "question": questions["question"],
        "answers": pa.array([dataset.gold_answers_of[position] for position in positions], _TEXTS),
        "valid_answers": pa.array([dataset.valid_answers_of[position] for position in positions], _TEXTS),
        **{name: descriptions[name] for name in names},
        "parametric": dataset.splits["parametric"].take(rows),
        "source": questions["source"],
        "passages": pa.array(dataset.rows.counts[positions].astype(np.int32)),
        "fully_relevant_passages": pa.array(fully[positions]),
        **{name: roles[name] for name in roles.column_names[1:]},
    }


def _hints(dataset: Dataset, positions: np.ndarray) -> dict[str, pa.Array]:
    rows = [row for position in positions for row in dataset.selected_hints[position]]
    return {
        "question_id": pa.array([row["question_id"] for row in rows]),
        "index": pa.array([row["rank"] for row in rows], pa.int8()),
        "hint": pa.array([row["hint"] for row in rows]),
        "convergence": pa.array([row["convergence"] for row in rows], pa.float64()),
        "convergence_producer": pa.array([row["producer"] for row in rows]),
        "origin": pa.array([row["source"] for row in rows], pa.string()),
        "url": pa.array([row["url"] for row in rows], pa.string()),
    }
