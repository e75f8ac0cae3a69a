"""Time the exact neighbour search at QUIT's size: every subset of the hints of 7,401 questions, k = 100.

    python -m benchmarks.graph [--nodes 229431] [--k 100] [--device cpu]

Vectors are synthetic unit vectors in clusters of 31 (a question's subsets) with near ties, 384 dimensions. Prints JSON:
seconds of the search, nodes, recall against an fp32 search on a sample, peak memory.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from benchmarks.measuring import peak_mib, timed
from quit.qa.corpora.graph import CHECKPOINT
from quit.qa.indexes.exact import ExactSearch
from quit.qa.settings.corpora import Graph

WIDTH, SUBSETS, SPREAD = 384, 31, 0.6


def vectors(nodes: int, seed: int = 7) -> np.ndarray:
    """Return unit vectors, float32, shape (nodes, 384): a centre a question, its subsets around it."""
    random = np.random.default_rng(seed)
    made = np.empty((nodes, WIDTH), dtype=np.float32)
    for start in range(0, nodes, SUBSETS):
        size = len(made[start : start + SUBSETS])
        centre = random.standard_normal(WIDTH).astype(np.float32)
        made[start : start + size] = centre + SPREAD * random.standard_normal((size, WIDTH)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def main() -> None:
    """Search and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=229_431)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    matrix, settings = vectors(given.nodes), Graph()
    search = ExactSearch(matrix, given.k, precision=settings.precision, device=given.device)
    neighbours, figures = [], dict[str, float]()
    with timed(figures, "seconds"):
        for start in range(0, given.nodes, CHECKPOINT):
            neighbours.append(search.rows(start, min(start + CHECKPOINT, given.nodes))[0])
    sample = np.sort(np.random.default_rng(1).choice(given.nodes, min(200, given.nodes), replace=False))
    recall = search.recall(sample, np.concatenate(neighbours)[sample])
    print(json.dumps({"nodes": given.nodes, "k": given.k, "seconds": round(figures["seconds"], 1),
        "recall": round(recall, 5),
                      "peak_mib": peak_mib()}))  # fmt: skip


if __name__ == "__main__":
    main()
