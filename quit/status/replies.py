"""What readers replied to the passages that they were asked about, in counts: NO ANSWER, correct, cut, sentences,
filtered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter

from quit.common.columns import plain
from quit.common.files import write_json
from quit.common.ids import content_hash
from quit.common.parquet import KEYS
from quit.common.ranges import Range, ranges
from quit.common.rows import grouped
from quit.common.state_files import StateFile
from quit.dataset.files import QUESTIONS_A_CHUNK, questions_at_once
from quit.engine.reading import TableReader
from quit.errors import WorkspaceError
from quit.evaluate.labels import Patterns, of_readers
from quit.models.generation.base import FILTERED
from quit.models.protocols import NO_ANSWER
from quit.models.readers.cleaning import says_no_answer
from quit.render.table import Table
from quit.stages.labelling.answers import Answers, accepted_answers, is_cut
from quit.stages.labelling.passages import PassageRows
from quit.version import __version__

_FILE: StateFile[dict[str, Any]] = StateFile(
    "replies.json", dict[str, Any], "Delete it; the replies are counted again."
)
CUT_SHARE = 0.1
"""Share of a reader's replies that ran into the token limit, above which a build says so."""


class Replies(NamedTuple):
    """Counts of the ``passages`` that a reader was asked about.

    ``cut``: replies that ran into the token limit. ``sentences``: replies that are NO ANSWER and do not say so; nearly
    all are sentences (:func:`quit.models.readers.cleaning.is_sentence`). ``filtered``: replies that the vendor
    withheld. An answer without a verdict is not correct.
    """

    passages: int
    no_answer: int
    correct: int
    cut: int
    sentences: int
    filtered: int


class HintCounts(NamedTuple):
    """Counts of a reader's passages with a number of hints."""

    reader: str
    hints: int
    replies: Replies


@dataclass(frozen=True)
class ReplyCounts:
    """``readers``: sorted. ``patterns``: the readers asked about a passage and those right on it, as bits (0: the first
    reader), and how many passages are so."""

    readers: list[str]
    by_hints: list[HintCounts]
    patterns: list[tuple[int, int, int]]


def reply_counts(workspace: TableReader, readers: Sequence[str] | None = None) -> tuple[list[HintCounts], Patterns]:
    """Return counts per reader and number of hints, and how many passages of the questions in ``splits`` have which
    readers asked and right; bit 0 of a pattern is the first reader.

    ``readers``: names; all that have answers, sorted, if not given.
    """
    counts = _cached_counts(workspace)
    chosen = counts.readers if readers is None else list(readers)
    rows = grouped((row.reader, row) for row in counts.by_hints)
    by_hints = [row for name in chosen for row in rows.get(name, ())]
    patterns = Counter({(asked, right): passages for asked, right, passages in counts.patterns})
    return by_hints, of_readers(patterns, [counts.readers.index(name) for name in chosen])


def _cached_counts(workspace: TableReader) -> ReplyCounts:
    """Return the counts of all readers; counted again when a workspace's tables have changed."""
    versions = workspace.versions
    path, key = workspace.path / _FILE.name, content_hash(versions, [*workspace.state], __version__)
    if versions:
        with suppress(WorkspaceError, ValueError):  # a file with other values
            if (cached := _FILE.read(workspace.path) or {}).get("key") == key:
                return TypeAdapter(ReplyCounts).validate_python(cached)
    counts = _all_counts(workspace)
    if versions and workspace.versions == versions:  # not while another process builds
        with suppress(WorkspaceError):  # a folder that cannot be written to
            write_json(path, {"key": key, **asdict(counts)})
    return counts


def _all_counts(workspace: TableReader) -> ReplyCounts:
    readers = sorted(run.removeprefix("read:") for run in workspace.state if run.startswith("read:"))
    question_ids = sorted(workspace.read("splits", columns=["question_id"])["question_id"].to_pylist())
    counts: dict[tuple[str, int], np.ndarray] = {}
    patterns: Patterns = Counter()
    [(passages,)] = workspace.rows("SELECT count(*) FROM passages", ["passages"])
    size = questions_at_once(QUESTIONS_A_CHUNK, len(question_ids), passages)
    for shard in ranges(question_ids, -(-len(question_ids) // size)):
        by_hints, of_shard = _counts(workspace, readers, shard)
        for key, figures in by_hints.items():
            counts[key] = counts.get(key, 0) + figures
        patterns.update(of_shard)
    rows = [HintCounts(*key, Replies(*counts[key].tolist())) for key in sorted(counts)]
    return ReplyCounts(readers, rows, [(*sets, passages) for sets, passages in patterns.items()])


def _counts(
    workspace: TableReader, readers: Sequence[str], shard: Range
) -> tuple[dict[tuple[str, int], np.ndarray], Patterns]:
    """Return (reader, number of hints) -> :class:`Replies`, int64, shape (columns,), of a shard; and its patterns."""
    ids = plain(workspace.read("splits", shard, columns=["question_id"])["question_id"])
    verdicts = workspace.read("verdicts", shard, columns=["question_id", "answer_key", "correct"])
    table = workspace.read("passages", shard, columns=[*KEYS])
    own_ids = plain(table["question_id"]).unique()
    passages = PassageRows.of([table], own_ids)
    in_splits = pc.is_in(own_ids, ids).to_numpy(zero_copy_only=False)[passages.owner]
    by_hints: dict[tuple[str, int], np.ndarray] = {}
    # One element per passage; bit 0 is the first reader.
    is_row, asked_bits, right_bits = (np.zeros(len(passages), np.int64) for _ in range(3))
    for position, reader in enumerate(readers):
        run = [f"read:{reader}"]
        columns = ["question_id", "permutation", "number", "ended", "asked"]
        rows = workspace.read("answers", shard, run, columns)
        columns = ["question_id", "number", "answer", "answer_key", "raw"]
        answers = Answers(rows, workspace.read("distinct_answers", shard, run, columns))
        correct = accepted_answers(answers.distinct, verdicts)
        cells, _, _ = passages.places(rows, own_ids)
        figures = _by_hints(answers, correct, passages.hints[cells])
        by_hints |= {(reader, hints): row for hints, row in enumerate(figures) if row[0]}
        was_asked = rows["asked"].to_numpy()
        is_row[cells] = in_splits[cells]
        asked_bits[cells] |= was_asked.astype(np.int64) << position
        right_bits[cells] |= (was_asked & correct[answers.index]).astype(np.int64) << position
    return by_hints, _patterns(asked_bits[is_row > 0], right_bits[is_row > 0])


def _by_hints(answers: Answers, correct: np.ndarray, hints: np.ndarray) -> np.ndarray:
    """Return :class:`Replies` per number of hints from 0, int64, shape (numbers, columns). ``correct``: bool, shape
    (distinct answers,); ``hints``: shape (rows,)."""
    is_asked = answers.rows["asked"].to_numpy()
    size = int(hints.max(initial=0)) + 1
    cells = answers.index * size + hints
    counts = np.bincount(cells[is_asked], minlength=len(correct) * size).reshape(-1, size)  # (distinct answers, hints)
    cut = is_cut(answers.rows).to_numpy()
    filtered = pc.fill_null(pc.starts_with(answers.rows["ended"], FILTERED), False).to_numpy()
    no_answer = np.flatnonzero(pc.equal(answers.distinct["answer"], NO_ANSWER).to_numpy())
    raw = answers.distinct["raw"].take(pa.array(no_answer)).to_pylist()
    is_sentence = np.array(
        [bool(re.search(r"\w", text or "")) and not says_no_answer(text) for text in raw], dtype=bool
    )
    columns = (
        counts.sum(axis=0),
        counts[no_answer].sum(axis=0),
        counts[correct].sum(axis=0),
        np.bincount(hints[is_asked & cut], minlength=size),
        counts[no_answer[is_sentence]].sum(axis=0),
        np.bincount(hints[is_asked & filtered], minlength=size),
    )
    return np.stack(columns, axis=1)


def _patterns(asked_bits: np.ndarray, right_bits: np.ndarray) -> Patterns:
    """Return how often each pair of sets occurs; ``asked_bits``, ``right_bits``: int64, shape (passages,)."""
    (asked_sets, first), (right_sets, second) = (
        np.unique(bits, return_inverse=True) for bits in (asked_bits, right_bits)
    )
    pairs, counts = np.unique(first * len(right_sets) + second, return_counts=True)
    places = zip(*(row.tolist() for row in np.divmod(pairs, max(1, len(right_sets)))), counts.tolist())
    return Counter({(int(asked_sets[a]), int(right_sets[b])): count for a, b, count in places})


def readers_table(workspace: TableReader) -> dict[str, Replies]:
    """Return the counts of each reader of the current answers."""
    rows = grouped((reader, counts) for reader, _, counts in _cached_counts(workspace).by_hints)
    return {reader: Replies(*map(sum, zip(*counts, strict=True))) for reader, counts in rows.items()}


def replies_table(readers: Mapping[str, Replies]) -> Table:
    """Return a row per reader: its passages, and each count as a share of them, without columns of zeros."""
    present = {name for counts in readers.values() for name, count in counts._asdict().items() if count}
    columns = ["no_answer", "correct", *(name for name in ("cut", "sentences", "filtered") if name in present)]
    rows = [
        (name, f"{counts.passages:,}", *(f"{getattr(counts, column) / counts.passages:.1%}" for column in columns))
        for name, counts in readers.items()
    ]
    return Table("Readers", ("reader", "passages", "NO ANSWER", *columns[1:]), rows)


def cut_notes(readers: Mapping[str, Replies]) -> list[str]:
    """Return a line for each reader of :func:`readers_table` whose replies often ran into the token limit."""
    return [
        f"{reader}: {counts.cut / counts.passages:.0%} of its replies were cut at the token limit, and "
        f"{counts.sentences / counts.passages:.0%} of its replies are sentences, which are no answers. If it goes on "
        'after its answer, give it stop strings (stop = ["\\n"] in its block of the profile); if its answers are long, '
        "raise labels.max_new_tokens; if it writes sentences, have its prompt ask for the answer alone, or set "
        "labels.sentences=judge."
        for reader, counts in readers.items()
        if counts.cut > CUT_SHARE * counts.passages
    ]
