"""A published table beside results that are written by hand: values, differences, and what is missing."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.qa.contracts.benchmark import RESULTS
from quit.qa.papers.comparison import compare, pieces
from quit.qa.papers.items import item
from quit.render.table import markdown
from tests.running import call_quit

MONOT5 = "monot5:castorini/monot5-3b-msmarco-10k"


def _benchmark(folder: Path, *rows: tuple[str, str, str, str, float], **more: Any) -> Path:
    """A benchmark's folder; a row is corpus, retriever, reranker, metric, value."""
    folder.mkdir()
    names = ("corpus", "retriever", "reranker", "metric", "value")
    rest = {"reader": "", "strategy": "", "k": 0, "low": 0.0, "high": 1.0, "questions": 4} | more
    pq.write_table(RESULTS.from_rows([{**dict(zip(names, row)), **rest} for row in rows]), folder / "results.parquet")
    return folder


def test_ours_stand_below_the_published_values_with_the_difference(tmp_path: Path) -> None:
    folder = _benchmark(
        tmp_path / "run",
        ("release", "dense:BAAI/bge-large-en-v1.5", MONOT5, "Hit@1", 0.25),
        ("release", "dense:BAAI/bge-large-en-v1.5", MONOT5, "nDCG(exp)@10", 0.23),
        ("release", "dense:BAAI/bge-large-en-v1.5", MONOT5, "nDCG@10", 0.99),  # trec_eval's, not the scripts'
        ("wiki", "dense:BAAI/bge-large-en-v1.5", MONOT5, "Hit@5", 0.99),  # another corpus
        ("release", "dense:BAAI/bge-large-en-v1.5", "", "Hit@5", 0.99),  # not reranked
        ("release", "dense:dpr/models/bert-two-tower-10pos-1a2b", "rankt5:any", "Recall@50", 0.0339),
    )
    rows = {row.row.labels: row for row in compare(item("quit-5"), [("", folder)])}
    assert rows["BGE", "MonoT5"].here == (25.0, *[None] * 5, 23.0, None)
    assert rows["BGE", "MonoT5"].differences() == [-2.6, *[None] * 5, 0.64, None]
    assert rows["FT-DPR", "RankT5"].here[4] == pytest.approx(3.39) and rows["FT-DPR", "RankT5"].differences()[4] == 0
    missing = {labels: row.missing for labels, row in rows.items() if row.missing}
    assert len(missing) == 13 and missing["BGE", "UPR"] == "no run has it" and "plugin" in missing["BGE", "LiT5"]
    text = markdown(pieces(item("quit-5"), list(rows.values())))
    assert "| BGE | MonoT5 | paper | 27.60 | 29.46 |" in text and "|  |  | here | 25.00 | – |" in text
    assert "|  |  | difference | -2.60 | – |" in text
    assert "BGE + LiT5, FT-DPR + LiT5, FT-ColBERT + LiT5: LiT5 has no system here" in text


def test_a_row_of_one_corpus_may_count_another_label(tmp_path: Path) -> None:
    """Table 3: QUIT's rows at label 1, which other corpora do not have."""
    late = "late:colbert-ir/colbertv2.0"
    folder = _benchmark(
        tmp_path / "run",
        ("release", "dense:BAAI/bge-large-en-v1.5", MONOT5, "Hit@1", 0.5),
        ("release", "dense:BAAI/bge-large-en-v1.5", MONOT5, "Hit(rel=2)@1", 0.25),
        ("MSMARCO", late, MONOT5, "Hit(rel=2)@1", 0.75),
    )
    hits = {row.row.labels: row.here[0] for row in compare(item("quit-3"), [("", folder)]) if not row.missing}
    assert hits == {("BGE", "QUIT", "MonoT5"): 50.0, ("ColBERT", "MS MARCO", "MonoT5"): 75.0}


def test_parts_of_a_table_come_from_their_own_runs(tmp_path: Path) -> None:
    for name, cover_em in (("one", 0.3), ("two", 0.5)):
        for variant in ("sunar", "first"):
            (tmp_path / name / variant).mkdir(parents=True)
            (tmp_path / name / variant / "scores.json").write_text(json.dumps({"cover_em": cover_em, "replies": {}}))
    runs = [("MQA", tmp_path / "one"), ("WQA", tmp_path / "two")]
    rows = {row.row.labels[1]: row for row in compare(item("sunar-1"), runs) if not row.missing}
    assert {name: row.here for name, row in rows.items()} == {"SUNAR": (30.0, 50.0), "SELF-ASK": (30.0, 50.0)}
    assert rows["SUNAR"].differences() == [-2.75, -4.83]
    with pytest.raises(InputError, match="of what .*one is, MQA="):
        compare(item("sunar-1"), [("", tmp_path / "one")])
    with pytest.raises(InputError, match="has no part '2wiki'; its parts are MQA"):
        compare(item("sunar-1"), [("2wiki", tmp_path / "one")])
    [sunar] = [row for row in compare(item("sunar-3"), [("MQA gpt-4o-mini", tmp_path / "one")]) if not row.missing][1:]
    assert (sunar.row.labels, sunar.here) == (("gpt-4o-mini", "SUNAR"), (30.0, None))


def test_json_of_bandits_is_read_by_budget_and_structure(tmp_path: Path) -> None:
    values = (("flat", 0.1, "precision", 0.3), ("tree", 0.1, "precision", 0.4), ("flat", 0.2, "precision", 0.2),
              ("flat", 0.1, "recall", 0.9))  # fmt: skip
    names = ("policy", "structure", "budget", "metric", "value")
    rows = [dict(zip(names, ("bernoulli", *row), strict=True)) for row in values]
    alpha = [{"policy": "bernoulli", "structure": "flat", "alpha_ndcg@5": 0.44}]
    (tmp_path / "bandits.json").write_text(json.dumps({"rows": rows, "alpha_ndcg": alpha, "corpus": "c"}))
    [row] = [row for row in compare(item("bandits-4"), [("", tmp_path)]) if not row.missing]
    assert row.here == (0.3, 0.4, 0.2, None) and row.differences() == [-0.005, 0.029, -0.037, None]
    [row] = [row for row in compare(item("bandits-3"), [("NeuCLIR24", tmp_path)]) if not row.missing]
    assert row.here == (0.44, *[None] * 6)


def test_the_commands_print_tables_and_say_what_is_wrong(tmp_path: Path) -> None:
    folder = _benchmark(tmp_path / "run", ("release", "bm25", "monot5:FT_MONOT5", "Hit@5", 0.0006))
    printed = call_quit("papers", "table", "quit-6", folder).out
    assert "0.06" in printed and "+0.00" in printed and "no run has it" in printed and "--release" not in printed
    told = json.loads(call_quit("papers", "table", "quit-6", "--json").out)
    assert told["rows"][0]["values"]["Hit@5"] == {"published": "0.06", "here": None, "difference": None}
    assert told["commands"][0].startswith("quit benchmark finetune") and not told["rows"][0]["missing"]
    assert "the paper prints no numbers" in call_quit("papers", "table", "quit-figure-5").out
    listed = {row["id"]: row["here"] for row in json.loads(call_quit("papers", "list", "--json").out)}
    assert "Auto-ARGUE is not run here" in " ".join(call_quit("papers", "list").out.split())
    assert "LiT5" in listed["quit-7"] and "Bing" in listed["rrcp-search-engine"] and listed["quit-6"] == "run here"
    assert "no results of a run" in call_quit("papers", "table", "quit-6", tmp_path, code=3).err
    assert "quit-6" in call_quit("papers", "table", "quit-66", code=4).err
    assert "MQA=" in call_quit("papers", "table", "sunar-1", folder, code=3).err
    assert call_quit("papers", "table", "sunar-1", f"MQA={folder}").out.count("no run has it") == 1
