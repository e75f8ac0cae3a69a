import pytest
from typer.testing import CliRunner

from quit.cli import app
from quit.errors import SettingsError
from quit.settings import Settings, load, profile_names


def test_defaults_are_the_papers_numbers() -> None:
    settings = Settings()
    assert (settings.convergence.hints, settings.convergence.candidate_cap) == (5, 11)
    assert (settings.split.train_size, settings.split.test_size) == (5000, 2000)
    assert settings.probe.repetitions == 3
    assert (settings.labels.max_new_tokens, settings.labels.temperature) == (32, 0)
    assert settings.leakage.threshold == 0.5 and settings.leakage.mode == "question"


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_loads_and_names_three_labelers(name: str) -> None:
    settings = load(name).settings
    assert len(settings.labelers) == 3
    assert len(settings.readers) == (6 if name in ("embedded", "paper") else 3)


def test_overrides_win_and_their_origin_is_told() -> None:
    loaded = load("embedded", ["labels.max_new_tokens=16", "collect.duplicates=keep_all", "readers.0.name=first"])
    assert loaded.settings.labels.max_new_tokens == 16
    assert loaded.settings.collect.duplicates == "keep_all"
    assert loaded.settings.readers[0].name == "first"
    origins = {key: origin for key, _, origin in loaded.rows()}
    assert origins["labels.max_new_tokens"] == "--set"
    assert origins["split.method"] == "profile embedded"
    assert origins["split.seed"] == "default"


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("labels.max_new_token=16", "max_new_tokens"),
        ("label.max_new_tokens=16", "'labels'"),
        ("leakage.mode=hint_only", "'question' or 'hint'"),
        ("split.train_share=1.5", "split.train_share"),
        ("readers.0.nam=x", "'name'"),
        ("readers.9.name=x", "no entry 9"),
        ("readers.1.name=minilm-vector", "needs a different name"),
        ("seed", "has no '='"),
    ],
)
def test_a_wrong_override_is_named_with_what_would_be_right(override: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load("embedded", [override])


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="'embedded'"):
        load("embeded")


def test_a_profile_that_is_no_toml_is_refused(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[split\n")
    with pytest.raises(SettingsError, match="is not TOML"):
        load(str(path))


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().split.seed = "other"  # type: ignore[misc]


def test_a_profile_is_printed_to_be_copied_and_its_copy_loads(tmp_path) -> None:
    printed = CliRunner().invoke(app, ["settings", "--profile", "paper", "--toml"])
    (tmp_path / "mine.toml").write_bytes(printed.stdout_bytes)
    assert load(str(tmp_path / "mine.toml")).settings == load("paper").settings
    refused = CliRunner().invoke(app, ["settings", "--toml", "--set", "split.seed=other"])
    assert isinstance(refused.exception, SettingsError)
