"""Train ``quit/models/weights/convergence.safetensors`` on published convergence, and say how good it is on unseen
questions.

    OMP_NUM_THREADS=1 python -m training.convergence --data ../shared/data --out
    quit/models/weights/convergence.safetensors

Reads ``triviahg/*.json`` and ``wikihint/*.json`` of the data folder. One thread: on one machine the same bytes come out
each time. Takes some minutes of a free core. Prints Spearman's correlation with the published values, out of fold: ten
folds by question (no question is in two folds, whatever file it is in), mean over ten divisions into folds, since one
division may be two points better than another; and one file at a time left out (other hints for the same questions).
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from quit.common.arithmetic import products
from quit.evaluate.association import spearman
from quit.models.convergence import KernelRidge, standardised
from quit.models.convergence_features import NAMES, features, meanings
from quit.models.convergence_scored import convergence
from quit.models.encoders.cache import CachingEncoder
from quit.models.minilm.encoder import MiniLM
from quit.models.protocols import HintSet
from quit.render.table import number
from quit.settings import Convergence
from quit.sources import parse_source, read_source
from quit.text.answers import answer_key

FOLDS = 10
DIVISIONS = 10
"""Of the questions into folds."""
WIDTHS = (1.0, 0.7, 0.7)
"""Of the likenesses (features, hint, hint times gold answer), in units of one over the mean squared distance."""
RIDGE = 6.0
CEILING = 0.9
"""Cosine from which two hints about one question, of two files, count as saying the same."""

PLAIN_MARGIN = 0.02
"""Cosine below the gold answer's from which a hint does not refer to a candidate, where cosines alone decide."""


@dataclass(frozen=True)
class Rows:
    """Everything known of the hints with a published convergence, one row a hint."""

    files: np.ndarray
    questions: np.ndarray
    features: np.ndarray
    hints: np.ndarray
    golds: np.ndarray
    gold: np.ndarray
    published: np.ndarray
    plain: np.ndarray

    @property
    def products(self) -> np.ndarray:
        """Hint vectors times the gold answer's."""
        return self.hints * self.golds[self.gold]


def read(data: Path) -> Rows:
    """Read the sources and compute the model's inputs. Vectors are rounded to float16, as they are stored."""
    settings, encoder = Convergence(), CachingEncoder(MiniLM())
    parts: list[tuple] = []
    for kind in ("triviahg", "wikihint"):
        for path in sorted((data / kind).glob("*.json")):
            for record in read_source(parse_source(f"{kind}:{path}")):
                one = record.question
                known = [hint for hint in one.hints if hint.convergence is not None] if one else []
                if one is None or not known:
                    continue
                own = {answer_key(answer) for answer in one.answers}
                rivals = [name for name in one.candidates if answer_key(name) not in own]
                counted = tuple(rivals[: settings.candidate_cap - 1])
                item = HintSet(one.question, tuple(h.text for h in known), one.answers[0], counted, one.coarse)
                hints, gold = meanings(item, encoder)
                published = [hint.convergence for hint in known]
                parts.append(
                    (path.stem, one.question, features(item, encoder), hints, gold, published, _plain(item, encoder))
                )
    sizes = [len(part[5]) for part in parts]
    return Rows(
        files=np.repeat([part[0] for part in parts], sizes),
        questions=np.repeat([answer_key(part[1]) for part in parts], sizes),
        features=np.concatenate([part[2] for part in parts]),
        hints=_half(np.concatenate([part[3] for part in parts])),
        golds=_half(np.stack([part[4] for part in parts])),
        gold=np.repeat(np.arange(len(parts)), sizes).astype(np.int32),
        published=np.concatenate([part[5] for part in parts]),
        plain=np.concatenate([part[6] for part in parts]),
    )


def _plain(item: HintSet, encoder: CachingEncoder) -> list[float]:
    """Return the convergence of hints by cosines alone: a hint may refer to every candidate that is about as near to it
    as the gold answer, and does not refer to this one if most candidates are nearer."""
    if not item.distractors:
        return [0.0] * len(item.hints)
    near = products(encoder.encode(list(item.hints)), encoder.encode([*item.distractors, item.gold]))
    distractors, gold = near[:, :-1], near[:, -1:]
    refers = gold >= np.median(distractors, axis=1, keepdims=True)
    scores = np.hstack([distractors >= gold - PLAIN_MARGIN, refers]).astype(int).tolist()
    return [convergence(row[:-1], row[-1]) for row in scores]


def fit(rows: Rows, train: np.ndarray) -> dict[str, np.ndarray]:
    """Fit on the rows of ``train`` (flags) and return the arrays of :class:`KernelRidge`."""
    x = rows.features[train]
    mean = x.mean(axis=0)
    scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    ready = _half(standardised(x, mean, scale))
    widths, kernel = [], np.zeros((len(x), len(x)))
    for part, width in zip((ready, rows.hints[train], rows.products[train]), WIDTHS, strict=True):
        squares = (part * part).sum(axis=1)
        distance = np.maximum(squares[:, None] + squares[None, :] - 2.0 * (part @ part.T), 0.0)
        widths.append(width / distance.mean())
        kernel += np.exp(-widths[-1] * distance)
    kernel[np.diag_indices_from(kernel)] += RIDGE
    base = rows.published[train].mean()
    used, gold = np.unique(rows.gold[train], return_inverse=True)
    return {
        "features": ready.astype(np.float16),
        "hints": rows.hints[train].astype(np.float16),
        "golds": rows.golds[used].astype(np.float16),
        "gold": gold.astype(np.int32),
        "weights": cho_solve(cho_factor(kernel), rows.published[train] - base),
        "mean": mean,
        "scale": scale,
        "widths": np.array(widths),
        "base": np.array(base),
    }


def out_of_fold(rows: Rows, fold: np.ndarray, log: Callable[[str], None]) -> np.ndarray:
    """Return for each row the value by a model that was fitted on the other folds."""
    values = np.full(len(fold), np.nan)
    for one in np.unique(fold):
        held = fold == one
        model = KernelRidge(fit(rows, ~held))
        values[held] = model.predict(rows.features[held], rows.hints[held], rows.products[held])
        log(f"fold {one}: {held.sum()} rows held out")
    return values


def fold_of(question: str, division: int) -> int:
    """Return a question's fold: a hash of its normalised text."""
    return int(hashlib.sha256(f"{division}{question}".encode()).hexdigest(), 16) % FOLDS


def report(rows: Rows, columns: dict[str, list[np.ndarray]]) -> None:
    """Print Spearman's correlation with the published values, per file the mean over a column's arrays of values."""
    print("| file | n | " + " | ".join(columns) + " |")
    print("|---" * (2 + len(columns)) + "|")
    parts = {name: rows.files == name for name in np.unique(rows.files)} | {"all": np.ones(len(rows.files), dtype=bool)}
    for name, part in parts.items():
        labels = rows.published[part]
        figures = [np.mean([spearman(labels, each[part]) or 0.0 for each in column]) for column in columns.values()]
        print(f"| {name} | {part.sum()} | " + " | ".join(f"{mean:.3f}" for mean in figures) + " |")


def variance(rows: Rows) -> None:
    """Print where the variance is, and how well published values of hints that say the same agree."""
    first, second = [], []
    for question in np.unique(rows.questions):
        mine = np.flatnonzero(rows.questions == question)
        alike = rows.hints[mine] @ rows.hints[mine].T
        for i, j in zip(*np.triu_indices(len(mine), 1), strict=True):
            if rows.files[mine[i]] != rows.files[mine[j]] and alike[i, j] >= CEILING:
                first.append(rows.published[mine[i]])
                second.append(rows.published[mine[j]])
    both = spearman(first + second, second + first)
    print(
        f"ceiling: {len(first)} pairs of like hints (cosine {CEILING} or more) of two files agree at Spearman "
        f"{number(both, '.3f')}"
    )
    for name in np.unique(rows.files):
        part = rows.files == name
        groups = np.unique(rows.questions[part], return_inverse=True)[1]
        y = rows.published[part]
        means = (np.bincount(groups, y) / np.bincount(groups))[groups]
        share = means.var() / y.var()
        print(
            f"{name}: {share:.2f} of the variance lies between questions; knowing each mean gives "
            f"{number(spearman(means, y), '.3f')}"
        )


def _half(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--no-cv", action="store_true", help="only fit and write")
    options = parser.parse_args()
    start = time.time()

    def log(text: str) -> None:
        print(f"[{time.time() - start:5.0f} s] {text}", flush=True)

    import torch

    torch.set_num_threads(1)
    with threadpool_limits(1):
        rows = read(options.data)
        log(f"{len(rows.published)} hints, {len(np.unique(rows.questions))} questions, {len(NAMES)} features")
        arrays = fit(rows, np.ones(len(rows.published), dtype=bool))
        temporary = options.out.with_suffix(".tmp")
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary)
        temporary.replace(options.out)
        digest = hashlib.sha256(options.out.read_bytes()).hexdigest()
        log(f"{options.out.name}: {options.out.stat().st_size:,} bytes, sha256 {digest[:12]}")
        if not options.no_cv:
            variance(rows)
            folds = [np.array([fold_of(question, at) for question in rows.questions]) for at in range(DIVISIONS)]
            by_question = [out_of_fold(rows, fold, log) for fold in folds]
            by_file = out_of_fold(rows, rows.files, log)
            report(rows, {"plain similarity": [rows.plain], "unseen questions": by_question, "unseen file": [by_file]})
    log("done")


if __name__ == "__main__":
    main()
