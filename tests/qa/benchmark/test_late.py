"""Late interaction as retriever and reranker, against MaxSim of every passage."""

from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.benchmark.late import LateReranker, LateRetriever
from quit.qa.indexes.encoders import TokenVectors
from tests.qa.benchmark.test_rerankers import TEXTS
from tests.qa.benchmark.test_retrievers import DESIGNS, QUERIES
from tests.qa.corpora.worlds import Dice


@pytest.mark.parametrize("make", DESIGNS)
def test_late_interaction_over_hints_is_maxsim_over_their_tokens(world, monkeypatch, make) -> None:
    passages = make(2)
    monkeypatch.setattr("quit.qa.benchmark.late.token_encoder", lambda _: TokenVectors(Dice()))
    for chunk in (1, 8192):
        context = world.context(f"benchmark.chunk={chunk}", passages=passages)
        rankings = LateRetriever(context).search([*QUERIES, ""], len(passages))
        with monkeypatch.context() as no_corpus:  # token vectors are kept: other questions encode no text again
            no_corpus.setattr(passages, "parts", None)
            cut = LateRetriever(context).search([*QUERIES, ""], 7)
        assert [one.rows.tolist() for one in cut] == [one.rows[:7].tolist() for one in rankings]
        for query, one in zip([*QUERIES, ""], rankings, strict=True):
            [terms] = Dice().encode_tokens([query])
            for row, score in zip(one.rows.tolist(), one.scores.tolist(), strict=True):
                # Tokens do not see their neighbours here, so a passage's tokens are those of its hints.
                [tokens] = Dice().encode_tokens(passages.texts([row]))
                assert score == pytest.approx(float((terms @ tokens.T).max(axis=1).sum()), abs=2e-3)
            assert sorted(one.rows.tolist()) == list(range(len(passages)))
    broken = TokenVectors(Dice())
    broken.queries = lambda texts: [np.full_like(tokens, np.nan) for tokens in Dice().encode_tokens(texts)]
    monkeypatch.setattr("quit.qa.benchmark.late.token_encoder", lambda _: broken)
    with pytest.raises(InputError, match=f"NaN or infinity for {QUERIES[0]!r}"):
        LateRetriever(context).search(QUERIES, 7)


def test_late_reranker_is_maxsim_and_sees_order(world, encoder) -> None:
    reranker = LateReranker(world.context(models=SimpleNamespace(encoder=encoder)))
    texts = [*TEXTS, "long very is it"]
    scores = reranker.score("Which river is long?", texts)
    [inputs] = encoder.encode_tokens(["Which river is long?"])
    for text, score in zip(texts, scores, strict=True):
        [tokens] = encoder.encode_tokens([text])
        assert score == pytest.approx(float((inputs @ tokens.T).max(axis=1).sum()), rel=1e-5)
    assert scores[2] != scores[3]
    assert reranker.score("Which river is long?", texts[::-1]).tolist() == scores[::-1].tolist()
    assert len(reranker.score("Which river is long?", [])) == 0
