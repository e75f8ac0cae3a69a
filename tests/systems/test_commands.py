"""``quit bandits`` and ``quit complexity`` from the command line: what is wrong is named."""

from pathlib import Path

import pytest

from quit.retrieval.built import BuiltCorpus
from tests.corpora.worlds import built, musique_record
from tests.rows import write_lines
from tests.running import call_quit


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> BuiltCorpus:
    """A corpus of one question of two hops."""
    folder = tmp_path_factory.mktemp("corpus")
    paragraphs = [("Nile", "A river."), ("Cairo", "A city on the Nile."), ("Lima", "A capital.")]
    return built(folder / "C", f"musique:{write_lines(folder / 'm.jsonl', [musique_record('q', paragraphs, [1, 0])])}")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("bandits run -b 0..50", 4, "write percents"),
        ("bandits run -b ten", 4, "write percents"),
        ("bandits run --policies thompson", 4, "no policy 'thompson'"),
        ("bandits run --source quit", 3, "no question of the source 'quit'"),
        ("bandits run --arms nowhere.jsonl", 3, "Cannot read the arms"),
        ("bandits run --arms written", 4, "bandits.language_model must name"),
        ("bandits report", 4, "bandits.language_model must name"),
        ("complexity run --set complexity.token_head=late", 4, "needs complexity.token_model"),
        ("complexity run --set complexity.answer_model=x", 4, "answer_model must name"),
        ("complexity run", 4, "needs a dense index"),
    ],
)
def test_bad_input_is_named(corpus: BuiltCorpus, tmp_path: Path, arguments: str, code: int, said: str) -> None:
    assert said in call_quit(*arguments.split(), "-c", corpus.path, "-o", tmp_path, code=code).err
