"""The first stage against formulas worked out here, and against a search that sorts everything."""

import math

import numpy as np
import pytest

from quit.retrieval import hybrid, search
from quit.retrieval.hybrid import HybridIndex
from tests.qa.corpora.worlds import Dice

TERMS = {  # Snowball's stems of the words that are not stop words, by hand
    "The Nile flows through Khartoum and Cairo.": "nile flow khartoum cairo",
    "The Congo is the deepest river.": "congo deepest river",
    "Cairo lies on the Nile; the Nile floods.": "cairo lie nile nile flood",
    "Whales are the largest animals.": "whale largest anim",
    "Khartoum is a capital.": "khartoum capit",
    "A river flows to the sea.": "river flow sea",
    "Which river flows through Khartoum, the Nile?": "river flow khartoum nile",
}
TEXTS = [*TERMS][:-1]


def _bm25(question: str, k1: float, b: float) -> list[float]:
    """Lucene's BM25, written from its formula."""
    docs = [TERMS[text].split() for text in TEXTS]
    mean = sum(map(len, docs)) / len(docs)
    scores = []
    for doc in docs:
        score = 0.0
        for term in TERMS[question].split():
            holding = sum(term in other for other in docs)
            idf = math.log(1 + (len(docs) - holding + 0.5) / (holding + 0.5))
            tf = doc.count(term)
            score += idf * tf / (tf + k1 * (1 - b + b * len(doc) / mean)) if tf else 0.0
        scores.append(score)
    return scores


def test_fusion_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hybrid, "FUSED", 4)
    encoder, question = Dice(), "Which river flows through Khartoum, the Nile?"
    near = encoder.encode(TEXTS) @ encoder.encode([question])[0]
    lexical = _bm25(question, 1.2, 0.75)
    score: dict[int, float] = {}
    for scores in (lexical, near):
        ranking = [row for row in np.argsort(-np.array(scores), kind="stable") if scores is near or scores[row] > 0]
        for rank, row in enumerate(ranking[:4], start=1):
            score[int(row)] = score.get(int(row), 0) + 1 / (60 + rank)
    expected = sorted(score, key=lambda row: (-score[row], row))[:3]
    assert HybridIndex(TEXTS, encoder).search([question], 3)[0].tolist() == expected


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_dense_search_in_pieces_is_a_full_sort(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(hybrid, "CHUNK", chunk)
    monkeypatch.setattr(hybrid, "FUSED", 10)
    monkeypatch.setattr(search, "BLOCK", 3)
    encoder = Dice()
    texts = [f"the {'of ' * (number % 40)}" for number in range(60)]  # no terms; a third are equal: ties by row
    index = HybridIndex(texts, encoder)
    questions = [f"question {number}" for number in range(7)]
    similarity = encoder.encode(texts) @ encoder.encode(questions).T
    for place, found in enumerate(index.search(questions, 10)):
        assert found.tolist() == np.argsort(-similarity[:, place], kind="stable")[:10].tolist()
    np.testing.assert_array_equal(index.vectors(np.array([59, 3])), encoder.encode([texts[59], texts[3]]))


def test_nothing_to_find() -> None:
    assert HybridIndex([], Dice()).search(["Who?"], 3)[0].tolist() == []
    only = HybridIndex(["the of and"], Dice())  # no term at all: the encoder still finds it
    assert only.search(["Who?"], 3)[0].tolist() == [0]


def test_encodings_are_kept_by_content(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hybrid, "CHUNK", 2)
    first, again, longer = Dice(), Dice(), Dice()
    index = HybridIndex(TEXTS, first, cache=tmp_path)
    kept = HybridIndex(TEXTS, again, cache=tmp_path)
    assert (first.encoded, again.encoded) == (6, 0)
    assert index.search(["Who?"], 6)[0].tolist() == kept.search(["Who?"], 6)[0].tolist()
    HybridIndex([*TEXTS, "more"], longer, cache=tmp_path)
    assert longer.encoded == 1  # only what is new
    other = Dice()
    other.identity = "other dice"
    HybridIndex(TEXTS, other, cache=tmp_path)
    assert other.encoded == 6
    assert not list(tmp_path.glob("*.tmp"))
