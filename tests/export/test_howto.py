"""The loading lines of docs/howto/export.md, run on exports of every format."""

import importlib.util
import re

import pytest

from quit.export import FORMATS, export
from tests.docs.pages import blocks
from tests.export.tevatron import read_by_tevatron
from tests.paths import ROOT

PAGE = ROOT / "docs" / "howto" / "export.md"
BLOCKS = [block.text for block in blocks(PAGE) if block.kind == "python"]


@pytest.fixture(scope="module")
def exports(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("howto")
    export(tables, list(FORMATS), out / "exports", evaluation=True)
    return out


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.search(r"exports/([\w-]+)", block).group(1))
def test_the_lines_load_what_was_exported(block, exports, monkeypatch):
    for name in re.findall(r"^(?:from|import) (\w+)", block, flags=re.M):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    monkeypatch.chdir(exports)
    # Not the variable, which counts only until datasets is imported. Its cache knows an export by its name and card
    # alone.
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", exports / "cache")
    names: dict = {}
    exec(compile(block, str(PAGE), "exec"), names)
    if "labels" in names:
        assert len(names["corpus"]) == 7 * 325 and set(names["labels"]["score"]) == {1, 2}
    if "dataset" in names and "ir_datasets" in names:
        assert {one.relevance for one in names["dataset"].qrels_iter()} == {1, 2}
        assert (len([*names["dataset"].docs_iter()]), len([*names["dataset"].queries_iter()])) == (7 * 325, 2)
    if "fully" in names:
        assert len(names["fully"]["corpus"]) == 7 * 325 and len(names["fully"]["queries"]) == 2
        assert {label for one in names["fully"]["relevant_docs"].values() for label in one.values()} == {2}
    if "train" in names:
        assert len(names["train"]) == 30 and len(read_by_tevatron(names["train"])) == 30
    if "triples" in names:
        assert len(names["triples"]) == 30 and {len(one) for one in names["triples"]} == {3}


def test_every_format_has_a_command_on_the_page():
    named = set(re.findall(r"--format ([\w,-]+)", PAGE.read_text(encoding="utf-8")))
    assert {one for names in named for one in names.split(",")} == set(FORMATS)
