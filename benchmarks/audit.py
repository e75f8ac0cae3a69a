"""How often the audit's intervals hold the truth, and how wide they are: 1,000 audits of collections with known labels.

Beside them, people alone: Wilson's interval of the share of label 2 among the same passages, without the judge; its
sample size is Kish's effective one, as the weights differ.
"""

from __future__ import annotations

import argparse

import numpy as np

from quit.evaluate.proportions import weighted_sum, wilson
from quit.review.audit import allocation

PASSAGES = np.array([200_000, 40_000, 40_000])
"""Of train, dev and test."""
SIGN = np.array([1, -1])
GROUPS = {"train": [0], "dev": [1], "test": [2], "all": [0, 1, 2]}


def audits(generator: np.random.Generator, size: int, share: float, rate: float, repetitions: int) -> list[str]:
    """Return a line of the table for each group; ``rate``: of passages of either label, those the judge has wrong."""
    right = np.round(share * PASSAGES).astype(int)
    wrong = np.stack([rate * right, rate * (PASSAGES - right)], axis=1).round().astype(int)  # judge's label 1 and 2
    population = np.stack([PASSAGES - right, right], axis=1) + (wrong - wrong[:, ::-1])
    drawn = allocation(population.ravel(), size).reshape(population.shape)
    figures: dict[str, list[tuple[bool, float, bool, float]]] = {name: [] for name in GROUPS}
    for _ in range(repetitions):
        hits = generator.hypergeometric(wrong, population - wrong, drawn)
        for name, splits in GROUPS.items():
            sizes = np.zeros_like(population)
            sizes[splits] = population[splits]
            total, truth = sizes.sum(), right[splits].sum()
            _, low, high = weighted_sum(sizes * SIGN, np.stack([hits, 0 * hits, drawn]), population)
            low, high = ((sizes[:, 1].sum() + limit) / total for limit in (low, high))
            alone, effective = people(sizes[splits], hits[splits], drawn[splits])
            least, most = wilson(alone * effective, effective, np.array([1e12]))
            figures[name].append(
                (low <= truth / total <= high, high - low, least[0] <= truth / total <= most[0], most[0] - least[0])
            )
    lines = []
    for name, rows in figures.items():
        held, width, alone_held, alone_width = np.mean(rows, axis=0)
        lines.append(
            f"| {size} | {rate:.1%} | {name} | {held:.1%} | {width:.3f} | {alone_held:.1%} | {alone_width:.3f} |"
        )
    return lines


def people(sizes: np.ndarray, hits: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted share of label 2 among the drawn passages, and their effective number; shape (1,) each."""
    weights, right = sizes / drawn, np.stack([hits[:, 0], drawn[:, 1] - hits[:, 1]], axis=1)
    share = (weights * right).sum() / sizes.sum()
    return np.array([share]), np.array([sizes.sum() ** 2 / (drawn * weights**2).sum()])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.2, help="true share of label 2")
    parser.add_argument("--repetitions", type=int, default=1_000)
    given = parser.parse_args()
    generator = np.random.default_rng(7)
    print("| audited | judge wrong | split | held | width | people alone: held | width |")
    print("|---|---|---|---|---|---|---|")
    for size in (300, 1_000):
        for rate in (0.005, 0.05, 0.3):
            print("\n".join(audits(generator, size, given.share, rate, given.repetitions)), flush=True)


if __name__ == "__main__":
    main()
