"""``quit bandits`` and ``quit complexity`` on real questions, from the command line; a language model behind a real
HTTP server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quit.cli import app
from quit.errors import InputError, SettingsError
from quit.settings import Settings

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


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("bandits", "run", "-b", "0..50"), SettingsError, "write percents"),
        (("bandits", "run", "-b", "ten"), SettingsError, "write percents"),
        (("bandits", "run", "--policies", "thompson"), SettingsError, "no policy 'thompson'"),
        (("bandits", "run", "--source", "quit"), InputError, "no question of the source 'quit'"),
        (("bandits", "run", "--arms", "nowhere.jsonl"), InputError, "Cannot read the arms"),
        (("complexity", "run", "--set", "complexity.token_head=late"), SettingsError, "needs complexity.token_model"),
        (("complexity", "run", "--set", "complexity.answer_model=x"), SettingsError, "answer_model must name"),
        (("bandits", "run", "--arms", "written"), SettingsError, "bandits.language_model must name"),
        (("bandits", "report"), SettingsError, "bandits.language_model must name"),
        (("complexity", "run"), SettingsError, "needs a dense index"),
    ],
)
def test_bad_input_is_named(made: Path, tmp_path: Path, arguments: tuple, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        quit_(*arguments, "-c", made / "C", "-o", tmp_path)
