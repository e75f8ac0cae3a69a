"""The token head against sentence-transformers itself."""

from pathlib import Path

import numpy as np
import pytest

from quit.qa.complexity.token_heads import Colbert
from quit.qa.indexes.encoders import ColbertEncoder
from quit.qa.settings import FirstStages
from tests.qa.benchmark import tiny

TEXTS = ["Lesotho lies inside South Africa.", "Bread is made of flour."]


def test_a_colbert_checkpoint_as_head(tmp_path: Path) -> None:
    import sentence_transformers

    tiny.model(tmp_path / "bert", "BertModel", seed=1, hidden_size=32)
    model = sentence_transformers.MultiVectorEncoder(str(tmp_path / "bert"), device="cpu")
    model[0].query_expansion = {"strategy": "fixed", "attend": False, "length": 16}
    model.save_pretrained(str(tmp_path / "late"))
    assert len(model.encode_query(["Which country?"])[0]) == 16  # padded with masks, as ColBERT's queries are
    head = Colbert(ColbertEncoder(str(tmp_path / "late"), FirstStages(device="cpu")))
    relevances = head.relevance("Which country?", TEXTS)
    assert relevances.shape == (2, 5) and (relevances >= 0).all()  # [CLS] which country ? [SEP]
    model[0].query_expansion = None
    [asked] = model.encode_query(["Which country?"])
    documents = [model.encode_document([text])[0] for text in TEXTS]
    expected = [np.clip((np.asarray(asked) @ np.asarray(tokens).T).max(axis=1), 0, None) for tokens in documents]
    assert relevances == pytest.approx(np.array(expected), abs=1e-5)
    head.prepare(TEXTS[:1])
    assert (head.relevance("Which country?", TEXTS[::-1]) == relevances[::-1]).all()
