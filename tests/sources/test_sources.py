"""Naming a source, its checksum, and reading several."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from quit.errors import InputError, SettingsError
from quit.sources import SOURCES, SourceRef, parse_source, read_sources, source_checksum
from tests.rows import write_lines
from tests.sources.records import GOOD, dataset, good, read

LINE = {"id": "1", "question": "Who?", "answers": "X", "hints": ["He ran."]}


def test_every_kind_is_described():
    assert list(SOURCES) == ["triviahg", "wikihint", "jsonl", "csv", "huggingface", "musique", "hinteval"]
    assert all(source.name == name and source.doc and source.expected for name, source in SOURCES.items())
    assert SOURCES["triviahg"].licence == "MIT" and SOURCES["wikihint"].licence == "CC BY 4.0"


def test_a_source_is_a_kind_and_a_path(tmp_path):
    path = write_lines(tmp_path / "a:b.jsonl", [LINE])
    assert parse_source(f"jsonl:{path}") == SourceRef("jsonl", path)
    assert parse_source(str(path)) == SourceRef("jsonl", path)
    for name in ("q.csv", "q.TSV"):
        assert parse_source(str(write_lines(tmp_path / name, [LINE]))) == SourceRef("csv", tmp_path / name)
    assert parse_source(f"huggingface:{tmp_path}") == SourceRef("huggingface", tmp_path)
    assert str(SourceRef("jsonl", path)) == f"jsonl:{path}"


@pytest.mark.parametrize("kind", GOOD)
def test_everything_that_a_record_holds(tmp_path, kind):
    """``expected.json`` has, checked by hand, what readers have to make of the records of ``good.json``."""
    value = dataset(test={"q1": good(kind)}) if kind == "hinteval" else [good(kind)]
    [record] = read(kind, tmp_path, value)
    expected = json.loads(Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))
    assert not record.rejects and json.loads(json.dumps(asdict(record.question))) == expected[kind]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("triviahq:x.json", "Did you mean 'triviahg'?"),
        ("zzz:x.json", "Known: triviahg"),
        ("/", "is a folder: write KIND:PATH"),
        ("./x.xlsx", "save it as CSV"),
        ("csv:x.ods", "save it as CSV"),
        (__file__, "names no kind: write KIND:PATH"),
        ("", "names no kind: write KIND:PATH"),
        ("triviahg:", "names no path"),
        ("thg.json", "its fields are those of triviahg: name it triviahg:thg.json"),
    ],
)
def test_a_source_that_is_none_is_a_fault_of_the_settings(text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("thg.json").write_text(json.dumps([good("triviahg")]), encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        parse_source(text)
    assert words in str(error.value)


def test_a_path_that_cannot_be_read_is_a_fault_of_the_input(tmp_path):
    (tmp_path / "empty.json").touch()
    (tmp_path / "folder").mkdir()
    cases = dict.fromkeys(
        ("triviahg:%s/none.json", "%s/none.jsonl", "%s/none.json", "huggingface:%s/none"), "not exist"
    )
    cases |= {"triviahg:%s/empty.json": "is empty", "triviahg:%s/folder": "is a folder"}
    cases |= {"huggingface:%s/folder": "is empty", "huggingface:%s/empty.json": "is a file"}
    others = {"lfs.jsonl": "version https://git-lfs.github.com/spec/v1\noid", "page.csv": "\n<!DOCTYPE html><html>"}
    others |= {"page.json": "<html>", "book.csv": "PK\x03\x04"}
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    cases |= {"%s/lfs.jsonl": "git lfs pull", "%s/page.csv": "web page", "wikihint:%s/page.json": "web page"}
    cases |= {"%s/book.csv": "zip archive or a spreadsheet"}
    for text, words in cases.items():
        with pytest.raises(InputError) as error:
            parse_source(text % tmp_path)
        assert words in str(error.value) and "expected" in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_path_without_permission_is_a_fault_of_the_input(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [LINE])
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        parse_source(str(path))


def test_the_checksum_follows_content_and_relative_names(tmp_path):
    a, b = write_lines(tmp_path / "a.jsonl", [LINE]), write_lines(tmp_path / "b.jsonl", [LINE])
    assert source_checksum(SourceRef("jsonl", a)) == source_checksum(SourceRef("jsonl", b))
    assert len(source_checksum(SourceRef("jsonl", a))) == 64

    def folder(name, **files):
        for file, text in files.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text)
        return source_checksum(SourceRef("huggingface", tmp_path / name))

    one = folder("one", x="12", y="3")
    assert one == folder("two", y="3", x="12")
    assert len({one, folder("three", x="1", y="23"), folder("four", x="12", z="3"), folder("five", x="12")}) == 4
    with pytest.raises(InputError, match="does not exist"):
        source_checksum(SourceRef("jsonl", tmp_path / "none"))


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    refs = [SourceRef("jsonl", write_lines(tmp_path / folder / "q.jsonl", [LINE, 3])) for folder in ("x/a", "x/b")]
    refs.append(SourceRef("jsonl", write_lines(tmp_path / "r.jsonl", [LINE])))
    records = list(read_sources(refs))
    assert [record.question.file for record in records if record.question] == ["a/q.jsonl", "b/q.jsonl", "r.jsonl"]
    assert [reject.file for record in records for reject in record.rejects] == ["a/q.jsonl", "b/q.jsonl"]
