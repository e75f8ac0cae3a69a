"""A QUIT release as a corpus: documents are hints, subsets of hints or permutations; queries the questions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from quit.common.ids import HINT_CHARACTERS
from quit.dataset.dataset import Dataset
from quit.retrieval.records import CorpusRecord, RawDocument, RawQuery, clean
from quit.stages.labelling.passages import passage_hints, subset_of
from quit.text.answers import answer_key

EXPECTED = "the folder of a release, such as workspace/releases/v1"
Granularity = Literal["hint", "subset", "permutation"]


def read(path: Path, *, granularity: Granularity = "subset") -> Iterator[CorpusRecord]:
    """Yield one record per question of a release, in the order of its splits.

    ``granularity``: the hints, their subsets that make passages (hints in rank order) or the permutations: 5, 31 or 325
    per question of QUIT. The relevance of a document is the highest label among the permutations it stands for; a hint
    that no passage has alone is not judged. Raises ``InputError`` when the release is not what was frozen, or a
    question lacks labels.
    """
    dataset = Dataset.of_release(path)
    rows = dataset.rows
    permutations = rows.table.permutation.to_pylist()
    labels = dataset.labels_of(np.arange(len(dataset.ids)))
    questions = zip(dataset.ids, dataset.gold_answers_of, pairwise(rows.starts.tolist()), strict=True)
    for position, (question_id, gold, (start, end)) in enumerate(questions):
        texts = [clean(row["hint"]) for row in dataset.selected_hints[position]]
        pairs = zip(rows.codes[start:end].tolist(), labels[start:end].tolist(), strict=True)
        label = {permutations[code]: relevance for code, relevance in pairs}
        documents = list(_documents(texts, label, granularity))
        relevant = tuple((row, relevance) for row, (_, relevance) in enumerate(documents) if relevance)
        gold_keys = {answer_key(answer) for answer in gold}
        others = (answer for answer in dataset.valid_answers_of[position] if answer_key(answer) not in gold_keys)
        split = dataset.split_names[position]
        query = RawQuery(clean(dataset.question_of[position]), (*gold, *others), relevant, kind=split)
        name = dataset.provenance["release"]
        yield CorpusRecord("quit", name, position, question_id, tuple(raw for raw, _ in documents), (query,))


def _documents(texts: list[str], label: dict[str, int], granularity: Granularity) -> Iterator[tuple[RawDocument, int]]:
    best = dict(label)
    if granularity == "hint":
        best = {hint: label.get(hint, 0) for hint in HINT_CHARACTERS[: len(texts)]}
    elif granularity == "subset":
        best = dict.fromkeys(sorted(map(subset_of, label), key=lambda subset: (len(subset), subset)), 0)
        for permutation, relevance in label.items():
            best[subset_of(permutation)] = max(relevance, best[subset_of(permutation)])
    for name, relevance in best.items():
        yield RawDocument("", " ".join(passage_hints(texts, name)), name), relevance
