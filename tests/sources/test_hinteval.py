"""HintEval's JSON, as its Dataset.to_dict writes it."""

import gzip

import pytest

from quit.errors import InputError
from quit.sources import hinteval
from tests.sources.records import dataset, good, read


def test_an_instance_in_full_and_subsets_that_are_files_of_their_own(tmp_path):
    """Ids repeat in subsets."""
    instances = {"id_1": good("hinteval")}
    questions = [record.question for record in read("hinteval", tmp_path, dataset(train=instances, test=instances))]
    assert [(question.file, question.record_id) for question in questions] == [
        ("s.json#train", "id_1"), ("s.json#test", "id_1")
    ]  # fmt: skip
    [record] = read("hinteval", tmp_path, dataset(test=instances))
    question = record.question
    assert (question.record_id, question.file, question.answers) == ("id_1", "s.json", ("Vienna",))
    assert (question.coarse, question.fine, question.difficulty) == ("LOC:LOCATION", "city:City", "Easy")
    assert question.candidates == ("Graz", "Linz", "Vienna")
    assert [(hint.convergence, hint.scores, hint.url) for hint in question.hints] == [
        (0.67, {"Graz": 1, "Linz": 0, "Vienna": 1}, "https://x.org"), (None, None, None)
    ]  # fmt: skip


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "d.pickle").write_bytes(gzip.compress(b"cos\nsystem\n(S'exit 1'\ntR."))
    with pytest.raises(InputError, match="store_json"):
        list(hinteval.read(tmp_path / "d.pickle"))
