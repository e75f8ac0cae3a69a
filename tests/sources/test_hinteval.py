"""HintEval's JSON, as its Dataset.to_dict writes it."""

import gzip
import json

import pytest

from quit.errors import InputError
from quit.sources import hinteval


def metric(value, **metadata):
    return {"name": "convergence", "value": value, "metadata": metadata}


METRICS = {
    "convergence-specificity-bert-base": metric(0.1),
    "convergence-nn-bert-base": metric(0.2),
    "convergence-llm-llama-3-8b": metric(0.67, scores={"Graz": 1, "Linz": 0, "Vienna": 1}),
}


def instance(**changes):
    return {
        "question": {
            "question": "What is the capital of Austria?",
            "question_type": {"major": "LOC:LOCATION", "minor": "city:City"},
            "entities": [],
            "metrics": {},
            "metadata": {"candidate_answers-llama-3-8b": ["Graz", "Linz", "Vienna"], "difficulty": "Easy"},
        },
        "answers": [{"answer": "Vienna", "entities": [], "metrics": {}, "metadata": {}}],
        "hints": [
            {"hint": "Mozart lived in this city.", "source": "https://x.org", "entities": [], "metrics": METRICS,
             "metadata": {}},
            {"hint": "It is on the Danube.", "source": None, "entities": [], "metrics": {}, "metadata": {}},
        ],
        "metadata": {},
    } | changes  # fmt: skip


def dataset(**subsets):
    named = {name: {"name": name, "metadata": {}, "instances": instances} for name, instances in subsets.items()}
    return {"name": "d", "version": None, "description": None, "url": None, "metadata": {}, "subsets": named}


def read(tmp_path, value):
    path = tmp_path / "h.json"
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")
    return list(hinteval.read(path))


def test_an_instance_in_full(tmp_path):
    (record,) = read(tmp_path, dataset(test={"id_1": instance()}))
    question = record.question
    assert (question.record_id, question.file, question.answers) == ("id_1", "h.json", ("Vienna",))
    assert (question.coarse, question.fine, question.difficulty) == ("LOC:LOCATION", "city:City", "Easy")
    assert question.candidates == ("Graz", "Linz", "Vienna")
    first, second = question.hints
    assert (first.convergence, first.scores) == (0.67, {"Graz": 1, "Linz": 0, "Vienna": 1})
    assert (first.url, second.url, second.convergence, second.scores) == ("https://x.org", None, None, None)


def test_subsets_are_files_of_their_own_because_ids_repeat_in_them(tmp_path):
    parsed = read(tmp_path, dataset(train={"id_1": instance()}, test={"id_1": instance()}))
    found = [(record.question.file, record.question.record_id) for record in parsed]
    assert found == [("h.json#train", "id_1"), ("h.json#test", "id_1")]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"answers": []}, "no_answer"),
        ({"answers": [{}]}, "missing_field"),
        ({"answers": "Vienna"}, "wrong_type"),
        ({"question": "What?"}, "wrong_type"),
        ({"hints": None}, "missing_field"),
        ({"hints": [{"hint": "x y", "metrics": {"convergence-nn-x": metric("?")}}]}, "wrong_type"),
    ],
)
def test_a_malformed_instance_is_rejected(tmp_path, changes, reason):
    bad, fine = read(tmp_path, dataset(test={"bad": instance(**changes), "good": instance()}))
    assert fine.question and bad.rejects[0].reason == reason and bad.rejects[0].record_id == "bad"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "without 'subsets'"),
        ({"name": "d"}, "without 'subsets'"),
        ({"subsets": {"test": {}}}, "no 'instances'"),
        (dataset(), "holds no record"),
        (dataset(test={}), "holds no record"),
        (dataset(test={"a": 3}), "no usable record"),
    ],
)
def test_what_is_no_hinteval_dataset_is_an_error(tmp_path, value, words):
    with pytest.raises(InputError) as error:
        read(tmp_path, value)
    assert words in str(error.value)


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "d.pickle").write_bytes(gzip.compress(b"cos\nsystem\n(S'exit 1'\ntR."))
    with pytest.raises(InputError, match="store_json"):
        list(hinteval.read(tmp_path / "d.pickle"))
