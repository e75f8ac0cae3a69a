from pathlib import Path

import pytest

from quit.errors import SettingsError
from quit.qa import settings as qa
from quit.settings import file_of, load, load_card, profile_names
from tests.running import QUIT, call_quit, run_process


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_loads_and_names_its_labelers(name: str) -> None:
    settings = load(name).settings
    assert len(settings.labelers) == (1 if name == "smollm" else 3)
    assert len(settings.readers) == {"convergence": 6, "embedded": 6, "paper": 6, "smollm": 1}.get(name, 3)


def test_overrides_win_and_their_origin_is_told() -> None:
    loaded = load("embedded", ["labels={max_new_tokens = 16}", "collect.duplicates=keep_all", "readers.0.name=first"])
    assert loaded.settings.labels.max_new_tokens == 16
    assert loaded.settings.collect.duplicates == "keep_all"
    assert loaded.settings.readers[0].name == "first"
    origins = {key: origin for key, _, origin in loaded.rows()}
    assert origins["labels.max_new_tokens"] == "--set"
    assert origins["split.method"] == "profile embedded"
    assert origins["split.seed"] == "default"


@pytest.mark.parametrize(
    ("override", "path"),
    [
        ('split.pinned = "pins.jsonl"', "pins.jsonl"),
        ("review.controls=./a/../c.jsonl", "./a/../c.jsonl"),
        ("readers.0.prompt=p.txt", "p.txt"),
        ("difficulty.corpus=/x y", "/x y"),
        *((text, None) for text in ("judge.prompt=judge", "models.bem_checkpoint=kortukov/answer-equivalence-bem")),
        *(
            (text, None)
            for text in ("readers.0.extra.a.b=1", "review.controls=", "review={minimum = 2}", "none.such=x")
        ),
    ],
)
def test_an_override_names_a_file_where_its_setting_takes_one(override: str, path: str | None) -> None:
    assert file_of(override) == path


WRONG = [line.split("\t") for line in Path(__file__).with_name("wrong_settings.tsv").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("override", "named"), WRONG)
def test_a_wrong_override_is_named_with_what_would_be_right(override: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        qa.load("embedded", [override])


@pytest.mark.parametrize("name", profile_names())
def test_settings_of_qa_systems_are_the_constructions_with_their_own_sections(name: str) -> None:
    settings, whole = load(name, ["benchmark.depth=7"]).settings, qa.load(name, ["benchmark.depth=7"]).settings
    assert whole.benchmark.depth == 7
    assert [*whole.model_dump()] == [*settings.model_dump()]  # the order in which they are printed
    assert whole.model_dump(include={"readers", "judge", "labels"}) == settings.model_dump(
        include={"readers", "judge", "labels"}
    )


def test_a_build_leaves_the_keys_of_qa_systems_to_them_but_no_section() -> None:
    load("embedded", ["benchmark.dept=7"])
    with pytest.raises(SettingsError, match=r"'benchmark.dept'. Did you mean 'benchmark.depth'"):
        qa.load("embedded", ["benchmark.dept=7"])
    for override, message in (("benchmrk.depth=7", "'benchmark'"), ("benchmark=7", "'benchmark' is a section")):
        with pytest.raises(SettingsError, match=message):
            load("embedded", [override])


def test_a_profile_holds_what_differs_from_the_one_it_starts_from(tmp_path) -> None:
    """By key of a section; a list replaces the list; where each value comes from is known."""
    profile = tmp_path / "mine.toml"
    readers = '[[readers]]\nname = "minilm-late"\nrole = "labeler"\n'
    profile.write_text(f'profile = "paper"\n[probe]\nrepetitions = 1\n{readers}', encoding="utf-8")
    loaded, paper = load(str(profile)), load("paper").settings
    assert (loaded.settings.probe.repetitions, loaded.settings.probe.temperature) == (1, paper.probe.temperature)
    assert [reader.name for reader in loaded.settings.readers] == ["minilm-late"]
    assert loaded.settings.judge == paper.judge
    assert loaded.origins["probe.repetitions"] == "profile mine"
    assert loaded.origins["probe.temperature"] == "profile paper"
    of_readers = {origin for key, _, origin in loaded.rows() if key.startswith("readers.")}
    assert of_readers == {"default", "profile mine"}
    given = load(str(profile), ['readers=[{name = "minilm-late", role = "labeler"}]'])
    assert {key: origin for key, origin in given.origins.items() if key.startswith("readers")} == {
        "readers.0.name": "--set", "readers.0.role": "--set",
    }  # fmt: skip
    for wrong in ("mine", "papers", 3):
        profile.write_text(f"profile = {wrong!r}\n", encoding="utf-8")
        with pytest.raises(SettingsError, match="starts from .*; expected convergence, cpu, embedded, paper, server"):
            load(str(profile))


def test_a_profile_that_is_not_there_or_no_toml_is_refused(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text("[split\n")
    for name, message in (("embeded", "'embedded'"), (str(tmp_path / "mine.toml"), "is not TOML")):
        with pytest.raises(SettingsError, match=message):
            load(name)


def test_a_profile_is_printed_to_be_copied_and_its_copy_loads(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text(
        run_process(*QUIT, "settings", "--profile", "paper", "--toml").out, encoding="utf-8"
    )
    assert load(str(tmp_path / "mine.toml")).settings == load("paper").settings
    call_quit("settings", "--toml", "--set", "split.seed=other", code=4)
    marked = tmp_path / "of-notepad.toml"
    marked.write_text("[split]\nseed = 'other'\n", encoding="utf-8-sig")
    assert load(str(marked)).settings.split.seed == "other"


def test_no_limit_of_questions_can_stand_over_a_profile_that_has_one(tmp_path) -> None:
    limited, profile = tmp_path / "limited.toml", tmp_path / "all.toml"
    limited.write_text("[collect]\nquestions = 18\n", encoding="utf-8")
    profile.write_text("", encoding="utf-8")
    lifted = load(str(limited), ["collect.questions=0"]).settings
    assert load(str(limited)).settings.collect.questions == 18 and lifted.collect.questions is None
    assert lifted == load(str(profile)).settings  # so the same tables are current
    with pytest.raises(SettingsError, match="'collect.questions' is -1"):
        load(str(limited), ["collect.questions=-1"])


def test_a_card_is_read_from_a_profile_or_a_file_of_its_own(tmp_path) -> None:
    path = tmp_path / "card.toml"
    path.write_text('[card]\nname = "Rivers"\nauthors = ["Ada"]\n')
    assert load_card(path).given == {"name": "Rivers", "authors": ["Ada"]}
    path.write_text(path.read_text() + "[split]\nseed = 'x'\n")
    assert load_card(path).name == "Rivers" == load(str(path)).settings.card.name
    path.write_text("[split]\nseed = 'x'\n")
    with pytest.raises(SettingsError, match=r"has no \[card\] block. Its keys: name, description"):
        load_card(path)
    with pytest.raises(SettingsError, match="none.toml does not exist"):
        load_card(tmp_path / "none.toml")
