"""Groups of passages by hand, and shares by a loop over the rows of a finished build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from quit.engine.workspace import Workspace
from quit.report.designs import ORDERS, THIRDS, _orders, _thirds, design_figures, design_pieces
from quit.settings import load
from quit.stages.labelling.passages import PassageRows


def _rows(*names: list[str]) -> PassageRows:
    pairs = [(f"q{place}", name) for place, of in enumerate(names) for name in of]
    table = pa.table({"question_id": [pair[0] for pair in pairs], "permutation": [pair[1] for pair in pairs]})
    return PassageRows.of([table], pa.array([f"q{place}" for place in range(len(names))]))


def test_thirds_are_within_a_question_and_a_number_of_hints() -> None:
    passages = _rows(["0", "01", "02", "1", "12", "2", "20"], ["0", "1"])
    values = [[0.9, 0.5, 0.1], [0.9, 0.1]]  # means of two: 01 0.7, 02 and 20 0.5, 12 0.3
    assert _thirds(passages, values).tolist() == [2, 2, 1, 1, 0, 0, 1, -1, -1]


def test_orders_are_by_rank() -> None:
    names = ["0", "01", "012", "021", "10", "210", "ba"]
    kinds = [None, "descending", "descending", "other", "ascending", "ascending", "ascending"]
    assert [None if kind < 0 else ORDERS[kind] for kind in _orders(_rows(names)).tolist()] == kinds


def test_shares_are_those_of_a_loop_over_the_tables(built: Path) -> None:
    workspace = Workspace.open(built)
    figures = design_figures(workspace, load("embedded").settings)
    assert figures is not None and figures["readers"][0] == "minilm-vector"
    assert figures["same_encoder"] == "convergence model and the cosine"
    label = {(row["question_id"], row["permutation"]): row["label"] for row in workspace.read("labels").to_pylist()}
    assert figures["questions"] == len({question_id for question_id, _ in label})
    for order, chosen in (("descending", "012"), ("ascending", "210")):
        names = [name for question_id, name in label if len(name) == 3]
        fit = [name for name in names if list(name) == sorted(name, reverse=chosen == "210")]
        hits = sum(label[key] == 2 for key in label if key[1] in set(fit))
        [row] = [r for r in figures["rows"] if (r["by"], r["hints"], r["group"]) == ("order", 3, order)]
        share, low, high = row["shares"][0]
        assert row["passages"] == len(fit) and np.isclose(share, hits / len(fit)) and low <= share <= high
    groups = [row["group"] for row in figures["rows"] if (row["by"], row["hints"]) == ("convergence", 2)]
    assert groups == list(THIRDS) and not [
        row for row in figures["rows"] if row["by"] == "cosine" and row["hints"] == 5
    ]
    _, warning, *tables = design_pieces(figures)
    assert isinstance(warning, str) and "one encoder" in warning and len(tables) == 3
