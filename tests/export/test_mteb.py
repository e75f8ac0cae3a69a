import pytest
import yaml

from quit.export import export, lines, verify
from quit.export.mteb import CONFIGS
from tests.export.conftest import truth_of

datasets = pytest.importorskip("datasets")
AWKWARD = {"a b\t1": "train", 'q"2%': "dev", "c-3": "test", "d\u20284": "train"}


@pytest.fixture(scope="module")
def awkward(release):
    return release.make(AWKWARD)


@pytest.fixture(scope="module")
def folder(awkward, tmp_path_factory):
    out = tmp_path_factory.mktemp("mteb")
    export(awkward, ["mteb"], out)
    return out / "mteb"


@pytest.fixture(scope="module")
def loaded(folder, tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    return {config: datasets.load_dataset(str(folder), config, cache_dir=cache) for config in CONFIGS}


def test_configs_splits_and_columns_are_the_convention(folder, loaded):
    assert {config: list(found) for config, found in loaded.items()} == {
        "corpus": ["corpus"], "queries": ["queries"], "default": ["train", "dev", "test"]
    }  # fmt: skip
    for config, found in loaded.items():
        for split in found.values():
            assert split.features.arrow_schema.remove_metadata() == CONFIGS[config]


def test_rows_are_the_tables(loaded, awkward):
    truth = truth_of(awkward)
    corpus = loaded["corpus"]["corpus"].to_list()
    assert {row["_id"]: row["text"] for row in corpus} == truth.texts and len(corpus) == len(truth.texts)
    assert {row["title"] for row in corpus} == {""}
    assert {row["_id"]: row["text"] for row in loaded["queries"]["queries"].to_list()} == truth.questions
    for split in ("train", "dev", "test"):
        expected = [(truth.owner[name], name, label) for name, label in truth.labels.items()]
        mine = [row for row in expected if AWKWARD[row[0]] == split]
        assert [tuple(row.values()) for row in loaded["default"][split].to_list()] == mine


def test_several_shards_load_as_one(awkward, loaded, tmp_path, monkeypatch):
    monkeypatch.setattr("quit.export.mteb.QUESTIONS_A_SHARD", 3)
    monkeypatch.setattr(lines, "ROWS_A_RANGE", 400)
    export(awkward, ["mteb"], tmp_path)
    assert len(list((tmp_path / "mteb" / "corpus").iterdir())) == 2
    again = datasets.load_dataset(str(tmp_path / "mteb"), "corpus", cache_dir=str(tmp_path / "cache"))
    assert again["corpus"].to_list() == loaded["corpus"]["corpus"].to_list()


def test_the_card_and_the_manifest(folder, release, tmp_path):
    text = (folder / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["license"] == ["cc-by-4.0", "mit"] and "mteb" in header["tags"]
    assert "Warning: embedded readers" in text and "mozafari2026inferential" in text
    assert verify(folder).facts["rows"]["default"] == {"train": 650, "dev": 325, "test": 325}
    export(release.make({"q1": "train"}), ["mteb"], tmp_path)
    assert verify(tmp_path / "mteb").facts["empty_splits"] == ["dev", "test"]
    found = datasets.load_dataset(str(tmp_path / "mteb"), "default", cache_dir=str(tmp_path / "cache"))
    assert list(found) == ["train"]
