"""``quit bandits`` and ``quit complexity`` on real questions, from the command line; a language model behind a real
HTTP server."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from quit.cli import app
from quit.errors import InputError, SettingsError
from quit.settings import Settings
from tests.servers.builds import write_profile
from tests.servers.rude import RudeServer

pytestmark = pytest.mark.slow
QUESTIONS = 6


def quit_(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of a few MuSiQue questions (C), BM25 (B), MiniLM's vectors (D)."""
    from quit.corpora.build import build
    from quit.corpora.sources import parse_corpus_source
    from quit.retrieval.first_stage import build_first_stage

    folder = tmp_path_factory.mktemp("systems")
    lines = (data / "musique" / "musique_ans.jsonl").read_text(encoding="utf-8").splitlines()
    by_hops = [[line for line in lines if f'"id": "{hops}hop' in line] for hops in (2, 3, 4)]
    lines = [*by_hops[0][: QUESTIONS - 2], by_hops[1][0], by_hops[2][0]]
    (folder / "m.jsonl").write_text("\n".join(lines) + "\n")
    settings = Settings()
    corpus, _ = build([parse_corpus_source(f"musique:{folder / 'm.jsonl'}")], folder / "C", settings.corpora)
    for name, where in (("bm25", "B"), ("minilm", "D")):
        build_first_stage(corpus, name, folder / where, settings.first_stages)
    return folder


def test_the_grid(made: Path, tmp_path: Path) -> None:
    arguments = ("bandits", "run", "-c", made / "C", "-i", made / "B", "--vectors", made / "D", "--runs", "50", "-o")
    said = quit_(*arguments, tmp_path / "one")
    assert "random-rank-aware" in said and f"{QUESTIONS} requests" in said
    whole = json.loads((tmp_path / "one" / "bandits.json").read_text())
    assert (whole["requests"], whole["left_out"]) == (QUESTIONS, 0) and 2 <= whole["arms"]["mean"] <= 4
    assert len({row["policy"] for row in whole["rows"]}) == 17
    quit_(*arguments, tmp_path / "two")
    for name in ("bandits.json", "bandits.csv", "bandits.png", "bandits-recall.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_two_levels_and_a_judge_without_a_language_model(made: Path, tmp_path: Path) -> None:
    said = quit_(
        "bandits", "run", "-c", made / "C", "--vectors", made / "D", "--runs", "20", "-o", tmp_path,
        "--arms", "two-level", "--relevance", "judge", "--policies", "random-rank-aware,bernoulli", "--budget", "10,50",
        "--kind", "2hop", "--tune", "bernoulli-top-5", "--set", "bandits.trials=3",
    )  # fmt: skip
    assert "opened step by step" in said and f"{QUESTIONS - 2} requests" in said
    assert "Best of 3 trees for bernoulli-top-5: n " in said and "Relevance falls with the rank in " in said
    whole = json.loads((tmp_path / "bandits.json").read_text())
    assert whole["arms"]["most"] == 16 and whole["arms"]["least"] > 10  # fewer where titles run out
    assert whole["observed"].startswith("contained-or-near")
    assert {row["policy"] for row in whole["trees"]} == {"random-rank-aware", "bernoulli"}
    assert len(whole["tuned"]["trials"]) == 3


def test_arms_of_a_file_with_a_tree(made: Path, tmp_path: Path) -> None:
    queries = pq.read_table(made / "C" / "queries.parquet").to_pylist()
    names = [row["query_id"] for row in queries if row["parent_id"] is None][:2]
    lines = [{"query_id": name, "arms": ["city", "river", "city hall"], "parents": [None, None, 0]} for name in names]
    (tmp_path / "tree.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = quit_(
        "bandits", "run", "-c", made / "C", "-i", made / "B", "--arms", tmp_path / "tree.jsonl", "--runs", "10",
        "-o", tmp_path, "--policies", "bernoulli,gaussian,gaussian-ing",
    )  # fmt: skip
    assert "2 requests" in said and "opened step by step" in said
    whole = json.loads((tmp_path / "bandits.json").read_text())
    assert whole["arms_from"] == "tree.jsonl" and whole["arms"] == {"mean": 3.0, "least": 3, "most": 3}
    assert {row["policy"] for row in whole["trees"]} == {"bernoulli", "gaussian", "gaussian-ing"}
    assert "alpha_ndcg@50" in whole["alpha_ndcg"][0]


def test_complexity(made: Path, tmp_path: Path) -> None:
    said = quit_(
        "complexity", "run", "-c", made / "C", "-i", made / "B", "-i", made / "D", "-o", tmp_path,
        "--set", "complexity.resamples=50", "--set", "complexity.documents=4",
    )  # fmt: skip
    assert "Known to be complex" in said and "Kendall" in said
    rows = pq.read_table(tmp_path / "complexity.parquet").to_pylist()
    assert sum(row["hops"] > 1 for row in rows) == QUESTIONS and all(row["documents"] == 4 for row in rows)
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": 1, "question": "Who?", "answers": ["nobody at all"]}) + "\n")
    quit_("complexity", "run", "-c", made / "C", "-i", made / "D", "-q", tmp_path / "q.jsonl", "-o", tmp_path / "own")
    assert json.loads((tmp_path / "own" / "complexity.json").read_text())["agreement"] == {}


def reply(payload: dict) -> str:
    """Write sub-queries, a report, verdicts; now and then ramble."""
    asked = payload["messages"][-1]["content"]
    if "JSON list" in asked:
        return 'Of course: ["the capital", "the county", "the father"]'
    if "Write a report" in asked:
        return "First finding [1]. Second finding [2][77]. And no source."
    if "sentence says" in asked:
        return "Yes" if "First" in asked else "No"
    return "Yes" if "say or clearly imply" in asked else "It depends."


def test_reports_and_written_arms_by_a_language_model(made: Path, tmp_path: Path) -> None:
    with RudeServer(reply=reply) as server:
        profile = write_profile(
            tmp_path / "p.toml",
            {"reader-a": ("tiny", server.base_url)},
            ("tiny", server.base_url),
            template_options="{}",
        )
        common = ("-c", made / "C", "-i", made / "B", "-p", profile, "--set", "bandits.language_model=reader-a")
        quit_(
            "bandits", "report", *common, "-o", tmp_path / "r", "--policies", "full,bernoulli-top-5", "--budget", "20",
            "--questions", "3", "--repeats", "2",
        )  # fmt: skip
        quit_(
            "bandits", "run", *common, "-o", tmp_path / "w", "--arms", "written", "--runs", "20", "--questions", "3",
            "--policies", "bernoulli",
        )  # fmt: skip
        quit_(
            "bandits", "run", *common, "-o", tmp_path / "j", "--relevance", "judge", "--runs", "20", "--questions", "2",
            "--policies", "bernoulli",
        )  # fmt: skip
    full, picked = json.loads((tmp_path / "r" / "reports.json").read_text())["policies"]
    assert (full["policy"], picked["policy"]) == ("full", "bernoulli-top-5")
    assert full["documents"] > picked["documents"] >= 2
    for row in (full, picked):
        assert row["citation_support"] == pytest.approx(1 / 3) and row["sentence_support"] == pytest.approx(1 / 3)
        assert row["nugget_coverage"] == 1.0 and row["reports"] == row["invented"] == 3 * row["repeats"]
    assert (full["repeats"], picked["repeats"]) == (1, 2)
    lines = (tmp_path / "r" / "reports.jsonl").read_text().splitlines()
    assert len(lines) == 9 and json.loads(lines[0])["sentences"][1]["text"] == "Second finding."
    assert json.loads((tmp_path / "w" / "bandits.json").read_text())["arms"]["mean"] == 3.0
    judged = json.loads((tmp_path / "j" / "bandits.json").read_text())
    assert judged["observed"].startswith("judged-relevance")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("bandits", "run", "-b", "0..50"), SettingsError, "write percents"),
        (("bandits", "run", "-b", "ten"), SettingsError, "write percents"),
        (("bandits", "run", "--policies", "thompson"), SettingsError, "no policy 'thompson'"),
        (("bandits", "run", "--source", "quit"), InputError, "no question of the source 'quit'"),
        (("bandits", "run", "--arms", "nowhere.jsonl"), InputError, "Cannot read the arms"),
        (("complexity", "run", "--set", "complexity.token_head=late"), SettingsError, "needs complexity.token_model"),
        (
            ("complexity", "run", "--set", "complexity.answer_model=x"),
            SettingsError,
            "complexity.answer_model must name",
        ),
        (("bandits", "run", "--arms", "written"), SettingsError, "bandits.language_model must name"),
        (("bandits", "report"), SettingsError, "bandits.language_model must name"),
        (("complexity", "run"), SettingsError, "needs a dense index"),
    ],
)
def test_bad_input_is_named(made: Path, tmp_path: Path, arguments: tuple, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        quit_(*arguments, "-c", made / "C", "-o", tmp_path)
