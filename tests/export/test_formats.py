import hashlib
import uuid
from dataclasses import replace

import pytest

from quit.errors import SettingsError
from quit.export import FORMATS, FineTuning, export
from quit.settings.card import Card
from tests.comparing import files_of
from tests.export.conftest import as_dictionaries, make_tables


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_release_gives_the_same_bytes(tables, tmp_path, name):
    for out in ("one", "two"):
        export(tables, [name], tmp_path / out)
    export(as_dictionaries(tables, 777), [name], tmp_path / "three")  # other chunks, other encoding
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two") == files_of(tmp_path / "three")
    assert list((tmp_path / "one").iterdir()) == [tmp_path / "one" / name], "nothing temporary is left"


CHOICES = {
    "paper_keys": True,
    "fine_tuning": FineTuning(positives=1, negatives=1, seed="another"),
    "card": Card(name="Another name", description="And what it is."),
    "evaluation": True,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("option", CHOICES)
def test_an_option_changes_what_is_written_or_is_refused(tables, tmp_path, name, option):
    try:
        export(tables, [name], tmp_path / "with", **{option: CHOICES[option]})
    except SettingsError as error:
        assert "name that format too, or leave it out" in str(error) and not (tmp_path / "with").exists()
    else:
        export(tables, [name], tmp_path / "without")
        assert files_of(tmp_path / "with") != files_of(tmp_path / "without")
    if name == "huggingface" and option == "fine_tuning":
        export(tables, [name], tmp_path / "one", evaluation=True)
        export(tables, [name], tmp_path / "other", evaluation=True, fine_tuning=CHOICES[option])
        assert files_of(tmp_path / "one") != files_of(tmp_path / "other")


def test_every_export_of_a_collection_has_one_canary_and_so_has_the_card(tables, tmp_path):
    """UUID version 5 of the sources' checksums, by hand; another version of the dataset has the same."""
    named = hashlib.sha1(uuid.NAMESPACE_URL.bytes + b"quit:" + b"12,34").digest()[:16]
    expected = uuid.UUID(bytes=named, version=5)
    later = replace(tables, provenance={**tables.provenance, "release": "v2"})
    assert later.fingerprint != tables.fingerprint and later.canary == tables.canary
    export(tables, list(FORMATS), tmp_path)
    for name in FORMATS:
        assert (tmp_path / name / "CANARY.txt").read_text() == f"{tables.canary}\n"
    assert tables.canary.endswith(f"Canary GUID {expected}")
    for file in ("huggingface/README.md", "mteb/README.md"):
        assert tables.canary in (tmp_path / file).read_text(encoding="utf-8")
    assert replace(tables, provenance={}).canary != tables.canary  # of the fingerprint


def test_a_split_without_questions_has_files_only_where_the_papers_programs_read_them(tmp_path):
    """Readers such as ``datasets`` and pandas end at a file of no bytes."""
    formats = ["release-json", "paper-index", "beir", "trec", "csv", "pyserini"]
    export(make_tables({"q1": "train", "q2": "test"}), formats, tmp_path)
    empty = {name: path for name, path in files_of(tmp_path).items() if "dev" in name}
    assert empty == {
        "release-json/dev.json": b"[]\n",
        **dict.fromkeys(("paper-index/dev/index.jsonl", "paper-index/dev/retriever.jsonl"), b""),
    }
