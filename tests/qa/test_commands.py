"""``quit bandits`` and ``quit complexity`` from the command line: what is wrong is named."""

import shutil
from pathlib import Path

import pytest

from quit.qa.folders import building
from quit.qa.indexes.built import BuiltCorpus
from tests.qa.corpora.worlds import built, musique_record
from tests.rows import cases, write_lines
from tests.running import call_quit


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> BuiltCorpus:
    """A corpus of one question of two hops."""
    folder = tmp_path_factory.mktemp("corpus")
    paragraphs = [("Nile", "A river."), ("Cairo", "A city on the Nile."), ("Lima", "A capital.")]
    return built(folder / "C", f"musique:{write_lines(folder / 'm.jsonl', [musique_record('q', paragraphs, [1, 0])])}")


def test_few_budgets_are_all_shown(corpus: BuiltCorpus, tmp_path: Path) -> None:
    run = ["bandits", "run", "-c", corpus.path, "-o", tmp_path, "--runs", "1", "--policies", "random"]
    for budgets, shown in (("12.5,40,100", "12.5% 40% 100%"), ("10..100", "10% 20% 30% 50% 100%")):
        heading = call_quit(*run, "-b", budgets).out.splitlines()[1]
        assert heading.split() == ["budget", *shown.split()]


def test_a_budget_of_no_document_is_said(corpus: BuiltCorpus, tmp_path: Path) -> None:
    """Nile is in two documents, a capital in one."""
    arms = write_lines(tmp_path / "arms.jsonl", [{"query_id": "musique-q", "arms": ["Nile", "capital"]}])
    run = ["bandits", "run", "-c", corpus.path, "-o", tmp_path / "out", "--arms", arms, "--runs", "1"]
    run += ["--policies", "random"]
    said = "1 of 1 requests have too few documents to observe one at 10%"
    low, whole = (" ".join(call_quit(*run, "-b", budgets).out.split()) for budgets in ("10,100", "100"))
    assert said in low and "too few" not in whole


@pytest.mark.parametrize(("arguments", "code", "said"), cases(__file__, "commands.jsonl"))
def test_bad_input_is_named(corpus: BuiltCorpus, tmp_path: Path, arguments: str, code: int, said: str) -> None:
    assert said in call_quit(*arguments.split(), "-c", corpus.path, "-o", tmp_path, code=code).err


def test_a_run_that_is_refused_leaves_no_new_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in ("new", "empty"):
        refused = call_quit("bandits", "run", "-c", tmp_path / "nowhere", "-o", tmp_path / folder, code=3)
        assert "holds no corpus" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_two_runs_do_not_meet_in_one_folder(corpus: BuiltCorpus, tmp_path: Path) -> None:
    call_quit("index", "build", "-c", corpus.path, "-e", "minilm", "-o", tmp_path / "dense")
    for command, folder, kind in (
        (["bandits", "run", "--runs", "1", "--policies", "random"], "out", "bandit run"),
        (["bandits", "report"], "out", "bandit run"),
        (["complexity", "run", "-i", tmp_path / "dense"], "out", "complexity run"),
        (["sunar", "run", "--variant", "rerank-read"], "out/rerank-read", "run"),
    ):
        with building(tmp_path / folder, kind):
            refused = call_quit(*command, "-c", corpus.path, "-o", tmp_path / "out", code=7)
        assert f"Another run is at work in {tmp_path / folder}" in refused.err
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "answers.jsonl").write_text("mine")
        refused = call_quit(*command, "-c", corpus.path, "-o", tmp_path / "out", code=4)
        assert f"holds no {kind}" in refused.err
        shutil.rmtree(tmp_path / "out")
