"""The grid of alpha and beta, worked by hand: which hint comes first depends on their ratio."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quit.errors import SettingsError
from quit.models.protocols import NO_ANSWER
from quit.qa.benchmark.benchmark import BenchmarkRequest
from quit.qa.benchmark.grid import means, run_grid
from quit.qa.settings import load
from tests.answers import Reads
from tests.qa.corpora.worlds import Fixed


@pytest.fixture
def reader(monkeypatch) -> Reads:
    """Right where the context begins with Pizarro; q3's passages are ranked Pacific, Pizarro Pacific, Pizarro."""
    reader = Reads(lambda prompt, _: "Lima" if prompt.hints[0] == "Pizarro founded it." else NO_ANSWER)
    monkeypatch.setattr("quit.qa.benchmark.plugins.make_reader", lambda name, context: reader)
    monkeypatch.setattr("quit.qa.benchmark.plugins.make_retriever", lambda name, context: Fixed([8, 11, 10]))
    monkeypatch.setattr("quit.qa.benchmark.benchmark.check", lambda request, settings: None)
    return reader


def test_the_weights_that_put_the_right_hint_first_win(release: Path, tmp_path: Path, reader: Reads) -> None:
    # k = 3: Pacific at ranks 1, 2 and positions 1, 2: 1.5 alpha + 1.5 beta. Pizarro at ranks 2, 3 and positions 1, 1:
    # 0.8333 alpha + 2 beta, greater where beta > 4/3 alpha: alpha < 3/7. k = 2: 1.5 against 0.5 alpha + beta, never.
    request = BenchmarkRequest(release, "test", ("ranked",), (), ("scripted",), bounds=False)
    settings = load("embedded", ["benchmark.k=[1,2,3]"]).settings
    table = run_grid(request, settings, tmp_path / "out")
    assert table["k"].to_pylist() == [2] * 11 + [3] * 11
    values = {(row["k"], row["alpha"]): row["value"] for row in table.to_pylist()}
    assert values == {(k, n / 10): float(k == 3 and n <= 4) for k in (2, 3) for n in range(11)}
    assert [row["beta"] for row in table.to_pylist()[:3]] == [1.0, 0.9, 0.8]
    best = means(table)
    assert [(row["alpha"], row["EM"]) for row in best[:6]] == [*((n / 10, 0.5) for n in range(5)), (0.5, 0.0)]
    assert sorted(prompt.hints for prompt in reader.asked) == [
        ("It lies on the Pacific.", "Pizarro founded it."), ("Pizarro founded it.", "It lies on the Pacific.")
    ]  # fmt: skip  # two contexts, read once
    assert pq.read_table(tmp_path / "out" / "grid.parquet").equals(table)
    run_grid(request, settings, tmp_path / "out")
    assert len(reader.asked) == 2


@pytest.mark.parametrize(
    ("readers", "k", "message"), [((), "[1,2]", "at least one --reader"), (("minilm-late",), "[1]", "a k above 1")]
)
def test_bad_requests(release: Path, tmp_path: Path, readers: tuple[str, ...], k: str, message: str) -> None:
    request = BenchmarkRequest(release, "test", ("bm25",), (), readers, bounds=False)
    with pytest.raises(SettingsError, match=message):
        run_grid(request, load("embedded", [f"benchmark.k={k}"]).settings, tmp_path / "out")
