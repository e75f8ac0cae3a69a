"""A release's questions asked without hints by a model that came later."""

import sys
from pathlib import Path

import pytest

from quit.release.import_release import import_release
from tests.comparing import files_of
from tests.release import small
from tests.release.published import splits, write
from tests.running import call_quit

MINE = """
class Later:
    version = "1"

    def answer(self, prompts):
        with open("asked.txt", "a") as log:
            log.writelines(f"{prompt.question_id} {prompt.hints}\\n" for prompt in prompts)
        known = {"q1": "Nile", "q2": "Braque", "q3": "lima"}
        return [known.get(prompt.question_id, "Rome") for prompt in prompts]
"""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """q1 was known at release; mine.py knows it and q3."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # another test's
    return small.freeze(tmp_path / "v1", small.rows()).path


def test_what_is_right_in_every_repetition_now_and_in_none_at_release_looks_memorised(release: Path) -> None:
    before = files_of(release)
    run = ("release", "probe", release, "--reader", "mine:Later", "--json")
    facts = call_quit(*run).json()
    assert facts["memorised"] == ["q3"] and facts["repetitions"] == 3
    assert {split: tuple(counts.values()) for split, counts in facts["splits"].items()} == {
        "train": (1, 1, 1, 1), "dev": (1, 0, 0, 0), "test": (1, 0, 1, 1), "all": (3, 1, 2, 2),
    }  # fmt: skip
    asked = Path("asked.txt").read_text().splitlines()
    assert {*asked} == {"q1 ()", "q2 ()", "q3 ()"}
    assert call_quit(*run).json() == facts
    assert Path("asked.txt").read_text().splitlines() == asked  # the replies are kept
    assert files_of(release) == before
    assert "1 question known now in every repetition and to no reader at release: q3" in call_quit(*run[:-1]).out


def test_a_gold_answer_that_people_rejected_is_wrong(release: Path) -> None:
    rows = small.rows()
    rows["questions"][0]["answers"] = ["Niger", "Nile"]
    Path("mine.py").write_text(MINE.replace('"Nile"', '"Niger"'))
    rejected = small.freeze(release.parent / "v2", rows).path
    facts = call_quit("release", "probe", rejected, "--reader", "mine:Later", "--json").json()
    assert facts["splits"]["train"]["now"] == 0 and facts["memorised"] == ["q3"]


def test_an_imported_release_does_not_say_what_was_known_and_nothing_is_called_memorised(release: Path) -> None:
    imported = release.parent / "imported"
    import_release(write(release.parent / "files", splits()), imported)
    run = ("release", "probe", imported, "--reader", "mine:Later", "--json")
    facts = call_quit(*run).json()
    assert "does not say which questions were known" in call_quit(*run[:-1]).out
    assert facts["memorised"] == [] and facts["splits"]["all"]["release"] is None
    assert facts["splits"]["all"]["questions"] == 3


def test_a_reader_that_the_profile_does_not_have(release: Path) -> None:
    result = call_quit("release", "probe", release, "--reader", "minilm-lat", code=4)
    assert "Did you mean 'minilm-late'?" in result.err
