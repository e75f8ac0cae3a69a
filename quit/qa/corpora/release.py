"""A QUIT release as a corpus: documents are hints, subsets of hints or permutations; queries the questions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np

from quit.dataset.dataset import Dataset
from quit.retrieval.records import CorpusRecord, RawDocument, RawQuery, clean
from quit.stages.labelling.passages import passage_hints, subset_of
from quit.text.answers import answer_key

EXPECTED = "the folder of a release, such as workspace/releases/v1"
Granularity = Literal["hint", "subset", "permutation"]


def read(path: Path, *, granularity: Granularity = "subset") -> Iterator[CorpusRecord]:
    """Yield one record per question of a release, in the order of its splits.

    ``granularity``: 5 hints, 31 subsets (their hints in rank order) or 325 permutations per question of five hints. The
    relevance of a document is the highest label among the permutations it stands for. Raises ``InputError`` when the
    release is not what was frozen, or a question lacks labels.
    """
    dataset = Dataset.of_release(path)
    permutations = dataset.permutations.permutation.to_pylist()
    labels = dataset.labels_of(np.arange(len(dataset.ids)))
    for position, (question_id, gold) in enumerate(zip(dataset.ids, dataset.gold_answers_of, strict=True)):
        texts = [clean(row["hint"]) for row in dataset.selected_hints[position]]
        label = dict(zip(permutations, labels[position].tolist(), strict=True))
        documents = list(_documents(texts, label, granularity))
        relevant = tuple((row, relevance) for row, (_, relevance) in enumerate(documents))
        gold_keys = {answer_key(answer) for answer in gold}
        others = (answer for answer in dataset.valid_answers_of[position] if answer_key(answer) not in gold_keys)
        split = dataset.split_names[position]
        query = RawQuery(clean(dataset.question_of[position]), (*gold, *others), relevant, kind=split)
        name = dataset.provenance["release"]
        yield CorpusRecord("quit", name, position, question_id, tuple(raw for raw, _ in documents), (query,))


def _documents(texts: list[str], label: dict[str, int], granularity: Granularity) -> Iterator[tuple[RawDocument, int]]:
    if granularity == "permutation":
        for permutation, relevance in label.items():
            yield RawDocument("", " ".join(passage_hints(texts, permutation)), permutation), relevance
        return
    best: dict[str, int] = {}
    for permutation, relevance in label.items():
        best[subset_of(permutation)] = max(relevance, best.get(subset_of(permutation), 0))
    sizes = range(1, (1 if granularity == "hint" else len(texts)) + 1)
    for subset in ("".join(digits) for size in sizes for digits in combinations("0123456789"[: len(texts)], size)):
        yield RawDocument("", " ".join(passage_hints(texts, subset)), subset), best[subset]
