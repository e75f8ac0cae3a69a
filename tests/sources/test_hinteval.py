"""HintEval's JSON, as its Dataset.to_dict writes it."""

import gzip

import pytest

from quit.errors import InputError
from quit.sources import hinteval
from tests.sources.records import dataset, good, read


def test_an_instance_in_full(tmp_path):
    (record,) = read("hinteval", tmp_path, dataset(test={"id_1": good("hinteval")}))
    question = record.question
    assert (question.record_id, question.file, question.answers) == ("id_1", "s.json", ("Vienna",))
    assert (question.coarse, question.fine, question.difficulty) == ("LOC:LOCATION", "city:City", "Easy")
    assert question.candidates == ("Graz", "Linz", "Vienna")
    first, second = question.hints
    assert (first.convergence, first.scores) == (0.67, {"Graz": 1, "Linz": 0, "Vienna": 1})
    assert (first.url, second.url, second.convergence, second.scores) == ("https://x.org", None, None, None)


def test_subsets_are_files_of_their_own_because_ids_repeat_in_them(tmp_path):
    instances = {"id_1": good("hinteval")}
    parsed = read("hinteval", tmp_path, dataset(train=instances, test=instances))
    found = [(record.question.file, record.question.record_id) for record in parsed]
    assert found == [("s.json#train", "id_1"), ("s.json#test", "id_1")]


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "d.pickle").write_bytes(gzip.compress(b"cos\nsystem\n(S'exit 1'\ntR."))
    with pytest.raises(InputError, match="store_json"):
        list(hinteval.read(tmp_path / "d.pickle"))
