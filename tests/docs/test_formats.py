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
    own = ("fields", "files", "jsonl", "csv", "triviahg", "wikihint", "huggingface", "hinteval")
    files = [ROOT / "quit" / "sources" / f"{name}.py" for name in own]
    files.append(ROOT / "quit" / "stages" / "collect.py")
    reasons: set[str] = set()
    patterns = (
        r'BadRecord\(\s*"([a-z_0-9]+)"',
        r'_reject\((?:[\w\[\]]+, )+"(?:record|hint|question)", "([a-z_0-9]+)"',
        r'(?:fault = |return )\("([a-z_0-9]+)", "',
        r'fault = \("([a-z_0-9]+)", f"',
    )
    for file in files:
        text = file.read_text(encoding="utf-8")
        for pattern in patterns:
            reasons |= set(re.findall(pattern, text))
    assert reasons == set(REASONS)
