"""HintEval's JSON, as its Dataset.to_dict writes it."""

import gzip

import pytest

from quit.errors import InputError
from quit.sources import hinteval
from tests.sources.records import dataset, good, read


def test_subsets_are_files_of_their_own_because_ids_repeat_in_them(tmp_path):
    instances = {"id_1": good("hinteval")}
    records = read("hinteval", tmp_path, dataset(train=instances, test=instances))
    keys = [(record.question.file, record.question.record_id) for record in records]
    assert keys == [("s.json#train", "id_1"), ("s.json#test", "id_1")]


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "d.pickle").write_bytes(gzip.compress(b"cos\nsystem\n(S'exit 1'\ntR."))
    with pytest.raises(InputError, match="store_json"):
        list(hinteval.read(tmp_path / "d.pickle"))
