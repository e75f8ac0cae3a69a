"""``quit bandits`` and ``quit complexity`` from the command line: what is wrong is named."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from quit.cli import app
from quit.errors import InputError, SettingsError
from quit.retrieval.built import BuiltCorpus
from tests.corpora.worlds import built, musique_record
from tests.rows import write_lines


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> BuiltCorpus:
    """A corpus of one question of two hops."""
    folder = tmp_path_factory.mktemp("corpus")
    paragraphs = [("Nile", "A river."), ("Cairo", "A city on the Nile."), ("Lima", "A capital.")]
    return built(folder / "C", f"musique:{write_lines(folder / 'm.jsonl', [musique_record('q', paragraphs, [1, 0])])}")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ("bandits run -b 0..50", SettingsError, "write percents"),
        ("bandits run -b ten", SettingsError, "write percents"),
        ("bandits run --policies thompson", SettingsError, "no policy 'thompson'"),
        ("bandits run --source quit", InputError, "no question of the source 'quit'"),
        ("bandits run --arms nowhere.jsonl", InputError, "Cannot read the arms"),
        ("bandits run --arms written", SettingsError, "bandits.language_model must name"),
        ("bandits report", SettingsError, "bandits.language_model must name"),
        ("complexity run --set complexity.token_head=late", SettingsError, "needs complexity.token_model"),
        ("complexity run --set complexity.answer_model=x", SettingsError, "answer_model must name"),
        ("complexity run", SettingsError, "needs a dense index"),
    ],
)
def test_bad_input_is_named(corpus: BuiltCorpus, tmp_path: Path, arguments: str, error: type, said: str) -> None:
    command = [*arguments.split(), "-c", str(corpus.path), "-o", str(tmp_path)]
    with pytest.raises(error, match=said):
        CliRunner().invoke(app, command, catch_exceptions=False)
