"""Passages of a release, documents of other corpora."""

from pathlib import Path

import numpy as np
import pytest

from quit.qa.benchmark.passages import DocumentPassages, expand, mean_words, open_documents
from quit.qa.indexes.built import BuiltCorpus
from quit.retrieval.corpus import Corpus
from quit.retrieval.protocols import Documents
from tests.qa.benchmark.test_retrievers import DESIGNS, texts_of
from tests.qa.corpora.worlds import built


def test_the_passages_of_a_release(world) -> None:
    passages = world.task.passages
    assert isinstance(passages, Documents) and len(passages) == 12
    assert passages.ids([0, 3, 9]) == ["q1_0_0", "q1_01_10", "q3_01_01"]
    assert passages.texts([3]) == ["It is very long. It flows north."]
    assert passages.sentences([3, 8]) == [("It is very long.", "It flows north."), ("It lies on the Pacific.",)]
    units = passages.units
    assert units.group.tolist() == [0] * 3 + [1] * 3 + [2] * 3 and units.of_row[:6].tolist() == [0, 1, 2, 1, 3, 4]
    assert np.split(units.parts.indices, units.parts.indptr[1:-1])[4].tolist() == [2, 3]  # both hints of q2
    assert mean_words(passages) == pytest.approx(np.mean([len(text.split(" ")) for text in passages.texts(range(12))]))


@pytest.mark.parametrize("make", DESIGNS)
def test_passages_are_rows_any_number_per_question(make) -> None:
    passages = make()
    rows = range(len(passages))
    texts = texts_of(passages, passages.ids(rows))
    assert passages.texts(rows) == texts
    assert mean_words(passages) == pytest.approx(np.mean([len(text.split(" ")) for text in texts]))


def test_permutations_of_a_subset_share_its_score_and_ties_go_to_the_lower_row(world) -> None:
    # Units: group * 3 + subset. Subset 01 of q2 is unit 4: rows 5 and 7. Unit 2, hint 1 of q1, ties with it: row 2.
    expansion = expand(world.task.passages, np.array([4, 2, 0]), np.array([0.5, 0.5, 0.9]), 3)
    assert expansion.rows.tolist() == [0, 2, 5] and expansion.scores.tolist() == pytest.approx([0.9, 0.5, 0.5])
    assert len(expand(world.task.passages, np.array([], dtype=np.int64), np.array([]), 3)) == 0


def test_documents_of_a_jsonl_corpus_and_of_a_built_one(tmp_path: Path, capsys) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"_id": "a b", "title": "Peru", "text": "Lima is big. It is old."}\n{"id": 7, "contents": "x"}\n')
    opened = open_documents(path)
    assert not capsys.readouterr().err
    passages = DocumentPassages(opened)
    assert isinstance(opened, Corpus) and passages.ids([0, 1]) == ["a%20b", "7"]
    assert passages.texts([0]) == ["Peru Lima is big. It is old."]
    assert passages.sentences([0]) == [("Peru Lima is big.", "It is old.")]
    assert mean_words(passages) == 4.0  # 7 with its title, and 1
    assert expand(passages, np.array([1, 0]), np.array([2.0, 1.0]), 5).rows.tolist() == [1, 0]
    built(tmp_path / "C", f"jsonl:{path}")
    expansion = open_documents(tmp_path / "C")
    assert isinstance(expansion, BuiltCorpus) and expansion.texts([0, 1]) == ["Peru Lima is big. It is old.", "x"]
    path.write_text(path.read_text() + '{"id": "blank"}\n{"id": "7", "text": "y"}\n')
    assert len(open_documents(path)) == 2
    assert "documents left out: 2, the first: the document 'blank' has no text" in capsys.readouterr().err
