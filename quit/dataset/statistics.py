"""Statistics of a release (paper, table 1), and labels by number of hints, difficulty and type.

All figures except one are exact over all passages and need no passage text: words of a passage are those of its hints,
and its word set is the union of theirs. Only semantic similarity is estimated, from a seeded sample of at most 500
passages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.columns import plain, positions_in
from quit.common.parquet import KEYS
from quit.common.rows import grouped
from quit.dataset.files import TableFiles, aligned, lists
from quit.errors import InputError
from quit.evaluate.labels import ALL, SPLITS
from quit.models.protocols import Encoder
from quit.settings.construction import MAX_HINTS
from quit.stages.labelling.passages import PassageRows, joined_hints, passage_texts
from quit.stages.leaks.containment import hints_of_occurrence

TABLES = ("questions", "ranked_hints", "descriptions", "splits", "passages", "labels", "valid_answers")
"""Tables that statistics are counted from."""
_LARGE = {"passages": KEYS, "labels": (*KEYS, "label")}
SAMPLE = 500
_STOP_WORDS = frozenset((files("quit.text") / "nltk_stop_words.txt").read_text(encoding="utf-8").split())
"""NLTK's English stop words, 179."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Table 1 for one split (or ``all``). Lengths are means in words, split on single spaces; None where there are no
    rows.

    ``answer_words``: over the valid answers, as released; ``gold_answer_words``: over the gold answers.
    ``lexical_overlap``: mean Jaccard index of the word sets of question and passage, 0 to 1, as the paper's script
    counts it: split on single spaces, case and punctuation kept, without NLTK's English stop words (in lower case).
    ``answer_containment``: share of passages with any valid answer as a case-insensitive substring, 0
    to 1. ``semantic_similarity``: mean cosine of question and passage over ``similarity_sample`` passages,
    -1 to 1, None if no encoder was given; ``similarity_error`` is its standard error.
    """

    split: str
    questions: int
    passages: int
    question_words: float | None
    passage_words: float | None
    answer_words: float | None
    gold_answer_words: float | None
    lexical_overlap: float | None
    answer_containment: float | None
    semantic_similarity: float | None = None
    similarity_error: float | None = None
    similarity_sample: int = 0


@dataclass(frozen=True)
class Statistics:
    """What a release reports about itself.

    ``summary``: one ``Summary`` per split with questions, then ``all``. ``by_hints``, ``by_type``, ``by_difficulty``:
    Arrow tables with split, the group (n_hints int16; coarse or difficulty_bin string), label (int8), passages
    (int64) and share (float64, of the group's passages in that split), ordered by these. ``contained``: ids of
    questions with a passage that contains a valid answer. ``encoder``: identity of the encoder behind the similarity,
    or None.
    """

    summary: tuple[Summary, ...]
    by_hints: pa.Table
    by_type: pa.Table
    by_difficulty: pa.Table
    contained: tuple[str, ...]
    encoder: str | None = None

    def to_dict(self) -> dict:
        """Return everything as JSON-like values."""
        groups = {name: getattr(self, name).to_pylist() for name in ("by_hints", "by_type", "by_difficulty")}
        summary = [asdict(split) for split in self.summary]
        return {"summary": summary, **groups, "contained": list(self.contained), "encoder": self.encoder}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Statistics:
        """Return what :meth:`to_dict` made these values of."""
        return cls(
            summary=tuple(Summary(**row) for row in values["summary"]),
            **{name: pa.Table.from_pylist(values[name]) for name in ("by_hints", "by_type", "by_difficulty")},
            contained=tuple(values["contained"]),
            encoder=values["encoder"],
        )


def statistics(tables: Mapping[str, Any], encoder: Encoder | None = None, sample: int = SAMPLE) -> Statistics:
    """Return the statistics of the questions in ``splits``; the other tables may hold more.

    ``tables``: those of :data:`TABLES`, by name; ``passages`` and ``labels`` may be given in
    pieces, encoded or not. At most ``sample``
    passages, drawn from all splits, are encoded. Raises ``InputError`` when a question has no row in a table.
    """
    facts = _Facts(tables)
    per_question = {
        "question_words": np.array([len(text.split(" ")) for text in facts.questions], dtype=float),
        **{name: np.zeros(len(facts.ids)) for name in ("passage_words", "lexical_overlap")},
        "answer_containment": _containment(facts),
    }
    for places in facts.alike():
        questions, hints = [facts.questions[place] for place in places], [facts.hints[place] for place in places]
        passages = facts.passages.take(places[:1])
        per_question["passage_words"][places] = _passage_words(hints, passages)
        per_question["lexical_overlap"][places] = _overlap(questions, hints, passages)
    similarity = _similarity(facts, encoder, sample) if encoder is not None else None
    present = [*(split for split in SPLITS if split in facts.splits), ALL]
    counts = _label_counts(facts)
    return Statistics(
        summary=tuple(_summary(facts, split, per_question, similarity) for split in present),
        by_hints=_grouped(facts, present, counts, "n_hints", None),
        by_type=_grouped(facts, present, counts, "coarse", facts.coarse),
        by_difficulty=_grouped(facts, present, counts, "difficulty_bin", facts.bins),
        contained=tuple(np.array(facts.ids, dtype=object)[per_question["answer_containment"] > 0].tolist()),
        encoder=encoder.identity if encoder is not None else None,
    )


def statistics_of(files: TableFiles, encoder: Encoder | None = None) -> Statistics:
    """Return the statistics of a workspace's or a release's files. Raises as :func:`statistics` does."""
    large = {name: files.batches(name, columns) for name, columns in _LARGE.items()}
    return statistics({name: large.get(name) or files.read(name) for name in TABLES}, encoder)


class _Facts:
    """The small tables as lists in the order of ``splits``."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        splits, ranked_hints = tables["splits"], tables["ranked_hints"]
        self.ids: list[str] = splits["question_id"].to_pylist()
        if not self.ids:
            raise InputError("There is nothing to count: the table 'splits' holds no question.")
        self.splits: list[str] = splits["split"].to_pylist()
        questions = aligned("questions", tables["questions"], self.ids)
        self.questions: list[str] = questions["question"].to_pylist()
        self.gold: list[list[str]] = questions["answers"].to_pylist()
        descriptions = aligned("descriptions", tables["descriptions"], self.ids)
        self.coarse: list[str] = descriptions["coarse"].to_pylist()
        self.bins: list[str] = descriptions["difficulty_bin"].to_pylist()
        ids = pa.array(self.ids)
        self.valid: list[list[str]] = lists(tables["valid_answers"], "answer", ids).to_pylist()
        selected = ranked_hints.filter(ranked_hints["selected"])
        hints = lists(selected.sort_by("rank"), "hint", ids)
        self.hints: list[list[str]] = hints.to_pylist()
        pieces = {name: tables[name] for name in ("passages", "labels")}
        in_pieces = {name: [rows] if isinstance(rows, pa.Table) else rows for name, rows in pieces.items()}
        self.labels, self.passages = in_pieces["labels"], PassageRows.of(in_pieces["passages"], ids)
        self.passages.check_hints(self.ids, hints)
        for name, wrong in (
            ("labels", self.passages.counts == 0),
            ("ranked_hints", np.array([*map(len, self.hints)]) == 0),
        ):
            if wrong.any():
                raise InputError(f"The table {name!r} has no row for the question {self.ids[wrong.argmax()]!r}.")

    def alike(self) -> Iterator[np.ndarray]:
        """Yield the questions (places) that have the same permutations: all at once where passages are QUIT's."""
        codes = self.passages.by_question(self.passages.codes)
        yield from map(np.array, grouped((row.tobytes(), place) for place, row in enumerate(codes)).values())

    def mask(self, split: str) -> np.ndarray:
        return np.ones(len(self.ids), dtype=bool) if split == ALL else np.array(self.splits) == split


def _summary(facts: _Facts, split: str, per_question: dict, similarity: tuple | None) -> Summary:
    mask = facts.mask(split)
    of_questions = facts.passages.counts[mask]
    figures: dict[str, Any] = {
        "answer_words": _answer_words(facts.valid, mask),
        "gold_answer_words": _answer_words(facts.gold, mask),
    }
    weights = None if len(np.unique(of_questions)) == 1 else of_questions
    for name, values in per_question.items():
        figures[name] = float(np.average(values[mask], weights=None if name == "question_words" else weights))
    if similarity is not None:
        owner, values = similarity
        values = values[mask[owner]]
        figures["similarity_sample"] = len(values)
        if len(values):
            figures["semantic_similarity"] = float(values.mean())
            error = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
            figures["similarity_error"] = error
    return Summary(split=split, questions=int(mask.sum()), passages=int(of_questions.sum()), **figures)


def _answer_words(answers: Sequence[Sequence[str]], mask: np.ndarray) -> float | None:
    lengths = [len(text.split(" ")) for texts, inside in zip(answers, mask) if inside for text in texts]
    return float(np.mean(lengths)) if lengths else None


def _passage_words(hints: Sequence[Sequence[str]], passages: PassageRows) -> np.ndarray:
    """Return the mean passage length of questions in words. ``passages``: the passages that each of them has."""
    hint_ranks = np.concatenate([passages.table.paths[code] for code in passages.codes])
    copies = np.bincount(hint_ranks)  # passages that have each hint
    lengths = np.array([[len(hint.split(" ")) for hint in texts[: len(copies)]] for texts in hints], dtype=float)
    return lengths @ copies / len(passages)


def _overlap(questions: Sequence[str], hints: Sequence[Sequence[str]], passages: PassageRows) -> np.ndarray:
    """Return the mean Jaccard index of a question's words and its passages' words, exact: float64, shape (questions,).
    ``passages``: the passages that each question has.

    The word set of a passage depends only on its subset. Words are counted by the set of hints that hold them (a bit
    mask), once all and once those of the question; a matrix product then sums them up for every subset.
    """
    if passages.table.n > MAX_HINTS:  # given passages: a text each, and more than an integer has bits
        pairs = [
            [(_word_set(question), _word_set(text)) for text in of_one] for question, of_one in zip(questions, hints)
        ]
        return np.array([np.mean([len(a & b) / max(1, len(a | b)) for a, b in texts]) for texts in pairs])
    sets = [sum(1 << index for index in passages.table.paths[code]) for code in passages.codes]
    subsets, orders = np.unique(sets, return_counts=True)
    of_questions, bits = [_word_set(question) for question in questions], [dict[str, int]() for _ in hints]
    for masks_of, texts in zip(bits, hints, strict=True):
        for index, hint in enumerate(texts):
            for word in _word_set(hint):
                masks_of[word] = masks_of.get(word, 0) | 1 << index
    masks = np.array(sorted({mask for masks_of in bits for mask in masks_of.values()}), dtype=np.int64)
    words, question_overlap = np.zeros((2, len(hints), len(masks)))
    column = {mask: place for place, mask in enumerate(masks.tolist())}
    for row, (of_question, masks_of) in enumerate(zip(of_questions, bits, strict=True)):
        for word, mask in masks_of.items():
            words[row, column[mask]] += 1
            question_overlap[row, column[mask]] += word in of_question
    question_words = np.array([*map(len, of_questions)], dtype=float)
    meets = ((masks[:, None] & subsets[None]) > 0).astype(float)  # (mask of a word, subset)
    both = question_overlap @ meets
    either = question_words[:, None] + words @ meets - both
    jaccard = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    return jaccard @ (orders / orders.sum())


def _word_set(text: str) -> set[str]:
    return set(text.split(" ")) - _STOP_WORDS


def _containment(facts: _Facts) -> np.ndarray:
    """Return the share of each question's passages that hold a valid answer: float64, shape (questions,)."""
    share = np.zeros(len(facts.ids))
    for row, (some, answers) in enumerate(zip(facts.hints, facts.valid)):
        if any(hints_of_occurrence(answer, some) is not None for answer in answers):  # seldom: only then is text needed
            passages = facts.passages.take(np.array([row]))
            texts = passage_texts([[hint.casefold() for hint in some]], passages).to_pylist()
            share[row] = sum(any(answer.casefold() in text for answer in answers) for text in texts) / len(texts)
    return share


def _similarity(facts: _Facts, encoder: Encoder, sample: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each passage of the sample its question's position and its cosine with the question."""
    passages, total = facts.passages, len(facts.passages)
    passage_numbers = np.array(
        sorted(random.Random("statistics").sample(range(total), min(sample, total))), dtype=np.int64
    )
    owner, codes = passages.owner[passage_numbers], passages.codes[passage_numbers]
    hints = pa.array(facts.hints, pa.list_(pa.string()))
    texts = joined_hints(hints, passages.table, owner, codes).to_pylist()
    positions, row_of = np.unique(owner, return_inverse=True)
    of_questions = encoder.encode([facts.questions[position] for position in positions.tolist()])
    cosine = (of_questions[row_of] * encoder.encode(texts)).sum(axis=1, dtype=np.float64)
    return owner, cosine


def _label_counts(facts: _Facts) -> np.ndarray:
    """Return passages by question, number of hints (n at most) and label: int64, shape (questions, n + 1, 3)."""
    n = int(facts.passages.table.hints.max())
    ids = pa.array(facts.ids)
    counts = np.zeros((len(facts.ids), n + 1, 3), dtype=np.int64)
    for rows in facts.labels:
        cells = (
            positions_in(rows["question_id"], ids),
            pc.utf8_length(plain(rows["permutation"])).to_numpy(),
            rows["label"].to_numpy(),
        )
        ours = cells[0] >= 0
        question, hints, label = (cell[ours] for cell in cells)
        if len(hints) and (label.min() < 0 or label.max() > 2):
            raise InputError("The table 'labels' holds a label other than 0 to 2.")
        np.add.at(counts, (question, hints, label), 1)
    return counts


def _grouped(facts: _Facts, splits: Sequence[str], counts: np.ndarray, name: str, of: list[str] | None) -> pa.Table:
    """Return passages and share by split, group and label. ``of``: each question's group; None: number of hints."""
    rows = []
    for split in splits:
        in_split = facts.mask(split)
        if of is None:
            sizes = np.unique(facts.passages.take(np.flatnonzero(in_split)).hints)
            groups = {size: counts[in_split, size].sum(axis=0) for size in sizes.tolist()}
        else:
            keys = np.array(of, dtype=object)
            names = sorted(set(keys[in_split]) - {None})
            groups = {key: counts[in_split & (keys == key)].sum(axis=(0, 1)) for key in names}
        for group, by_label in groups.items():
            for label in (1, 2):
                share = by_label[label] / max(1, by_label.sum())
                rows.append((split, group, label, int(by_label[label]), float(share)))
    kinds = (pa.string(), pa.int16() if of is None else pa.string(), pa.int8(), pa.int64(), pa.float64())
    columns = zip(*rows) if rows else [()] * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds)]
    return pa.table(arrays, names=["split", name, "label", "passages", "share"])
