"""A QUIT release as a corpus: documents are hints, subsets of hints or permutations; queries the questions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from quit.corpora.records import CorpusRecord, RawDocument, RawQuery, clean
from quit.errors import InputError
from quit.evaluate.normalize import normalize_answer
from quit.release.release import Release, verify
from quit.stages.passages import permutation_table, subset_of

EXPECTED = "the folder of a release, such as workspace/releases/v1"
Granularity = Literal["hint", "subset", "permutation"]


def read(path: Path, *, granularity: Granularity = "subset") -> Iterator[CorpusRecord]:
    """Yield one record a question of a release, in the order of its splits.

    ``granularity``: 5 hints, 31 subsets (their hints in rank order) or 325 permutations a question of five hints. The
    relevance of a document is the highest label among the permutations it stands for. Raises ``InputError`` when the
    release is not what was frozen, or a question lacks labels.
    """
    release = verify(path)
    files = release.files
    splits = files.read("splits", ["question_id", "split"]).to_pydict()
    questions = {row["question_id"]: row for row in files.read("questions").to_pylist()}
    hints = _selected_hints(release)
    valid: dict[str, list[str]] = {}
    for row in files.read("valid_answers", ["question_id", "answer"]).to_pylist():
        valid.setdefault(row["question_id"], []).append(row["answer"])
    labels = _Labels(release)
    for position, (question_id, split) in enumerate(zip(splits["question_id"], splits["split"], strict=True)):
        texts = [clean(hint) for hint in hints[question_id]]
        label = labels.of(question_id, len(texts))
        documents = list(_documents(texts, label, granularity))
        relevant = tuple((row, relevance) for row, (_, relevance) in enumerate(documents))
        gold = questions[question_id]["answers"]
        known = {normalize_answer(answer) for answer in gold}
        answers = (*gold, *(answer for answer in valid.get(question_id, ()) if normalize_answer(answer) not in known))
        query = RawQuery(clean(questions[question_id]["question"]), tuple(answers), relevant, kind=split)
        yield CorpusRecord("quit", release.name, position, question_id, tuple(raw for raw, _ in documents), (query,))


def _documents(texts: list[str], label: dict[str, int], granularity: Granularity) -> Iterator[tuple[RawDocument, int]]:
    if granularity == "permutation":
        for permutation, relevance in label.items():
            yield RawDocument("", " ".join(texts[int(digit)] for digit in permutation), permutation), relevance
        return
    best: dict[str, int] = {}
    for permutation, relevance in label.items():
        best[subset_of(permutation)] = max(relevance, best.get(subset_of(permutation), 0))
    sizes = range(1, (1 if granularity == "hint" else len(texts)) + 1)
    for chosen in (indexes for size in sizes for indexes in combinations(range(len(texts)), size)):
        subset = "".join(map(str, chosen))
        yield RawDocument("", " ".join(texts[index] for index in chosen), subset), best[subset]


def _selected_hints(release: Release) -> dict[str, list[str]]:
    rows = release.files.read("ranked_hints", ["question_id", "rank", "hint", "selected"]).to_pylist()
    hints: dict[str, list[str]] = {}
    for row in sorted((row for row in rows if row["selected"]), key=lambda row: row["rank"]):
        hints.setdefault(row["question_id"], []).append(row["hint"])
    return hints


class _Labels:
    """The labels of one question at a time, without a row of Python for each of 2.4 million."""

    def __init__(self, release: Release) -> None:
        keys = ["question_id", "permutation"]
        table = release.files.read("labels", [*keys, "label"], keys).unify_dictionaries().combine_chunks()
        self._label = table["label"].to_numpy()
        if not table.num_rows:
            raise InputError(f"The release {release.path} holds no label.")
        columns = [table[key].chunk(0) for key in keys]
        codes = columns[0].indices.to_numpy()
        self._permutation = columns[1].indices.to_numpy()
        self._names = columns[1].dictionary.to_pylist()
        starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1, [len(codes)]])
        question_ids = columns[0].dictionary.to_pylist()
        self._rows = {question_ids[codes[low]]: (low, high) for low, high in pairwise(starts.tolist())}
        self._path = release.path

    def of(self, question: str, hints: int) -> dict[str, int]:
        """Return permutation -> label, depth first."""
        low, high = self._rows.get(question, (0, 0))
        labels = {
            self._names[code]: int(label)
            for code, label in zip(self._permutation[low:high].tolist(), self._label[low:high], strict=True)
        }
        if len(labels) != len(permutation_table(hints)):
            raise InputError(
                f"The release {self._path} has {len(labels)} labels for the question {question!r}, expected "
                f"{len(permutation_table(hints))}."
            )
        return labels
