import pytest

from quit.export import export, paper_index
from tests.comparing import files_of
from tests.export.plain_index import plain_index

NAMES = [f"{split}/{name}.jsonl" for split in ("train", "dev", "test") for name in ("index", "retriever")]
NAMES.append("corpus.jsonl")


@pytest.mark.parametrize("at_once", [paper_index.PASSAGES_AT_ONCE, 100])
def test_the_seven_files_have_the_bytes_that_the_papers_scripts_write(tables, tmp_path, monkeypatch, at_once) -> None:
    monkeypatch.setattr(paper_index, "PASSAGES_AT_ONCE", at_once)
    export(tables, ["release-json", "paper-index"], tmp_path, paper_keys=True)
    plain_index(tmp_path / "release-json", tmp_path / "plain")
    ours, theirs = files_of(tmp_path / "paper-index"), files_of(tmp_path / "plain")
    assert theirs.keys() == {*NAMES} and all(theirs.values())
    assert {name: ours[name] for name in theirs} == theirs
