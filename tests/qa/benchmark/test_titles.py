"""A question's id before a passage: only for whom the settings name, and only where the authors' code gives it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quit.export.training import FineTuning
from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.qa.benchmark.finetune import triples
from quit.qa.benchmark.passages import TitledPassages
from quit.qa.benchmark.plugins import make_retriever
from quit.qa.settings import load

TITLED, PLAIN = "monot5:titled", "monot5:plain"


def test_a_named_reranker_reads_ids_except_of_the_oracles_passages(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: dict[str, set[str]] = {}

    def make(name: str, context: object) -> SimpleNamespace:
        def score(query: str, some: list[str]) -> np.ndarray:
            texts.setdefault(name, set()).update(some)
            return np.zeros(len(some))

        return SimpleNamespace(identity=name, score=score)

    monkeypatch.setattr("quit.qa.benchmark.plugins.make_reranker", make)
    settings = load("embedded", [f'benchmark.id_titles=["{TITLED}"]', "benchmark.resamples=100"]).settings
    request = BenchmarkRequest(release, "all", ("minilm",), (TITLED, PLAIN), bounds=False)
    run_benchmark(request, settings, tmp_path / "out")
    assert texts[PLAIN] and {text.split(" ", 1)[1] for text in texts[TITLED]} == texts[PLAIN]
    assert {text.split(" ", 1)[0] for text in texts[TITLED]} == {"q1_0_0", "q2_0_0", "q3_0_0"}
    titled = texts.pop(TITLED)
    run_benchmark(
        replace(request, retrievers=("oracle",), rerankers=(TITLED,), bounds=True), settings, tmp_path / "oracle"
    )
    assert texts[TITLED] and not texts[TITLED] & titled


@pytest.mark.parametrize("granularity", ["permutation", "subset"])
def test_an_encoder_reads_them_whatever_it_encodes(world, monkeypatch, granularity: str) -> None:
    texts: list[str] = []
    monkeypatch.setattr(
        "quit.qa.indexes.encoders.EmbeddedEncoder.documents",
        lambda self, some: texts.extend(some) or np.ones((len(some), 4), dtype=np.float32),
    )
    monkeypatch.setattr("quit.qa.indexes.encoders.EmbeddedEncoder.queries", lambda self, some: np.ones((1, 4)))
    passages = TitledPassages(world.dataset)
    context = world.context(f"benchmark.granularity={granularity}", passages=passages)
    make_retriever("minilm", context).search(["?"], 3)
    rows = range(len(passages)) if granularity == "permutation" else [g * 4 + p for g in range(3) for p in (0, 1, 2)]
    assert sorted(texts) == sorted(passages.texts(rows)) and all(text.split("_")[1:2] == ["0"] for text in texts)


def test_examples_have_them_where_the_settings_say_so(world) -> None:
    plain, titled = (triples(world.dataset, FineTuning(1, 1), id_titles) for id_titles in (False, True))
    names = ("q1_0_0", "q2_0_0")
    for (question, *passages), (same, *with_ids) in zip(plain, titled, strict=True):
        assert question == same
        assert all(text in {f"{name} {passage}" for name in names} for text, passage in zip(with_ids, passages))
