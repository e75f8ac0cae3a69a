"""The paper's files by the rules of every published script that reads them, each restated in a line or two."""

import json
import random
from collections import Counter

import pytest

from quit.dataset.paper_names import paper_id, paper_ids
from quit.errors import SettingsError
from quit.export import export
from tests.export.conftest import SPLITS, jsonl, make_tables

PUBLISHED = {"triviahg_test_1": "test", "wikihint-test_2": "train", "a_b_c_d": "dev", "plain": "train"}
BY_HINTS = {1: 5, 2: 20, 3: 60, 4: 120, 5: 120}  # passages per question


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper")
    export(make_tables(PUBLISHED), ["release-json", "paper-index"], out, paper_keys=True)
    dataset = {split: json.loads((out / "release-json" / f"{split}.json").read_text()) for split in SPLITS}
    contexts = {split: jsonl(out / "paper-index" / split / "retriever.jsonl") for split in SPLITS}
    return dataset, contexts, jsonl(out / "paper-index" / "corpus.jsonl")


def test_reader_inputs_find_the_hints_of_every_passage(files) -> None:
    """Of the oracle's passages the question is the id's first three parts, of others the title; digits name hints."""
    dataset, contexts, corpus = files
    questions = {question["id"]: question for split in SPLITS for question in dataset[split]}
    passages = [passage for split in SPLITS for question in contexts[split] for passage in question["contexts"]]
    assert len(passages) == len(corpus) == 325 * len(questions)
    text = {passage["id"]: passage["text"] for passage in passages}
    for passage in corpus:
        parts = passage["id"].split("_")
        assert "_".join(parts[:3]) == passage["title"]
        hints = questions[passage["title"]]["hints"]
        assert " ".join(hints[int(digit)]["hint"] for digit in parts[-1]) == passage["contents"] == text[passage["id"]]


def test_figure_6_counts_the_hints_of_a_passage(files) -> None:
    """Hints are the ones in the fourth part."""
    _, contexts, _ = files
    for question in contexts["test"]:
        assert Counter(each["id"].split("_")[3].count("1") for each in question["contexts"]) == BY_HINTS
        for passage in question["contexts"]:
            assert len(passage["id"].split("_")[-1]) == passage["id"].split("_")[3].count("1")


def test_fine_tuning_inputs_pair_a_questions_passages_with_those_of_another(files) -> None:
    """Questions of the split's file and of retriever.jsonl go together by position; places 1 to 324 are drawn."""
    dataset, contexts, corpus = files
    rows = {passage["id"]: row for row, passage in enumerate(corpus)}
    assert len(rows) == len(corpus)
    draw = random.Random(42)
    for split in SPLITS:
        for question, record in zip(dataset[split], contexts[split], strict=True):
            assert question["question"] == record["question"] and question["answers"] == record["answers"]
            for positive in [*draw.sample(record["contexts"], 200), record["contexts"][draw.randint(1, 324)]]:
                assert positive["id"].startswith(f"{question['id']}_")
                assert corpus[rows[positive["id"]]] == {
                    "id": positive["id"], "contents": positive["text"], "title": question["id"]
                }  # fmt: skip


def test_evaluation_finds_labels_and_answers_by_passage_and_model(files) -> None:
    """Labels are by passage id; a passage is right for a model whose answer is among the question's, letter by
    letter."""
    dataset, contexts, _ = files
    for question, record in zip(dataset["test"], contexts["test"], strict=True):
        answers_of = {name: of for subset in question["subsets"].values() for name, of in subset.items()}
        for passage in record["contexts"]:
            answers = answers_of[passage["id"].split("_")[-1]]
            right = {answers[name] in record["answers"] for name in ("gemma-3-1b", "qwen-3-4b", "llama-31-8b")}
            assert passage["label"] == 1 + max(right)
            assert passage["rag_answers"] == {
                name: answers[name] for name in ("llama-32-1b", "gemma-3-4b", "qwen-3-8b")
            }


def test_ids_of_three_parts_stay_as_they_are_and_no_two_become_one() -> None:
    assert paper_ids(["x_y_z", "x_y", "x", "x_y_z_0"]) == ["x_y_z", "x_y_0", "x_0_0", "x_y_z-0"]
    assert all(paper_id(paper_id(name)) == paper_id(name) for name in PUBLISHED)
    with pytest.raises(SettingsError, match=r"'x_y' and 'x_y_0' would both be 'x_y_0'"):
        paper_ids(["x_y", "x_y_0"])


def test_the_manifest_names_each_question_whose_id_changed(tmp_path) -> None:
    (manifest,) = export(make_tables(PUBLISHED), ["release-json"], tmp_path, paper_keys=True)
    assert manifest.facts["question_ids"] == {
        "a_b_c-d": "a_b_c_d", "plain_0_0": "plain", "wikihint-test_2_0": "wikihint-test_2"
    }  # fmt: skip


def test_tevatrons_titles_are_the_questions_ids(tmp_path) -> None:
    """Tevatron reads title, space and text of every passage, in training and encoding."""
    export(make_tables(PUBLISHED), ["tevatron"], tmp_path, paper_keys=True)
    corpus = jsonl(tmp_path / "tevatron" / "corpus.jsonl")
    assert all(passage["title"] == paper_id(passage["docid"].rsplit("_", 2)[0]) for passage in corpus)
    title_of = {passage["docid"]: passage["title"] for passage in corpus}
    for record in jsonl(tmp_path / "tevatron" / "train.jsonl"):
        for passage in [*record["positive_passages"], *record["negative_passages"]]:
            assert passage["title"] == title_of[passage["docid"]]
        assert record["positive_passages"][0]["title"] == paper_id(record["query_id"].rsplit("_", 1)[0])
