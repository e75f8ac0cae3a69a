"""Recall and hops, counted by hand."""

from pathlib import Path

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.corpora import reach as reaching
from quit.qa.corpora.graph import NeighbourhoodGraph
from quit.qa.corpora.reach import hops, reach, reach_table
from tests.qa.corpora.worlds import Fixed, built, musique_record
from tests.rows import write_lines

# 0 -> 1, 2; 1 -> 3, 0; 2 -> 0, 1; 3 -> 4, 1; 4 has no neighbour (padding); 5 -> 4, 3
EDGES = np.array([[1, 2], [3, 0], [0, 1], [4, 1], [4, 4], [4, 3]], dtype=np.uint32)
WEIGHTS = np.array([[0.9, 0.8], [0.7, 0.6], [0.5, 0.4], [0.3, 0.2], [0, 0], [0.9, 0.1]], dtype=np.float16)
FACTS = {"identity": "g", "plan": {"encoder": "by hand"}}


FIXED = Fixed([0, 2, 5, 1, 3, 4])
GRAPH = NeighbourhoodGraph(Path("g"), FACTS, EDGES, WEIGHTS)


def _corpus(tmp_path: Path):
    record = musique_record("2hop__1", [(f"t{row}", "x") for row in range(6)], [3, 0])
    return built(tmp_path / "C", f"musique:{write_lines(tmp_path / 'm.jsonl', [record])}")


def test_hops_by_hand() -> None:
    distances = hops(GRAPH, np.array([0, 2]), 2, "@2")
    assert distances["@2+1"].tolist() == [0, 1, 2] and distances["@2+2"].tolist() == [0, 1, 2, 3]
    assert hops(GRAPH, np.array([4]), 2, "")["+2"].tolist() == [4]
    assert hops(GRAPH, np.array([0]), 1, "")["+2"].tolist() == [0, 1, 3]


@pytest.fixture(autouse=True)
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "DEPTH", 2)
    monkeypatch.setattr(reaching, "WIDTH", 2)


def test_recall_by_hand(tmp_path: Path) -> None:
    whole, steps = reach(_corpus(tmp_path), "fixed", FIXED, GRAPH)
    assert (whole["dataset"], whole["queries"], steps["dataset"], steps["queries"]) == (
        "musique", 1, "musique/sub-questions", 2,
    )  # fmt: skip
    # Gold: 0 and 3. The list holds 0; one hop adds 1; two hops add 3. The control lists 0, 2, 5 and 0, 2, 5, 1.
    assert (whole["recall@2"], whole["recall@2+1"], whole["recall@2+2"]) == (0.5, 0.5, 1.0)
    assert (whole["all@2"], whole["all@2+1"], whole["all@2+2"]) == (0, 0, 1)
    assert (whole["pool@2"], whole["pool@2+1"], whole["pool@2+2"]) == (2, 3, 4)
    assert (whole["recall@same+1"], whole["recall@same+2"]) == (0.5, 0.5)
    assert (steps["recall@2"], steps["recall@2+2"], steps["recall@10"]) == (0.5, 1.0, 1.0)
    # Ranks 1 and 5 of the list are relevant: (1 + 1 / log2 6) / (1 + 1 / log2 3).
    assert whole["nDCG@10"] == 0.8503
    assert len(reach(_corpus(tmp_path), "fixed", FIXED, None, "2hop")) == 2
    assert [row["queries"] for row in reach(_corpus(tmp_path), "fixed", FIXED, None, count=1)] == [1, 1]
    with pytest.raises(InputError, match="of the kind '3hop1'.*'2hop'"):
        reach(_corpus(tmp_path), "fixed", FIXED, None, "3hop1")
    table = reach_table([whole, steps])
    assert len(table.rows) == 2 and table.rows[0][:3] == ["musique", "fixed", 1]


def test_a_document_with_the_querys_own_id_is_left_out_of_beirs_data(tmp_path: Path) -> None:
    """ArguAna: queries are documents. The list is 0, 2, 5, 1, and the query is document 0."""
    texts = [{"_id": f"a{row}", "text": f"text {row}"} for row in range(6)]
    write_lines(tmp_path / "b" / "corpus.jsonl", texts)
    write_lines(tmp_path / "b" / "queries.jsonl", texts[:1])
    (tmp_path / "b" / "qrels").mkdir()
    (tmp_path / "b" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na0\ta2\t1\na0\ta5\t1\n")
    [row] = reach(built(tmp_path / "C", f"beir:{tmp_path / 'b'}"), "fixed", FIXED, None)
    assert (row["recall@2"], row["nDCG@10"]) == (1.0, 1.0)
