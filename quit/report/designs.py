"""How label 2 and the readers' success go with the mean convergence and cosine of a passage's hints, and with their
order: each within a number of hints and a question, over a sample of questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypedDict

import numpy as np
import pyarrow as pa

from quit.common.columns import plain
from quit.common.ids import draw
from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.evaluate.significance import resampled_means
from quit.models.factory import Models
from quit.render.table import Table, percent
from quit.report.validity import subject_of_report
from quit.settings import Settings
from quit.stages.labelling.design import cosines
from quit.stages.labelling.passages import PassageRows
from quit.text.words import counted

SAMPLE = 500
"""Questions that are looked at, at most."""
THIRDS = ("lowest third", "middle third", "highest third")
ORDERS = ("descending", "ascending", "other")


class DesignRow(TypedDict):
    """Passages of so many hints in a group ``by`` ``convergence`` or ``cosine`` (the third of a question's sets of as
    many hints by their mean), or by ``order`` of convergence. ``shares``: of label 2, then of each reader's right
    answers: (share, low, high), a 95% bootstrap interval over questions."""

    by: str
    hints: int
    group: str
    passages: int
    shares: list[tuple[float, float, float]]


class DesignFigures(TypedDict):
    """``questions``: sampled ones; ``same_encoder``: what rests on the encoder of embedded readers, or empty."""

    rows: list[DesignRow]
    readers: list[str]
    questions: int
    same_encoder: str


def design_figures(workspace: Workspace | Release, settings: Settings) -> DesignFigures | None:
    """Return the shares of label 2 and of right answers by group. None while answers or labels are not finished."""
    subject = subject_of_report(workspace, settings)
    ids = plain(subject.files.read("splits", ["question_id"])["question_id"]).to_pylist()
    sample = sorted(sorted(ids, key=lambda question_id: draw(question_id, "designs"))[:SAMPLE])
    try:
        dataset = Dataset.read(replace(subject.files, ids=pa.array(sample, pa.string())), subject.readers)
        block = dataset.block(np.arange(len(dataset.ids)))
    except InputError:  # a build that stopped has answers or labels of some questions only
        return None
    passages, hits = block.passages, np.column_stack([block.labels == FULLY, block.right == 1])
    values = {"convergence": [[row["convergence"] for row in hints] for hints in dataset.selected_hints]}
    if all(value is not None for of in values["convergence"] for value in of):
        texts = [[row["hint"] for row in hints] for hints in dataset.selected_hints]
        values["cosine"] = [of.tolist() for of in cosines(Models(settings).encoder, dataset.question_of, texts)]
    else:
        values = {}  # published files lack it
    groups = {name: (THIRDS, _thirds(passages, of)) for name, of in values.items()}
    rows, counts = list[DesignRow](), list[np.ndarray]()
    for by, (names, group) in {**groups, "order": (ORDERS, _orders(passages))}.items():
        for size in np.unique(passages.hints).tolist():
            of_size = passages.hints == size
            present = set(group[of_size].tolist()) - {-1}
            for number in sorted(present) if len(present) > 1 else ():
                inside = of_size & (group == number)
                counts.append(passages.sums(np.vstack([inside, inside & hits.T])))
                rows.append(
                    {"by": by, "hints": size, "group": names[number], "passages": int(inside.sum()), "shares": []}
                )
    for row, shares in zip(rows, _shares(counts), strict=True):
        row["shares"] = shares
    producers = {row["producer"] or "" for hints in dataset.selected_hints for row in hints}
    is_learned = any(name.startswith("learned") for name in producers)
    others = "" if not dataset.embedded else "convergence model and the cosine" if is_learned else "cosine"
    readers = [info.name for info in dataset.ordered_readers]
    return {"rows": rows, "readers": readers, "questions": len(sample), "same_encoder": others}


def _thirds(passages: PassageRows, values: list[list[float]]) -> np.ndarray:
    """Return in which third of its question's sets of as many hints each passage's is, by the mean of its hints'
    ``values``: 0 to 2, -1 where there are fewer than three means."""
    paths, thirds = passages.table.paths, np.full(len(passages), -1)
    for (start, end), of_hints in zip(zip(passages.starts, passages.starts[1:]), values, strict=True):
        codes, sizes = passages.codes[start:end].tolist(), passages.hints[start:end]
        means = np.round([sum(of_hints[rank] for rank in sorted(paths[code])) / len(paths[code]) for code in codes], 9)
        for size in np.unique(sizes):
            inside = np.flatnonzero(sizes == size)
            distinct, place = np.unique(means[inside], return_inverse=True)
            if len(distinct) >= len(THIRDS):
                thirds[start + inside] = place * len(THIRDS) // len(distinct)
    return thirds


def _orders(passages: PassageRows) -> np.ndarray:
    """Return the place among ``ORDERS`` of each passage's order, -1 of a single hint."""
    names = zip(passages.table.permutation.to_pylist(), passages.table.subset.to_pylist(), strict=True)
    kinds = [
        -1 if len(name) == 1 else 0 if name == subset else 1 if name == subset[::-1] else 2 for name, subset in names
    ]
    return np.array(kinds)[passages.codes]


def _shares(counts: list[np.ndarray]) -> list[list[tuple[float, float, float]]]:
    """Return the shares of each group with their 95% bootstrap intervals; the groups share their draws of questions.
    ``counts``: of each group its passages, then hits of each kind, shape (1 + kinds, questions)."""
    if not counts:
        return []
    columns = np.concatenate(counts).T
    means = np.vstack([columns.mean(axis=0), resampled_means(columns, 2000, 0)]).reshape(2001, len(counts), -1)
    with np.errstate(invalid="ignore"):
        shares = means[:, :, 1:] / means[:, :, :1]  # NaN: a draw without the group
    ends = np.nanquantile(shares[1:], [0.025, 0.975], axis=0)
    return [[*zip(*of_group, strict=True)] for of_group in np.stack([shares[0], *ends]).transpose(1, 0, 2).tolist()]


def design_pieces(figures: DesignFigures) -> Iterator[str | Table]:
    """Yield the figures as tables, one per grouping, and what they rest on."""
    yield (
        f"Passages of {counted(figures['questions'], 'question')}. Thirds: of the different means that a question's "
        "sets of as many hints have, where it has three; descending: the hint of highest convergence first. In "
        "brackets: 95% intervals over questions."
    )
    if figures["same_encoder"]:
        others = figures["same_encoder"]
        yield f"The embedded readers and the {others} rest on one encoder: what they share shows here too."
    titles = {"convergence": "mean convergence of the hints", "cosine": "mean cosine of question and hint",
              "order": "order of convergence"}  # fmt: skip
    for by, title in titles.items():
        rows = [
            (row["hints"], row["group"], row["passages"],
             *(f"{percent(share)} ({percent(low)}-{percent(high)})" for share, low, high in row["shares"]))
            for row in figures["rows"] if row["by"] == by
        ]  # fmt: skip
        heads = ("hints", "group", "passages", "label 2", *figures["readers"])
        if rows:
            yield Table(f"By {title}", heads, rows, (1, *range(3, len(heads))), fold=by != "convergence")
