"""HintEval's JSON, as its Dataset.to_dict writes it."""

import gzip

import pytest

from quit.errors import InputError
from quit.sources import hinteval
from tests.sources.records import dataset, good, read


def test_subsets_are_files_of_their_own_because_ids_repeat_in_them(tmp_path):
    instances = {"id_1": good("hinteval")}
    records = read("hinteval", tmp_path, dataset(train=instances, test=instances))
    keys = [(record.question.file, record.question.position, record.question.record_id) for record in records]
    assert keys == [("s.json#train", 0, "id_1"), ("s.json#test", 0, "id_1")]


@pytest.mark.parametrize("empty", [None, {"value": None}])
def test_a_method_without_value_and_an_empty_list_hide_no_others(tmp_path, empty):
    instance = good("hinteval")
    hints = [{"hint": hint["hint"]} for hint in instance["hints"]]
    hints[0]["metrics"] = {"convergence-llm-a": empty, "convergence-nn-b": {"value": 0.25}}
    metadata = {"candidate_answers-a": [], "candidate_answers-b": ["X", "Y"]}
    changed = {**instance, "hints": hints, "question": {**instance["question"], "metadata": metadata}}
    [record] = read("hinteval", tmp_path, dataset(test={"id_1": changed}))
    assert record.question.hints[0].convergence == 0.25 and record.question.candidates == ("X", "Y")


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "d.pickle").write_bytes(gzip.compress(b"cos\nsystem\n(S'exit 1'\ntR."))
    with pytest.raises(InputError, match="store_json"):
        list(hinteval.read(tmp_path / "d.pickle"))
