"""Result files of the paper's programs, by their layout: the same figures as the same ranking in TREC's format."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quit.dataset.dataset import Dataset
from quit.dataset.paper_names import paper_id, subset_mask
from quit.errors import InputError
from quit.qa.benchmark.published import read_results
from quit.qa.benchmark.runfile import add_results, score_run
from quit.qa.settings import QaSettings

SETTINGS = QaSettings().benchmark


def as_published(dataset: Dataset, name: str) -> str:
    """The id of a passage as the paper has it: the question's three parts, one bit per hint, the permutation."""
    question, subset, permutation = name.rsplit("_", 2)
    return f"{paper_id(question)}_{subset_mask(subset, len(dataset.selected_hints[0]))}_{permutation}"


@pytest.fixture
def ranked(world) -> dict[str, list[str]]:
    """Question's text -> passages, best first; the last question finds those of another one."""
    ids = world.task.passages.ids(range(len(world.task.passages)))
    queries = world.task.queries
    return {query.question: ids[::-1] if query is queries[-1] else ids[place::2] for place, query in enumerate(queries)}


@pytest.mark.parametrize("kind", ["retriever", "reranker"])
def test_rankings_score_as_in_a_run_file(world, release, tmp_path: Path, ranked, kind: str) -> None:
    dataset = Dataset.of_release(release)
    records = []
    for question, names in ranked.items():
        passages = [
            {"id": as_published(dataset, name), "text": "", "score": 7.0, "has_answer": False} for name in names
        ]
        contexts = {"ctxs": passages} if kind == "retriever" else {"ctxs": passages[::-1], "reranked_ctxs": passages}
        records.append({"question": question, "answers": ["any"], **contexts})
    (tmp_path / f"{kind}.json").write_text(json.dumps(records, indent=4))
    lines = [
        f"{query.question_id} Q0 {name} 0 {-rank} mine\n"
        for query in world.task.queries
        for rank, name in enumerate(ranked[query.question])
    ]
    (tmp_path / "mine.run").write_text("".join(lines))
    scores = [score_run(tmp_path / name, dataset, "all", SETTINGS, "R") for name in (f"{kind}.json", "mine.run")]
    assert scores[0].results.equals(scores[1].results) and not scores[0].unknown and not scores[0].missing


def test_answers_of_readers_are_matched_with_the_valid_ones(world, release, tmp_path: Path) -> None:
    records = []
    for place, query in enumerate(world.task.queries):
        right, name = query.answers[0].upper(), paper_id(query.question_id)
        answers = {f"{name}_un_1": right, f"{name}_uf_1": "wrong", f"{name}_un_5": right if place else "wrong"}
        records.append({"question": query.question, "id": name, "ctxs": [], "predicted_answer": {"qwen-3-8b": answers}})
    (tmp_path / "rag.json").write_text(json.dumps(records))
    scores = score_run(tmp_path / "rag.json", Dataset.of_release(release), "all", SETTINGS, "bge", "monot5")
    em = {
        (row["reader"], row["strategy"], row["k"]): row["value"]
        for row in scores.results.to_pylist()
        if row["metric"] == "EM"
    }
    share = 1 - 1 / len(records)
    expected = {("qwen-3-8b", "norm", 1): 1.0, ("qwen-3-8b", "freq", 1): 0.0, ("qwen-3-8b", "norm", 5): share}
    assert em == pytest.approx(expected)
    dataset = Dataset.of_release(release)
    for _ in range(2):
        add_results(scores.results, tmp_path / "out", dataset, "all")
    with pytest.raises(InputError, match="'split': 'all'.*'split': 'dev'.: name another folder"):
        add_results(scores.results, tmp_path / "out", dataset, "dev")
    assert pq.read_table(tmp_path / "out" / "results.parquet").equals(scores.results)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"ctxs": []}], "record 1 is an object"),
        (["x"], "record 1 is "),
        ([{"question": "a", "ctxs": [{}]}], "record 1 is an object"),
        ([{"question": "a", "ctxs": []}] * 2, "record 2 has the question 'a' a second time"),
        ([{"question": "a", "predicted_answer": {"m": {"q_xx_1": "b"}}}], "record 1, m: 'q_xx_1' has the text 'b'"),
        ([{"question": "a", "predicted_answer": {"m": {"q_un_1": None}}}], "record 1, m: 'q_un_1' has null"),
    ],
)
def test_what_is_no_result_is_named(tmp_path: Path, records: list, message: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps(records))
    with pytest.raises(InputError, match=message):
        read_results(tmp_path / "x.json")
