"""Token heads against sentence-transformers and transformers themselves."""

from pathlib import Path

import numpy as np
import pytest

from quit.errors import SettingsError
from quit.qa.complexity.token_heads import token_head
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
    head = token_head("late", str(tmp_path / "late"), None, FirstStages(device="cpu"))
    relevances = head.relevance("Which country?", TEXTS)
    assert relevances.shape == (2, 5) and (relevances >= 0).all()  # [CLS] which country ? [SEP]
    model[0].query_expansion = None
    [asked] = model.encode_query(["Which country?"])
    documents = [model.encode_document([text])[0] for text in TEXTS]
    expected = [np.clip((np.asarray(asked) @ np.asarray(tokens).T).max(axis=1), 0, None) for tokens in documents]
    assert relevances == pytest.approx(np.array(expected), abs=1e-5)
    head.prepare(TEXTS[:1])
    assert (head.relevance("Which country?", TEXTS[::-1]) == relevances[::-1]).all()


def test_a_sequence_to_sequence_head_is_the_probability_of_each_token(tmp_path: Path) -> None:
    import torch

    model, tokenizer = tiny.model(tmp_path, "T5ForConditionalGeneration", seed=2)
    head = token_head("seq2seq", str(tmp_path), None, FirstStages(device="cpu"))
    texts = [*TEXTS, ""]
    relevances = head.relevance("Which country?", texts)
    assert relevances.shape == (3, 3) and ((relevances > 0) & (relevances < 1)).all()
    ids = tokenizer("Which country?", add_special_tokens=False)["input_ids"]
    for row, text in zip(relevances, texts, strict=True):  # token by token, without teacher forcing's labels
        document = tokenizer(text, return_tensors="pt")["input_ids"]
        for place, token in enumerate(ids):
            before = torch.tensor([[0, *ids[:place]]])
            with torch.inference_mode():
                logits = model(input_ids=document, decoder_input_ids=before).logits[0, -1]
            assert row[place] == pytest.approx(float(logits.double().softmax(0)[token]), rel=1e-4)
    assert head.relevance("", texts).shape == (3, 0)


@pytest.mark.parametrize(("kind", "model"), [("late", ""), ("minilm", "x")])
def test_a_head_without_its_model_is_refused(encoder, kind: str, model: str) -> None:
    with pytest.raises(SettingsError, match="complexity.token_"):
        token_head(kind, model, encoder, FirstStages())
