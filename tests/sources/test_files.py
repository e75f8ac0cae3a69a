"""Files of sources by their names and first bytes."""

import gzip
from pathlib import Path

import pytest

from quit.errors import InputError
from quit.sources.files import first_mark, is_given, plain_name, shown_file, unit


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        (b"[1]", b"["),
        (b"\xef\xbb\xbf \n{}", b"{"),
        (b" " * 4096 + b"\t\n" * 4096 + b"q1", b"q"),
        (b" \n" * 5000, b""),
        (b"\xef\xbb\xbf", b""),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_first_mark_is_found_after_any_number_of_spaces(
    tmp_path: Path, content: bytes, mark: bytes, packed: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert first_mark(path, "a file") == mark


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent cannot be read .*; expected a file"):
        first_mark(tmp_path / "absent", "a file")


def test_records_given_from_python_are_called_so() -> None:
    given = "records-0123456789abcdef.jsonl"
    assert is_given(f"/tmp/{given}") and not is_given("records-1.jsonl")
    assert (shown_file(given), shown_file("a.jsonl")) == ("your records", "a.jsonl")


@pytest.mark.parametrize(
    ("kind", "file", "counted"),
    [
        ("csv", "a.csv", "row"),
        ("huggingface", "folder#test", "row"),
        ("jsonl", "a.parquet", "row"),
        ("jsonl", "a.jsonl", "line"),
        ("jsonl", "records-0123456789abcdef.jsonl", "record"),
        ("triviahg", "a.json", "record"),
    ],
)
def test_positions_count_what_people_see(kind: str, file: str, counted: str) -> None:
    assert unit(kind, file) == counted


def test_a_name_of_odd_bytes_has_a_question_mark_for_each() -> None:
    assert plain_name(b"caf\xe9\xff.csv".decode("utf-8", "surrogateescape")) == "caf??.csv"
