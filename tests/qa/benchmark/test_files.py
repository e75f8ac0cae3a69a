"""Scores and names of run files."""

from itertools import pairwise

import numpy as np

from quit.qa.benchmark.files import falling, file_name


def test_scores_of_run_files_fall_strictly() -> None:
    output = falling(np.array([2.0, 2.0, 2.0, 1.0, -1.0, -1.0]))
    texts = [float(f"{one:.9g}") for one in output]
    assert all(np.float32(a) > np.float32(b) for a, b in pairwise(texts))
    assert output[0] == 2.0 and output[3] == 1.0 and falling(np.array([])) == []


def test_file_names_are_distinct_and_safe() -> None:
    used: list[str] = []
    for system in ("dense:/a/b/model", "dense:/c/model", "late + oracle", "ö/../x"):
        used.append(file_name("release", system, used))
    assert used == ["release-model.run", "release-model-2.run", "release-late-oracle.run", "release-x.run"]
