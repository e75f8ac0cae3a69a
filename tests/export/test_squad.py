import pytest

from quit.export import export

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("squad")
    export(tables, ["squad", "huggingface"], out)
    return out


def test_datasets_loads_every_passage_with_its_question_answers_and_label(folder, tmp_path):
    passages = datasets.load_dataset(str(folder / "huggingface"), "passages", cache_dir=str(tmp_path))
    questions = datasets.load_dataset(str(folder / "huggingface"), "questions", cache_dir=str(tmp_path))
    files = {split: str(folder / "squad" / f"{split}.json") for split in ("train", "dev", "test")}
    loaded = datasets.load_dataset("json", data_files=files, field="data", cache_dir=str(tmp_path))
    for split, articles in loaded.items():
        given = {row["id"]: row for row in questions[split]}
        assert articles["title"][:] == list(given)
        found = []
        for article in articles:
            for paragraph in article["paragraphs"]:
                (asked,) = paragraph["qas"]
                question = given[article["title"]]
                assert asked["question"] == question["question"]
                assert asked["answers"] == [{"text": text, "answer_start": -1} for text in question["valid_answers"]]
                found.append((asked["id"], paragraph["context"], asked["label"]))
        assert found == [(row["id"], row["text"], row["label"]) for row in passages[split]]
