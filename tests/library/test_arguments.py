"""What callers may write in place of files and overrides."""

import json
import shutil
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import quit
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError
from quit.library.arguments import STARTER, override_texts, source_texts
from quit.library.building import temporary_sources
from quit.settings import load
from quit.settings.loading import PROFILES

ROWS = [
    {"id": "1", "question": "Wer?", "answers": ["Ödön"], "hints": ["a", "b"]},
    {"id": "2", "question": "Who?", "answers": ["Ada"], "hints": ["c"]},
]


def test_settings_may_be_nested_and_of_any_kind() -> None:
    settings = {"labels": {"max_new_tokens": 9}, "judge.threshold": 0.25, "split.method": "share", "run.runner": None}
    texts = override_texts(settings)
    assert len(texts) == 3
    effective = load("embedded", texts).settings
    assert (effective.labels.max_new_tokens, effective.judge.threshold, effective.split.method) == (9, 0.25, "share")
    others = {"split.pinned": Path("pins.jsonl"), "labels.max_new_tokens": np.int64(9), "card.authors": ("Ada", "Bo")}
    effective = load("embedded", override_texts(others)).settings
    assert (effective.split.pinned, effective.labels.max_new_tokens) == ("pins.jsonl", 9)
    assert effective.card.authors == ("Ada", "Bo")
    one = "judge.threshold=0.25"
    assert override_texts([one]) == override_texts(one) == [one] and override_texts(None) == []


DATASET = datasets.Dataset.from_list([*ROWS, *ROWS]).select([0, 1])


@pytest.mark.parametrize(
    "records",
    [ROWS, tuple(ROWS), pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS), DATASET],
    ids=["list", "tuple", "pandas", "arrow", "datasets"],
)
def test_records_of_any_kind_are_the_same_file(records) -> None:
    with temporary_sources(ROWS) as [expected], temporary_sources(records) as [text]:
        path = Path(text.removeprefix("jsonl:"))
        assert path.name == Path(expected).name
        assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == ROWS
    assert not path.exists()


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("question", b"Wer?", "'question' must be a text, but it is an object"),
        ("answers", {"Ada"}, "'answers' must be a text or a list of texts, but it is an object"),
        ("hints", (text for text in "ab"), "'hints' must be a list of texts .*, but it is an object"),
        ("id", pd.NA, "'id' is null"),
    ],
)
def test_a_value_that_json_lacks_is_no_text(field: str, value: object, fault: str) -> None:
    with pytest.raises(InputError, match=f"record 1 of your records: Field {fault}"):
        quit.check([ROWS[0] | {field: value}], models=False)


def test_missing_values_halves_of_characters_and_other_types_are_written() -> None:
    row = {"candidates": pd.NA, "question": "Wh\ud83do?", "year": pd.Timestamp("2026-01-02").date(), "path": Path("a")}
    with temporary_sources([ROWS[0] | row]) as [text]:
        record = json.loads(Path(text.removeprefix("jsonl:")).read_text(encoding="utf-8"))
    assert record == ROWS[0] | row | {"candidates": None, "year": "2026-01-02", "path": "a"}


def test_a_list_of_records_and_files_is_refused() -> None:
    with pytest.raises(InputError, match="records and names of sources"), temporary_sources([ROWS[0], "starter"]):
        pass


def test_one_record_is_a_list_of_one() -> None:
    with temporary_sources(ROWS[0]) as one, temporary_sources(ROWS[:1]) as several:
        assert [Path(text).name for text in one] == [Path(text).name for text in several]


@pytest.mark.parametrize("look", [partial(quit.check, models=False), partial(quit.plan, "none")])
def test_a_wrong_record_is_told_by_its_number_and_not_by_a_file(look) -> None:
    for records in ([{"Question": "Who?", "Answer": "Ada"}], pd.DataFrame({"Question": ["Who?"], "Answer": ["Ada"]})):
        said = r"Your records hold no usable .*: record 1 of your records: Fields '"
        with pytest.raises(InputError, match=said) as raised:
            look(records)
        assert "records-" not in str(raised.value)


def test_faults_and_notes_of_records_name_no_file() -> None:
    row = {**ROWS[0], "hints": [f"Number {number} is <b>it</b>." for number in range(5)], "hintz": 1}
    findings = quit.check([row, row], models=False)
    assert {found["file"] for found in findings["faults"] + findings["notes"]} == {"your records"}
    assert [found["detail"][:67] for found in findings["faults"]] == [
        "record 2 (1): Id '1' is that of record 1 of 'your records' already:"
    ]


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_a_plan_takes_all_that_a_build_takes_and_forgets_a_limit_with_it(tmp_path: Path) -> None:
    """The last build had one question of records; a build of the same records keeps the limit, another forgets it."""
    lines = STARTER.read_text(encoding="utf-8").splitlines()
    rows = list(map(json.loads, lines[:2]))
    opened = Workspace.create(tmp_path / "W")
    (opened.path / "sources").mkdir()
    [kept] = source_texts(rows, lambda name, data: _written(opened.path / "sources" / name, data))
    build = {"sources": [kept], "profile": "embedded", "overrides": ["collect.questions=1"]}
    other = _written(tmp_path / "other.jsonl", "\n".join(lines[:2]).encode())
    for sources, count in (
        (rows, 1), (pd.DataFrame(rows), 1), (kept, 1), (None, 1), (rows[::-1], 2), (other, 2),
        ([f"jsonl:{other}"], 2), ("starter", 117),
    ):  # fmt: skip
        opened.set_build(build)
        assert quit.plan(opened.path, sources, progress=False).questions == count


def test_a_plan_of_nothing_is_refused() -> None:
    with pytest.raises(SettingsError, match="throughput is 0: give a number above 0"):
        quit.plan("none", STARTER, throughput=0)


def test_a_profile_may_be_a_path(tmp_path: Path) -> None:
    shutil.copyfile(PROFILES / "embedded.toml", tmp_path / "mine.toml")
    assert quit.check(STARTER, tmp_path / "mine.toml", models=False) == quit.check(STARTER, models=False)


def test_names_are_taken_as_they_are() -> None:
    assert source_texts(["starter", "a.csv", Path("b.jsonl")], None) == [f"jsonl:{STARTER}", "a.csv", "b.jsonl"]
    assert source_texts("triviahg:x.json", None) == ["triviahg:x.json"]
    for nothing, message in (
        (7, "A value of type int cannot be read as a table.* Name 'starter'"),
        ([], "The list of sources is empty"),
        (pd.DataFrame(ROWS)[:0], "There are no records"),
    ):
        with pytest.raises(InputError, match=message):
            source_texts(nothing, None)
