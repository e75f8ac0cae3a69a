"""Rows of passages by the ids that run files have for them."""

import numpy as np
import pytest

from quit.dataset.paper_names import subset_mask
from quit.qa.benchmark.run_ids import PassageIndex
from tests.qa.benchmark.test_retrievers import DESIGNS


@pytest.mark.parametrize("make", DESIGNS)
def test_a_passage_has_its_row_by_our_id_and_the_papers(make) -> None:
    passages, draw = make(), np.random.default_rng(1)
    index, names = PassageIndex(passages), passages.ids(range(len(passages)))
    papers = [f"q{name[1]}_0_0_{subset_mask(subset, len(passages.parts(int(name[1]))))}_{permutation}"
              for name, subset, permutation in (name.split("_") for name in names)]  # fmt: skip
    of_other_questions = {f"q{group}{name[2:]}" for group in range(4) for name in names} - {*names}
    unknown = ["q9_0_0", f"{names[0]}9", "q0_01_0", "q0", *of_other_questions]
    order = draw.permutation(len(names))
    for ids in (names, papers):
        assert index.rows([ids[row] for row in order], "q0").tolist() == order.tolist()
    assert set(index.rows(unknown, "q0").tolist()) == {-1}
