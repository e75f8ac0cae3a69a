"""Runs as programs and people write them, by hand."""

import gzip
import re
from pathlib import Path

import pytest

from quit.errors import InputError
from quit.retrieval.trec import best_first, read_qrels, read_run

TREC = "q1 Q0 caf\u00e9 1 2.5 bm25\nq1 Q0 b 2 1 bm25\nq2 Q0 a 1 -3e2 bm25\n"
SCORES = {"q1": {"caf\u00e9": 2.5, "b": 1.0}, "q2": {"a": -300.0}}
RANKS = {"q1": {"caf\u00e9": 1.0, "b": 0.5}, "q2": {"a": 1.0}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TREC, SCORES),
        ("\ufeff" + TREC.replace(" ", "\t").replace("\n", "\r\n"), SCORES),
        (TREC.replace("caf\u00e9", "cafe\u0301"), SCORES),
        ("q1\tcaf\u00e9\t1\nq1\tb\t2\nq2\ta\t1\n", RANKS),
        (' {"q1": {"cafe\u0301": 2.5, "b": 1}, "q2": {"a": -3e2}}', SCORES),
        ("\n" * 5000 + '{"q1": ["caf\u00e9", "b"], "q2": ["a"]}', RANKS),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_run_in_each_form(tmp_path: Path, text: str, expected: dict, packed: bool) -> None:
    path = tmp_path / "run"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    name, scores = read_run(path)
    assert scores == expected and list(scores["q1"]) == list(expected["q1"])
    assert name == ("bm25" if "bm25" in text else "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1 d1\n", "line 1 has 2 columns"),
        ("q1 d1 1\nq1 Q0 d2 2 1.0 x\n", "line 2 has 6 columns, the lines before 3"),
        ("q1 d1 0\n", "line 1: the rank, column 3, is '0'; expected a whole number from 1"),
        ("q1 Q0 d1 1 nan x\n", "line 1: the score, column 5, is 'nan'"),
        ("q1 Q0 d1 1 1e300 x\n", "line 1: the score, column 5, is '1e300'; expected a number that float32 holds"),
        ("q1 Q0 d1 1 1 x\nq1 Q0 d1 2 1 x\n", "line 2 has 'd1' a second time for 'q1'"),
        ('{"q1": {"d1": NaN}}', "'q1' has NaN or null for 'd1'"),
        ('{"q1": {"\u00e9": 1, "e\u0301": 2}}', "a second time"),
        ('{"q1": {"d1": 1}, "q1": {"d2": 1}}', "has the key 'q1' 2 times"),
        ('{"q1": {"d1": 0.5, "d1": 0.7}}', "has the key 'd1' 2 times"),
        ('{"q1": 3}', "'q1' has the number 3"),
        ("", "is empty"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run"
    path.write_text(text)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}.*{re.escape(said)}"):
        read_run(path)


def test_a_cut_gzip_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(gzip.compress(TREC.encode())[:-20])
    with pytest.raises(InputError, match="run cannot be read .its gzip is damaged or cut off"):
        read_run(tmp_path / "run")


def test_whole_decimals_are_labels(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 2.0\nq1 0 d2 0\n")
    assert read_qrels(tmp_path / "qrels") == {"q1": {"d1": 2, "d2": 0}}
    (tmp_path / "qrels").write_text("q1 0 d1 0.5\n")
    with pytest.raises(InputError, match="line 1: the label, column 4, is '0.5'; expected a whole number"):
        read_qrels(tmp_path / "qrels")


def test_equal_scores_are_ordered_as_trec_eval_does() -> None:
    assert list(best_first({"a": 1, "c": 1, "b": 1 + 1e-9, "d": 2})) == ["d", "c", "b", "a"]
