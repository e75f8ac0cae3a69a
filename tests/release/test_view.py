from pathlib import Path

import pytest

from quit.dataset.release import Release
from quit.engine.request import settings_of
from quit.release.import_release import import_release
from quit.release.view import embedded_labels, open_to_read, shown_readers
from quit.report.data import gather
from quit.report.lookup import Lookup, Search
from quit.report.page import render
from quit.settings import Settings
from quit.status.story import story
from quit.status.summary import summary
from tests.release import small
from tests.release.published import LABELERS, READERS, splits, write
from tests.report import tiny


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("view")
    import_release(write(folder / "files", splits()), folder / "quit")
    workspace = open_to_read(folder / "quit")
    assert isinstance(workspace, Release)
    return workspace


def test_the_story_of_a_question_is_what_was_published(opened: Release) -> None:
    life = story(opened, "b")
    assert life["question"]["question"] == "What is b?" and life["split"]["split"] == "train"
    labels = {passage["permutation"]: passage["label"] for passage in life["passages"]}
    assert labels == {"0": 1, "01": 1, "1": 2, "10": 1}
    first = life["passages"][0]
    assert first["text"] == "First of b." and list(first["answers"]) == [*LABELERS, *READERS]
    assert first["answers"]["qwen-3-4b"] == "Amazon"


def test_the_report_shows_what_a_release_holds_and_no_more(opened: Release) -> None:
    facts = gather(opened, Settings())
    counts = {"questions": 3, "passages": 12, "fully": 3, "parametric": None, "valid_answers": 4}
    assert facts["counts"].items() >= counts.items()
    assert facts["readers"][0] == {"name": "gemma-3-1b", "role": "labeler", "kind": "published"}
    assert facts["statistics"] == opened.facts["statistics"]
    page = render(facts)
    for words in ("1 of 12 differ from our rule", "What is a?", "table 1.", "unjudged-answer"):
        assert words in page
    for unknown in ("From collected to released", "Leaking hints", "Types and difficulty", "nothing was spent",
                    "No language models"):  # fmt: skip
        assert unknown not in page, unknown


def test_questions_can_be_searched(opened: Release) -> None:
    lookup = Lookup(opened)
    matching = lookup.search(Search("secönd lima"))
    assert [(row["question_id"], row["state"], row["fully"]) for row in matching.rows] == [("c", "dev", 0)]
    assert lookup.releases("a") == [{"release": "quit", "split": "test", "passages": 4, "fully": 2}]


def test_readers_and_judge_are_those_of_the_release(opened: Release, tmp_path: Path) -> None:
    assert shown_readers(opened, Settings()) == opened.readers and gather(opened, Settings())["judge"] == "published"
    ours = open_to_read(small.freeze(tmp_path / "v1", small.rows()).path)
    assert [info.name for info in shown_readers(ours, Settings())] == ["one", "two"]
    assert [passage["label"] for passage in story(ours, "q2")["passages"]] == [2, 2, 1, 1]


def test_everything_that_shows_labels_names_the_models_behind_them_that_are_no_language_models(tmp_path: Path) -> None:
    built = tiny.workspace(tmp_path / "W")
    names = "minilm-vector, minilm-late, minilm-evidence"
    settings = {**small.freeze(tmp_path / "x", small.rows()).content["settings"], "judge": {"kind": "equivalence"}}
    for opened, models in (
        (built, f"{names}, the judge"),
        (small.freeze(tmp_path / "v1", small.rows()), "one"),
        (small.freeze(tmp_path / "v2", small.rows(), settings=settings), "one, the judge"),
    ):
        sentence = embedded_labels(opened, settings_of(opened))
        assert sentence and sentence.startswith(f"No language models: {models}. ")
        facts = gather(opened, settings_of(opened))
        assert story(opened, "q2")["embedded_labels"] == facts["embedded_labels"] == sentence
        assert sentence in render(facts)
        assert opened is not built or summary(built)[-1] == sentence
