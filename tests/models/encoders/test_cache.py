"""The encoder that remembers: the wrapped encoder's own bits, each text encoded once, by whatever process and
workspace."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from quit.common.cache import ContentStore
from quit.models.encoders.cache import CachingEncoder
from quit.models.minilm.encoder import MiniLM
from tests.qa.corpora.worlds import Dice

TEXTS = ["Paris", "It is the capital of France.", "A river in Egypt", "", "word " * 400, "Paris"]


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "vectors.sqlite", "vectors", "Vectors")


def same(encoder, other) -> None:
    assert encoder.encode(TEXTS).tobytes() == other.encode(TEXTS).tobytes()
    for a, b in zip(encoder.encode_tokens(TEXTS), other.encode_tokens(TEXTS), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_it_returns_what_the_real_encoder_would(store: ContentStore) -> None:
    model = MiniLM()
    for _ in range(2):  # more texts than it may remember; from the encoder, then from the disk
        same(CachingEncoder(model, texts=3, token_texts=2, store=store), model)
    same(CachingEncoder(model, texts=3, token_texts=2), model)


def test_a_text_is_encoded_once_and_by_a_second_run_never(store: ContentStore) -> None:
    first, later, other = Dice(), Dice(), Dice()
    encoder = CachingEncoder(first, store=store)
    for _ in range(2):
        encoder.encode(TEXTS)
    assert first.encoded == len(set(TEXTS))
    assert encoder.encode([]).shape == (0, 8) and encoder.encode_tokens([]) == []
    same(encoder, Dice())
    same(CachingEncoder(later, store=store), Dice())
    assert later.encoded == 0
    other.identity = "dice" * 20  # encoders share no vectors, however alike their names
    CachingEncoder(other, store=store).encode(["Paris"])
    assert other.encoded == 1


def test_tokens_bring_sentence_vectors_with_them(store: ContentStore) -> None:
    model = MiniLM()
    encoder = CachingEncoder(model, store=store)
    encoder.encode_tokens(TEXTS)
    with sqlite3.connect(store.path) as database:
        assert database.execute(f"SELECT count(*) FROM {store.table}").fetchone() == (2 * len(set(TEXTS)),)
    assert encoder.encode(TEXTS).tobytes() == model.encode(TEXTS).tobytes()
    sentences, tokens = model.encode_both(TEXTS)
    assert np.stack(sentences).tobytes() == model.encode(TEXTS).tobytes()
    assert [vectors.tobytes() for vectors in tokens] == [vectors.tobytes() for vectors in model.encode_tokens(TEXTS)]
