"""How many questions the leakage filter leaves out, by the paper's method and by ours (docs/research/fidelity.md).

    python -m benchmarks.leak_losses wikihint:test_first50.json triviahg:Copilot.json
    python -m benchmarks.leak_losses --set models.equivalence=bem wikihint:test_first50.json

The embedded equivalence model judges in BEM's place unless ``--set`` names BEM.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from quit.models.factory import Models
from quit.models.protocols import Equivalence, Pair
from quit.settings import load
from quit.sources import parse_source, read_sources
from quit.stages.collect import collect
from quit.stages.filter import filter_leaks

METHODS = ("bem", "full")


class Counted:
    """An equivalence model that counts the pairs it is asked about."""

    def __init__(self, equivalence: Equivalence) -> None:
        self.identity, self.note, self.pairs = equivalence.identity, equivalence.note, 0
        self._equivalence = equivalence

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return what the model returns."""
        self.pairs += len(pairs)
        return self._equivalence.probability(pairs)


def losses(source: str, models: Models, overrides: Sequence[str]) -> list[str]:
    """Return the cells of a source's row: questions, then for each method those left out and the pairs judged."""
    settings = load("embedded", overrides).settings
    hints = settings.passages.needed_hints
    tables = collect(read_sources([parse_source(source)]), settings.collect, hints, settings.convergence)
    questions = len(tables["questions"])
    cells = [source.rpartition("/")[2], f"{questions}"]
    for method in METHODS:
        counted = Counted(models.equivalence)
        leakage = settings.leakage.model_copy(update={"method": method})
        filtered = filter_leaks(tables["questions"], tables["hints"], counted, models.encoder, leakage, hints)
        lost = sum(row["kind"] == "question" for row in filtered["rejects"].to_pylist())
        cells += [f"{lost} ({lost / questions:.0%})", f"{counted.pairs:,}"]
    return cells


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", help="KIND:PATH")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE over the profile `embedded`")
    given = parser.parse_args()
    models = Models(load("embedded", given.set).settings)
    print("| file | questions | left out by `bem` | pairs judged | left out by `full` | pairs judged |")
    print("|---|---|---|---|---|---|")
    for source in given.sources:
        print(f"| {' | '.join(losses(source, models, given.set))} |", flush=True)


if __name__ == "__main__":
    main()
