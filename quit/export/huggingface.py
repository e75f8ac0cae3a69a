"""A Hugging Face dataset folder: configs in Parquet shards and a dataset card.

``<config>/<split>-00000-of-0000N.parquet`` with the columns of ``CONFIGS``. The card's YAML names the files, because
a folder of several configs does not load without, and gives the features. A split without questions has no files and
is not named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import plain
from quit.common.files import json_bytes
from quit.common.progress import advance
from quit.dataset.dataset import FULLY, Block, Dataset
from quit.dataset.statistics import TABLES, Statistics, statistics
from quit.errors import SettingsError
from quit.evaluate.labels import (
    SPLITS,
    Patterns,
    ReaderAgreement,
    labels_by_split,
    of_readers,
    reader_agreement,
    shared_answers,
)
from quit.export import evaluation
from quit.export.baselines import read_baselines
from quit.export.card import card
from quit.export.card_facts import CardFacts, Example
from quit.export.croissant import croissant
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.lines import PassageIds, question_shards
from quit.export.parquet_shards import QRELS, ParquetShard, Shard, fully_relevant_qrels, row_counts, row_groups
from quit.stages.labelling.passages import iter_passage_texts

_TEXTS = pa.list_(pa.string())
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


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write all configs, the card, settings.json and croissant.json; return rows by config and split, readers,
    statistics and what is unjudged.

    Raises ``InputError`` for results of a benchmark that cannot be read or belong to another release, ``SettingsError``
    for tasks of given passages.
    """
    if options.evaluation and dataset.given is not None:
        raise SettingsError("The tasks of --eval are about hints that do not state the answer, not given passages.")
    content_id = dataset.provenance.get("content_id")
    baselines = read_baselines(options.benchmark, content_id) if options.benchmark else None
    ids = PassageIds(dataset, escaped=False)
    splits = [_write_split(ids, split, folder) for split in SPLITS]
    shards = [shard for split in splits for shard in split.shards]
    schemas, more = _schemas(dataset), {}
    if options.evaluation:
        tables, more["evaluation"] = evaluation.write(dataset, folder, options)
        shards, schemas[evaluation.CONFIG] = shards + tables, evaluation.SCHEMA
    everyone, labelers = _agreements(dataset, sum((split.patterns for split in splits), Counter()))
    facts = CardFacts(
        dataset=dataset,
        card=options.card,
        figures=_figures(dataset, options),
        labels=labels_by_split(dataset.splits, dataset.labels.select(["question_id", "label"])),
        agreement=everyone,
        labelers=labelers,
        shared=shared_answers(dataset.splits, dataset.questions),
        example=_example(ids, np.add.reduce([split.fully for split in splits])),
        schemas={name: schema for name, schema in schemas.items() if name in {shard.config for shard in shards}},
        shards=shards,
        digest=folder.digest(),
        unjudged=sum(split.unjudged for split in splits),
        baselines=baselines,
    )
    folder.text("README.md", card(facts))
    settings = {"card": options.card.given, **dataset.provenance, "models": facts.models}
    folder.text("settings.json", json_bytes(settings).decode())
    files = [entry for entry in folder.entries() if entry.path.endswith(".parquet")]
    folder.text("croissant.json", json_bytes(croissant(facts, files)).decode())
    return {**_manifest_facts(dataset, facts), **more}


def _schemas(dataset: Dataset) -> dict[str, pa.Schema]:
    """Return the columns of each config: those of ``CONFIGS``, and which answers were asked where not all were. Given
    passages have their own columns, and no config ``hints``."""
    asked = {"answers": ASKED if dataset.partly_asked else ()}
    configs = {name: pa.schema([*schema, *asked.get(name, ())]) for name, schema in CONFIGS.items()}
    if dataset.given is None:
        return configs
    del configs["hints"]
    fields = (configs["passages"].field(name) for name in ("id", "question_id", "text", "label"))
    return configs | {"passages": pa.schema([*fields, *[*dataset.given.schema][1:]])}


def _manifest_facts(dataset: Dataset, facts: CardFacts) -> FormatFacts:
    return {
        "rows": row_counts(facts.shards),
        "empty_splits": [split for split in SPLITS if not len(dataset.positions(split))],
        "readers": [asdict(info) for info in facts.dataset.ordered_readers],
        "unjudged_answers": facts.unjudged,
        "statistics": facts.figures.to_dict(),
    }


def _figures(dataset: Dataset, options: Options) -> Statistics:
    if dataset.statistics is not None:
        return Statistics.from_dict(dataset.statistics)
    return statistics({name: getattr(dataset, name) for name in TABLES}, options.encoder())


def _agreements(dataset: Dataset, patterns: Patterns) -> tuple[ReaderAgreement, ReaderAgreement]:
    """Return the agreement of all readers, and of the labelers, which have the lowest bits."""
    readers, labelers = dataset.ordered_readers, dataset.labelers
    everyone = reader_agreement([info.name for info in readers], patterns)
    of_labelers = of_readers(patterns, range(len(labelers)))
    return everyone, reader_agreement([info.name for info in labelers], of_labelers)


def _example(ids: PassageIds, fully: np.ndarray) -> Example:
    """Return the first question of test (else dev, train) that has both labels, with the first passage of each; where
    no question has both, the first question of all. ``fully``: fully relevant passages of each question."""
    dataset = ids.dataset
    ordered = np.concatenate([dataset.positions(split) for split in reversed(SPLITS)])
    both = (fully[ordered] > 0) & (fully[ordered] < dataset.rows.counts[ordered])
    block = dataset.block(ordered[both.argmax()][None])
    columns = _passages(dataset, block, *_passage_ids(ids, block))
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


@dataclass(frozen=True, eq=False)
class _Split:
    """The files of a split, which sets of readers are asked and right, how many answers have no verdict, and of each
    question of all how many of its passages are fully relevant (0 in other splits)."""

    shards: list[Shard]
    patterns: Patterns
    unjudged: int
    fully: np.ndarray


def _write_split(ids: PassageIds, split: str, folder: ExportFolder) -> _Split:
    dataset = ids.dataset
    parts = question_shards(dataset.positions(split))
    shards: list[Shard] = []
    patterns: Patterns = Counter()
    unjudged, fully = 0, np.zeros(len(dataset.ids), dtype=np.int32)
    schemas = _schemas(dataset)
    for number, part in enumerate(parts):
        with ExitStack() as stack:
            writers = {
                config: stack.enter_context(ParquetShard(folder, config, split, schema, _DISTINCT, number, len(parts)))
                for config, schema in schemas.items()
            }
            for group in row_groups(dataset, part):
                block = dataset.block(group)
                advance(f"{dataset.writing}: answers", len(group), len(dataset.ids))
                fully[block.positions] = block.passages.sums(block.labels == FULLY)
                patterns.update(_patterns(block))
                unjudged += _write_block(ids, block, writers)
            writers["questions"].write(_questions(dataset, part, fully))
            if "hints" in writers:
                writers["hints"].write(_hints(dataset, part))
        shards += [shard for writer in writers.values() for shard in writer.shards]
    return _Split(shards, patterns, unjudged, fully)


def _write_block(ids: PassageIds, block: Block, writers: Mapping[str, ParquetShard]) -> int:
    """Write a row group of all configs except questions and hints; return how many answers have no verdict."""
    dataset, (passage_ids, question_ids) = ids.dataset, _passage_ids(ids, block)
    grades = block.labels if dataset.given is None else dataset.grades_of(block.positions)
    qrels = {"query-id": question_ids, "corpus-id": passage_ids, "score": pa.array(grades)}
    writers["qrels"].write(qrels)
    writers["qrels_fully"].write(fully_relevant_qrels(qrels))
    # The texts are in memory until they are written, and only then the answers.
    writers["passages"].write(_passages(dataset, block, passage_ids, question_ids))
    answers = _answers(dataset, block, passage_ids, question_ids)
    writers["answers"].write(answers)
    return int(answers["correct"].null_count - answers["answer"].null_count)


def _patterns(block: Block) -> Patterns:
    right = block.right == 1
    bits = 1 << np.arange(right.shape[1], dtype=np.int64)
    sets = np.stack([block.asked @ bits, (block.asked & right) @ bits], axis=-1)
    sets, counts = np.unique(sets, axis=0, return_counts=True)
    return Counter(dict(zip(map(tuple, sets.tolist()), counts.tolist(), strict=True)))


def _passage_ids(ids: PassageIds, block: Block) -> tuple[pa.Array, pa.Array]:
    """Return the id of each passage of a block, and its question's."""
    names = pa.array([ids.dataset.ids[row] for row in block.positions])
    return ids.of(block.positions), _dictionary(block.passages.owner.astype(np.int32), names)


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
    names = ("question_id", "rank", "hint", "convergence", "producer", "source", "url")
    columns = zip(CONFIGS["hints"], names, strict=True)
    return {field.name: pa.array([row[name] for row in rows], field.type) for field, name in columns}
