"""The tables of *Context Convergence* (Mozafari, Piryani and Jatowt, SIGIR 2026) from a build or a release whose
passages are sets of hints with the lowest and the highest mean convergence or cosine."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.progress import note
from quit.dataset.dataset import Dataset
from quit.errors import InputError
from quit.models.factory import Models
from quit.models.protocols import NO_ANSWER
from quit.release.gates import Subject
from quit.release.subjects import subject_from
from quit.release.view import open_to_read
from quit.stages.labelling.design import cosines, extremes, subsets
from quit.stages.labelling.passages import permutation_name

METRICS = ("equal", "contained", "precision", "recall", "f1")


def answer_scores(reply: str, answers: Sequence[str]) -> tuple[float, ...]:
    """Return the ``METRICS`` of a reply, 0 to 1: whether it equals a gold answer; whether one contains the other;
    precision, recall and F1 of words, of the gold answer with the highest F1. In lower case; NO ANSWER is wrong."""
    text = "" if reply == NO_ANSWER else reply.lower().strip()
    words, best = Counter(re.findall(r"\w+", text)), [0.0, 0.0, 0.0]
    if not text:
        return (0.0, 0.0, *best)
    golds = [answer.lower().strip() for answer in answers]
    for gold in golds:
        gold_words = Counter(re.findall(r"\w+", gold))
        common, counts = (words & gold_words).total(), (words.total(), gold_words.total())
        best = max(best, [2 * common / max(1, sum(counts)), *(common / max(1, count) for count in counts)])
    contained = any(gold in text or text in gold for gold in golds)
    return (float(text in golds), float(contained), *best[1:], best[0])


def design_rows(path: Path) -> list[dict[str, Any]]:
    """Return the mean ``METRICS`` of a build's or release's passages by ``reader``, ``by`` (what chose a set of hints:
    ``convergence``, ``cosine``), ``end`` (``low``, ``high``) and ``order`` (``both``, ``ascending``, ``descending``),
    with the number of ``passages``.

    Raises ``InputError`` where passages are no such extremes, or some readers were not asked about some of them.
    """
    subject = subject_from(open_to_read(path))
    dataset, design = _checked(subject, path), subject.settings.passages
    texts = [[row["hint"] for row in hints] for hints in dataset.selected_hints]
    encoder = Models(subject.settings).encoder
    by_cosine = cosines(encoder, dataset.question_of, texts) if "cosine" in design.by else []

    def ends_of(position: int) -> dict[tuple[str, str], set[str]]:
        """Return by what, and end -> the names of a question's chosen sets."""
        hints = dataset.selected_hints[position]
        sets, chosen = [*subsets(len(hints), design)], dict[tuple[str, str], set[str]]()
        for by in design.by:
            values = by_cosine[position] if by == "cosine" else np.array([row["convergence"] or 0.0 for row in hints])
            names = [permutation_name(sets[place]) for place in extremes(values, sets, design.extremes)]
            chosen[by, "low"], chosen[by, "high"] = ({*half} for half in np.array_split(names, 2))
        return chosen

    readers = [info.name for info in dataset.ordered_readers]
    sums = defaultdict[tuple[str, ...], np.ndarray](lambda: np.zeros(1 + len(METRICS)))
    for block in dataset.blocks(np.arange(len(dataset.ids))):
        names, sets = (column.to_pylist() for column in (block.passages.table.permutation, block.passages.table.subset))
        for position, (start, stop) in zip(block.positions.tolist(), pairwise(block.passages.starts.tolist())):
            golds, ends = dataset.gold_answers_of[position], ends_of(position)
            scores = {code: answer_scores(block.values[code], golds) for code in np.unique(block.codes[start:stop])}
            for code, replies in zip(block.passages.codes[start:stop], block.codes[start:stop], strict=True):
                descends, is_single = names[code] == sets[code], len(sets[code]) == 1
                orders = ["both", *["descending"] * descends, *["ascending"] * (is_single or not descends)]
                for (by, end), chosen in ends.items():
                    for reader, reply in zip(readers, replies) if sets[code] in chosen else ():
                        for order in orders:
                            sums[reader, by, end, order] += (1.0, *scores[reply])
    return [
        {**dict(zip(("reader", "by", "end", "order"), key)), "passages": int(total[0]),
         **dict(zip(METRICS, (total[1:] / total[0]).tolist()))}
        for key, total in sums.items()
    ]  # fmt: skip


def _checked(subject: Subject, path: Path) -> Dataset:
    design = subject.settings.passages
    if not design.extremes or not {*design.orders} <= {"ascending", "descending"}:
        raise InputError(
            f"The passages of {path} are not the sets of hints with the lowest and highest mean convergence or "
            "cosine, in ascending or descending order: build with --profile convergence (docs/howto/designs.md)."
        )
    dataset = Dataset.read(subject.files, subject.readers)
    if dataset.partly_asked:
        raise InputError(f"Not every reader was asked about every passage. To have them asked: {dataset.fill_in}")
    if dataset.embedded:
        note("Embedded readers are no language models: their figures show the computation, not the effect.", loud=True)
    return dataset
