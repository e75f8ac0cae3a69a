"""What an export is made from: the tables of a release, checked once and read block by block.

Full size is 7,401 questions, 2.4 million passages and 14.4 million answers. Every format therefore reads ``Block``s
of some hundred questions: all work inside a block is Arrow or NumPy, and memory does not grow with the dataset.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import first_matches, plain
from quit.common.ids import own_id
from quit.common.parquet import KEYS
from quit.common.progress import advance
from quit.dataset.description import Provenance, section_of
from quit.dataset.files import PagedTable, TableFiles, aligned, lists, questions_at_once
from quit.dataset.release import ReaderInfo, fingerprint_of, verify
from quit.dataset.rows import Lists, QuestionRows, row_lists
from quit.errors import InputError, SettingsError
from quit.models.protocols import NO_ANSWER
from quit.settings import PassageDesign
from quit.stages.labelling.answers import Answers, cut_replies, fully_relevant
from quit.stages.labelling.passages import PassageRows, PermutationTable

_SMALL = ("questions", "ranked_hints", "descriptions", "splits", "valid_answers", "question_roles")
_OF_HINTS = ("hint_id", "source", "url", "convergence")
_OF_VERDICTS = ("question_id", "answer_key", "answer", "correct", "basis", "judge")
FULLY, PARTIALLY = 2, 1  # relevance labels (paper, section 3.2.2); 0, another question's passage, is never stored


@dataclass(frozen=True, eq=False)
class Block:
    """Some questions of a split with all their passages: Q questions, N passages, R readers (labelers first).

    ``positions``: int64, shape (Q,), places of the questions in ``Dataset.ids``. ``passages``: of these questions.
    ``labels``: int8, shape (N,). ``codes``: int32, shape (N, R), positions in ``values``, the distinct answers of the
    block, sorted. ``correct``: int8, shape (Q, len(values)): 1 correct, 0 not, -1 unjudged (or not given for the
    question). ``asked``: bool, shape (N, R), whether the reader was asked; where not, its answer is ``NO ANSWER``.
    """

    positions: np.ndarray
    passages: PassageRows
    labels: np.ndarray
    codes: np.ndarray
    values: list[str]
    correct: np.ndarray
    asked: np.ndarray

    @property
    def right(self) -> np.ndarray:
        """What ``correct`` says of each answer: int8, shape (N, R)."""
        return self.correct[self.passages.owner[:, None], self.codes]


@dataclass(frozen=True, eq=False)
class Replies:
    """What some readers (R) replied to some questions about their passages (N in all), checked.

    ``distinct``: their rows of ``distinct_answers``, reader by reader. One value per row of these: ``owner``, the
    question's place; ``correct``, as in ``Block``; ``valid``, whether it is among the valid answers. ``index``: int64,
    shape (N, R), the row that a passage got.
    """

    distinct: pa.Table
    owner: np.ndarray
    correct: np.ndarray
    valid: np.ndarray
    index: np.ndarray


@dataclass(eq=False)
class Dataset:
    """The tables of a release or of a finished build (see ``quit.contracts.tables``), checked, and where they come
    from: what formats and systems read. Positions count the rows of ``splits``.

    All except ``answers`` (reader -> its answers) are tables of that name. ``splits`` decides which questions are
    exported and in which order; the other tables may hold more. ``passages``, ``labels`` and the rows of ``answers``
    keep a question together, permutations depth first. Of these only question_id, permutation and label or number are
    read, from files block by block; question ids and permutations may be dictionary-encoded. Of ``hints`` only hint_id,
    source, url and convergence are read.
    ``verdicts`` holds one row per question and answer_key: the verdict in force. ``readers`` is in profile order.

    ``statistics``: a release's own (``quit.dataset.statistics.Statistics.to_dict``), None where they have to be
    computed. ``cut``: reader -> how many of its replies ran into the token limit, where that is known.
    ``fill_in``: how to have every labeler asked about every passage.

    Raises ``InputError`` when the tables do not fit together: a question without its row, hints, passages, answers or
    valid answers, rows out of order.
    """

    questions: pa.Table
    hints: pa.Table
    ranked_hints: pa.Table
    descriptions: pa.Table
    splits: pa.Table
    passages: pa.Table | PagedTable
    answers: Mapping[str, Answers]
    verdicts: pa.Table
    labels: pa.Table | PagedTable
    valid_answers: pa.Table
    readers: tuple[ReaderInfo, ...]
    provenance: Provenance = field(default_factory=Provenance)
    statistics: Mapping[str, Any] | None = None
    cut: Mapping[str, int] = field(default_factory=dict)
    question_roles: pa.Table = field(default_factory=contracts.table("question_roles").schema.empty_table)
    fill_in: str = "build its workspace with labels.partial=off and release that"
    writing: str = field(default="export", init=False)  # what progress is reported about

    @classmethod
    def read(cls, files: TableFiles, readers: Sequence[ReaderInfo], **facts: Any) -> Dataset:
        """Return the tables of ``files``, the large ones as pages of the columns that exports read. ``facts``:
        ``provenance`` and other fields.

        Raises its owner's error for a file that cannot be read, and for tables that do not fit together.
        """
        return cls(
            **{name: files.read(name) for name in _SMALL},
            hints=files.read("hints", _OF_HINTS),
            verdicts=files.read("verdicts", _OF_VERDICTS, encoded=True),
            passages=files.paged("passages", KEYS),
            labels=files.paged("labels", [*KEYS, "label"]),
            answers={info.name: files.answers(info.name) for info in readers},
            readers=tuple(readers),
            cut={
                info.name: sum(map(cut_replies, files.batches(f"answers/{info.name}", ["ended"]))) for info in readers
            },
            **facts,
        )

    @classmethod
    def of_release(cls, path: str | Path) -> Dataset:
        """Return the tables of a release, after verifying it (a changed file must not be published).

        Raises ``InputError`` as :func:`quit.dataset.release.verify` does.
        """
        release = verify(path)
        statistics = release.facts["statistics"] or None
        return cls.read(release.files, release.readers, provenance=release.provenance, statistics=statistics)

    def __post_init__(self) -> None:
        self.ids: list[str] = self.splits["question_id"].to_pylist()
        if not self.ids:
            raise InputError("There is nothing to export: the table 'splits' holds no question.")
        self.split_names: list[str] = self.splits["split"].to_pylist()
        pieces = self.passages if isinstance(self.passages, PagedTable) else [self.passages]
        self.rows = PassageRows.of((piece.select(KEYS) for piece in pieces), pa.array(self.ids))
        self.rows.check_hints(self.ids, self.selected_hints.array)
        if len(wrong := self.rows.unordered):
            raise InputError(f"The table 'passages' is not in depth-first order: question {self.ids[wrong[0]]!r}.")
        tables = {f"answers of {info.name}": self.answers[info.name].rows for info in self.readers}
        tables["labels"] = self.labels
        self._rows = {name: QuestionRows(name, table, self.ids, self.rows) for name, table in tables.items()}

    @property
    def design(self) -> PassageDesign:
        """Which passages a question has, by the provenance's settings."""
        return PassageDesign(**section_of(self.provenance, "passages"))

    @property
    def partly_asked(self) -> bool:
        """Whether a reader was not asked about some passages (``labels.partial``)."""
        return any(answers.asked is not None for answers in self.answers.values())

    @property
    def embedded(self) -> bool:
        """Whether any reader is an embedded guesser, which every export must say."""
        return any(info.kind == "embedded" for info in self.readers)

    @property
    def fingerprint(self) -> str:
        """The release's fingerprint: that of its provenance (inputs, settings, models), not of the moment."""
        return fingerprint_of(self.provenance, self.readers)

    @property
    def ordered_readers(self) -> tuple[ReaderInfo, ...]:
        """Labelers first, then the other readers, each in profile order."""
        return tuple(sorted(self.readers, key=lambda info: info.role != "labeler"))

    @property
    def canary(self) -> str:
        """A line by which a corpus or a model shows that it holds the dataset. Its GUID (UUID version 5) follows from
        the checksums of the sources (the release's fingerprint where none is known), so all versions and formats of a
        collection have the same."""
        checksums = sorted(filter(None, (source.get("checksum") for source in self.provenance.get("sources", ()))))
        guid = uuid.uuid5(uuid.NAMESPACE_URL, f"quit:{','.join(checksums) or self.fingerprint}")
        return f"Benchmark data must not be in training corpora of language models. Canary GUID {guid}"

    @property
    def labelers(self) -> tuple[ReaderInfo, ...]:
        return tuple(info for info in self.readers if info.role == "labeler")

    def positions(self, split: str) -> np.ndarray:
        """Return the positions of a split's questions, ascending: int64, empty for a split without questions."""
        return np.flatnonzero(np.array(self.split_names, dtype=object) == split)

    @property
    def passage_count(self) -> int:
        return len(self.rows)

    def check_full(self, what: str) -> PermutationTable:
        """Return all ordered selections of a question's hints. Raises ``SettingsError`` where passages are others:
        ``what``, a format or system, rests on them."""
        if not self.rows.is_full:
            raise SettingsError(
                f"{what} holds all ordered selections of as many hints per question; the passages here are others "
                "(given, or by passages.hints, sizes, orders, extremes). Name another, such as --format huggingface."
            )
        return self.rows.table

    def check_own_passages(self, what: str) -> None:
        """Raise ``SettingsError`` where a given passage is of several questions: to ``what``, which takes each row for
        a passage, its copies would be others."""
        if self.given is not None and len(self.given["id"].unique()) < len(self.given):
            raise SettingsError(
                f"{what} takes each question's passages for its own, and some given passages here are of several "
                "questions. Export the release (--format beir or trec), and score the runs of other programs: quit "
                "evaluate run."
            )

    # Small tables, in memory as a whole.

    def aligned(self, name: str) -> pa.Table:
        """Return ``questions``, ``descriptions`` or ``splits`` with one row per question, in the order of ``ids``."""
        return aligned(name, getattr(self, name), self.ids)

    @cached_property
    def question_of(self) -> list[str]:
        """The text of each question."""
        return self.aligned("questions")["question"].to_pylist()

    @cached_property
    def valid_answers_of(self) -> Lists:
        """Accepted surface forms of each question, in table order."""
        answers = lists(self.valid_answers, "answer", pa.array(self.ids))
        if len(missing := np.flatnonzero(pc.list_value_length(answers).to_numpy() == 0)):
            raise InputError(f"The table 'valid_answers' has no row for the question {self.ids[missing[0]]!r}.")
        return Lists(answers)

    @cached_property
    def gold_answers_of(self) -> list[list[str]]:
        """Gold answers of each question, in order, without those that people rejected; all its valid answers where none
        is left."""
        gold = self.aligned("questions")["answers"].to_pylist()
        return [
            [answer for answer in answers if answer in valid] or valid
            for answers, valid in zip(gold, self.valid_answers_of, strict=True)
        ]

    @cached_property
    def selected_hints(self) -> Lists:
        """The hints of each question that make passages, in rank order: rows of ``ranked_hints`` with the hint's
        source and url, and a given passage's relevance (null where ``hints`` lacks it)."""
        rows = self.ranked_hints.filter(self.ranked_hints["selected"]).sort_by("rank")
        origin = pc.index_in(plain(rows["hint_id"]), plain(self.hints["hint_id"]))
        for name, column in (("source", "source"), ("url", "url"), ("relevance", "convergence")):
            rows = rows.append_column(name, self.hints[column].take(origin))
        return Lists(row_lists(rows, self.ids))

    @cached_property
    def given(self) -> pa.Table | None:
        """The given passages, one row each in the order of ``rows``; None where passages are made of hints. ``id``:
        their own; ``rank``: in the source, from 0; ``contains_answer``: a gold answer, by rules;
        ``contains_equivalent``: by these or the equivalence model; ``relevance``: the source's own, null: none."""
        if not self.design.is_given:
            return None
        rows = [row for passages in self.selected_hints for row in passages]
        columns = {
            "id": pa.array([own_id(row["question_id"], row["hint_id"]) for row in rows], pa.string()),
            "rank": pa.array([row["rank"] for row in rows], pa.int16()),
            "contains_answer": pa.array([row["producer"] not in ("none", "equivalence") for row in rows]),
            "contains_equivalent": pa.array([row["producer"] != "none" for row in rows]),
            "relevance": pa.array([row["relevance"] for row in rows], pa.float64()),
        }
        return pa.table(columns)

    def given_columns(self, positions: np.ndarray) -> dict[str, pa.ChunkedArray]:
        """Return the columns of ``given`` except ``id`` for the passages of some questions; none where it is None."""
        if self.given is None:
            return {}
        rows = self.given.take(pa.array(self.rows.rows(positions)))
        return {name: rows[name] for name in rows.column_names[1:]}

    def hint_lists(self, positions: np.ndarray) -> list[list[str]]:
        """Return the texts of the hints of some questions, for ``iter_passage_texts``."""
        advance(f"{self.writing}: passages", len(positions), len(self.ids))
        return [[row["hint"] for row in self.selected_hints[position]] for position in positions]

    # Large tables, block by block.

    def labels_of(self, positions: np.ndarray) -> np.ndarray:
        """Return the labels of some questions' passages, int8, shape (passages,). Raises ``InputError`` as
        ``block``."""
        advance(f"{self.writing}: labels", len(positions), len(self.ids))
        return self.column("labels", positions, "label").astype(np.int8)

    def grades_of(self, positions: np.ndarray) -> np.ndarray:
        """Return the relevance that retrieval tools are told, int8, shape (passages,): the labels; of given passages 0
        for label 1, as such a passage need not have anything to do with its question."""
        labels = self.labels_of(positions)
        return labels if self.given is None else np.where(labels == FULLY, FULLY, 0).astype(np.int8)

    def block(self, positions: np.ndarray) -> Block:
        """Return some questions with labels and answers (see ``Block``); 100 to 300 at a time are fastest.

        Raises ``InputError`` when rows are out of order, or when a label does not follow from the labelers' answers and
        the valid answers: a release must allow everyone to recompute its labels.
        """
        labels, replies = self._given(positions, self.ordered_readers)
        texts = replies.distinct["answer"].to_pylist()
        values = sorted(set(texts))
        code_of = {value: code for code, value in enumerate(values)}
        of_text = np.array([code_of[text] for text in texts], dtype=np.int32)
        correct = np.full((len(positions), len(values)), -1, dtype=np.int8)
        correct[replies.owner, of_text] = replies.correct
        asked = np.stack([self.asked(positions, info) for info in self.ordered_readers], axis=-1)
        return Block(positions, self.rows.take(positions), labels, of_text[replies.index], values, correct, asked)

    def asked(self, positions: np.ndarray, reader: ReaderInfo) -> np.ndarray:
        """Return whether a reader was asked about some questions' passages: bool, shape (passages,)."""
        if self.answers[reader.name].asked is None:
            return np.ones(int(self.rows.counts[positions].sum()), dtype=bool)
        return self.column(f"answers of {reader.name}", positions, "asked")

    def column(self, table: str, positions: np.ndarray, name: str) -> np.ndarray:
        """Return a column of the passages of some questions: shape (passages,). ``table``: ``labels`` or ``answers of
        READER``. Raises ``InputError`` where rows are not those of the passages, in their order."""
        return self._rows[table].column(positions, name).to_numpy(zero_copy_only=False)

    def blocks(self, positions: np.ndarray, size: int = 128) -> Iterator[Block]:
        """Yield ``block`` for ``size`` questions of 325 passages at a time."""
        size = questions_at_once(size, len(self.ids), len(self.rows))
        for start in range(0, len(positions), size):
            yield self.block(positions[start : start + size])
            advance(f"{self.writing}: answers", len(positions[start : start + size]), len(self.ids))

    @cached_property
    def _distinct(self) -> dict[str, QuestionRows]:
        return {
            name: QuestionRows(f"distinct answers of {name}", answers.distinct, self.ids)
            for name, answers in self.answers.items()
        }

    @cached_property
    def _lists(self) -> dict[str, pa.ListArray]:
        _ = self.valid_answers_of  # raises InputError where a question has none
        columns = {"verdicts": ["question_id", "answer_key", "correct"], "valid_answers": ["question_id", "answer"]}
        return {name: row_lists(getattr(self, name).select(names), self.ids) for name, names in columns.items()}

    def replies(self, positions: np.ndarray, readers: Sequence[ReaderInfo]) -> Replies:
        """Return what these readers replied to some questions."""
        pieces, index, first = [], [], 0
        for info in readers:
            rows, numbers = self._distinct[info.name], self.column(f"answers of {info.name}", positions, "number")
            counts, piece = rows.counts[positions], rows.take(positions)
            offsets = np.cumsum(counts) - counts
            pieces.append(piece.append_column("owner", pa.array(np.repeat(np.arange(len(positions)), counts))))
            index.append(first + np.repeat(offsets, self.rows.counts[positions]) + numbers)
            first += len(piece)
        distinct = pa.concat_tables(pieces)
        verdicts = _rows_of(self._lists["verdicts"], positions)
        verdict = pc.fill_null(verdicts["correct"].cast(pa.int8()), -1).to_numpy()
        correct = np.append(verdict, np.int8(-1))[first_matches(distinct, verdicts, ("question_id", "answer_key"))]
        correct[pc.equal(distinct["answer"], NO_ANSWER).to_numpy() & (correct < 0)] = 0  # needs no judge
        valid = (
            first_matches(distinct, _rows_of(self._lists["valid_answers"], positions), ("question_id", "answer")) >= 0
        )
        return Replies(distinct, distinct["owner"].to_numpy(), correct, valid, np.stack(index, axis=-1))

    def _given(self, positions: np.ndarray, readers: Sequence[ReaderInfo]) -> tuple[np.ndarray, Replies]:
        """Return the labels of some questions and what these readers, first the labelers, replied; checked."""
        labels, replies = self.labels_of(positions), self.replies(positions, readers)
        right = replies.valid[replies.index[:, : len(self.labelers)]]
        hit = fully_relevant(np.moveaxis(right, -1, 0))
        wrong = np.argwhere(np.where(hit, FULLY, PARTIALLY) != labels)
        if len(wrong):
            passages, row = self.rows.take(positions), int(wrong[0, 0])
            raise InputError(
                f"{len(wrong)} labels do not follow from the labelers' answers and the valid answers, first that of "
                f"question {self.ids[positions[passages.owner[row]]]!r}, permutation "
                f"{passages.permutation[row].as_py()!r}: run the label stage again."
            )
        return labels, replies


def _rows_of(rows: pa.ListArray, positions: np.ndarray) -> pa.Table:
    """Return the rows of some questions, from :func:`row_lists`."""
    return pa.Table.from_struct_array(rows.take(pa.array(positions)).flatten())
