"""Questions, passages and labels of a release; documents of other corpora."""

from pathlib import Path

import numpy as np
import pytest

from quit.dataset.paper_names import subset_mask
from quit.errors import InputError
from quit.qa.benchmark.task import DocumentPassages, ReleaseRelevance, expand, mean_words, open_documents, release_task
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
    passages, draw = make(), np.random.default_rng(1)
    names = passages.ids(range(len(passages)))
    assert passages.texts(range(len(passages))) == texts_of(passages, names)
    assert mean_words(passages) == pytest.approx(np.mean([len(text.split(" ")) for text in texts_of(passages, names)]))
    papers = [f"q{name[1]}_0_0_{subset_mask(subset, len(passages.parts(int(name[1]))))}_{permutation}"
              for name, subset, permutation in (name.split("_") for name in names)]  # fmt: skip
    others = {f"q{group}{name[2:]}" for group in range(4) for name in names} - {
        *names
    }  # permutations of other questions
    unknown = ["q9_0_0", f"{names[0]}9", "q0_01_0", "q0", *others]
    order = draw.permutation(len(names))
    for known in (names, papers):
        assert passages.rows([known[row] for row in order]).tolist() == order.tolist()
    assert set(passages.rows(unknown).tolist()) == {-1}
    # Labels of q1 and q3, in that order.
    labels = draw.integers(1, 3, len(names)).astype(np.int8)
    label = {row: int(labels[row]) for row, name in enumerate(names) if name[1] in "13"}
    relevance = ReleaseRelevance(np.array([1, 3]), passages.starts, labels)
    for query, group in enumerate("13"):
        own = [row for row, name in enumerate(names) if name[1] == group]
        assert relevance.labels(query, order).tolist() == [label[row] if row in own else 0 for row in order]
        ranked = sorted(own, key=lambda row: -label[row])
        assert relevance.judgements(query).tolist() == [label[row] for row in ranked]
        assert relevance.oracle(query).rows.tolist() == own


def test_labels_count_only_for_the_questions_own_passages(world) -> None:
    relevance = world.task.relevance
    assert relevance.labels(1, np.array([4, 6, 0, 11])).tolist() == [2, 1, 0, 0]
    assert relevance.judgements(2).tolist() == [2, 2, 1, 1]
    assert relevance.oracle(1).rows.tolist() == [4, 5, 6, 7] and set(relevance.oracle(1).scores.tolist()) == {1.0}


def test_a_split_and_an_empty_one(world) -> None:
    assert release_task(world.dataset, "test").question_ids == ["q3"]
    assert release_task(world.dataset, "train").relevance.groups.tolist() == [0, 1]
    with pytest.raises(InputError, match="split 'dev' of the release has no question .train 2, dev 0, test 1."):
        release_task(world.dataset, "dev")


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
