"""The page of formats says what the readers do."""

import json
import re
import sys
from pathlib import Path

import pytest

from quit.sources import SourceRef, read_source
from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "docs"))

from make_formats import EXAMPLES, REASONS


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_example_is_one_its_reader_takes_whole(kind: str, tmp_path: Path) -> None:
    example = EXAMPLES[kind]
    path = tmp_path / ("example.jsonl" if kind == "jsonl" else "example.json")
    text = example if kind == "csv" else json.dumps([example] if kind in ("triviahg", "wikihint") else example)
    path.write_text(text, encoding="utf-8")
    [record] = list(read_source(SourceRef(kind, path)))
    assert record.question and not record.rejects
    assert record.question.answers == ("octopus",) and record.question.hints[0].text == "It has three hearts."


def test_every_reason_of_readers_and_collection_is_explained() -> None:
    files = [*(ROOT / "quit" / "sources").glob("*.py"), ROOT / "quit" / "stages" / "collect.py"]
    before = r'(?:BadRecord\(|"(?:record|hint|question)",|fault = \(|return \()'
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert set(re.findall(rf'{before}\s*"([a-z]+_[a-z_0-9]+)", ', text)) == set(REASONS)
