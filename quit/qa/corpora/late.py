"""Late-interaction neighbours: MaxSim over token vectors, among the candidates that mean vectors name.

Similarity of document q to d: the mean over q's tokens of the highest cosine with a token of d (ColBERT's MaxSim
divided by q's length, so that weights are comparable and fit float16). Token vectors take some hundred times the space
of one vector a document; scoring every pair is out of reach past some ten thousand documents, so candidates come from
mean vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quit.common.arithmetic import unit
from quit.qa.indexes import vectors
from quit.qa.indexes.encoders import LateEncoder, device_of
from quit.qa.indexes.exact import SCORE_MB, ExactSearch, Neighbours
from quit.qa.indexes.vectors import check_finite, checkpointed_batches, id_of

SAMPLE = 20
"""Documents whose neighbours are compared with MaxSim over the whole corpus: each costs as much as a search of its
own."""


@dataclass
class LateNeighbours(Neighbours):
    """Neighbours by MaxSim."""

    tokens: LateEncoder = field(kw_only=True)
    truth = "MaxSim with every document"
    most_sampled = SAMPLE

    def __post_init__(self) -> None:
        super().__post_init__()
        self.facts |= {
            "identity": self.tokens.identity,
            "method": "maxsim",
            "late_candidates": self.settings.late_candidates,
        }

    def prepare(self) -> None:
        """Encode the token vectors that are missing, and their means."""
        plan = {"corpus": self.corpus.identity, "identity": self.tokens.identity}
        steps = checkpointed_batches(
            self.out / "tokens",
            plan,
            ("tokens", "lengths"),
            len(self.corpus),
            vectors.BLOCK,
            self._encode,
            "token vectors",
        )
        self._files = [tokens for tokens, _ in steps]
        self._bounds = [np.concatenate([[0], np.cumsum(lengths)]) for _, lengths in steps]
        count = len(self.corpus)
        means = unit(np.stack([self._tokens(row).mean(axis=0) for row in range(count)]).astype(np.float32))
        self._search = ExactSearch(
            means,
            min(self.k * self.settings.late_candidates, count - 1),
            precision="fp32",
            device=device_of(self.stages),
            excluded=self.excluded,
        )

    def _encode(self, start: int, stop: int) -> list[np.ndarray]:
        corpus, encoder = self.corpus, self.tokens
        empty = np.zeros((1, encoder.dimension), dtype=np.float32)  # a text without a token is near to nothing
        texts = [tokens if len(tokens) else empty for tokens in encoder.documents(corpus.text_range(start, stop))]
        for row, tokens in enumerate(texts, start=start):
            check_finite(tokens[None], encoder.name, id_of(corpus, row))
        lengths = np.array([len(tokens) for tokens in texts], dtype=np.int64)
        return [np.concatenate(texts).astype(np.float16), lengths]

    def _tokens(self, row: int) -> np.ndarray:
        step, offset = divmod(row, vectors.BLOCK)
        low, high = self._bounds[step][offset], self._bounds[step][offset + 1]
        return np.asarray(self._files[step][low:high], dtype=np.float32)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (neighbours: int64, -1 where there are fewer; weights: float32), shapes (stop - start, k)."""
        neighbours = np.full((stop - start, self.k), -1, dtype=np.int64)
        weights = np.zeros((stop - start, self.k), dtype=np.float32)
        candidates, _ = self._search.rows(start, stop)
        for offset, others in enumerate(candidates):
            others = np.sort(others[others >= 0])
            scores = self._maxsim(start + offset, others)
            order = np.argsort(-scores, kind="stable")[: self.k]
            neighbours[offset, : len(order)], weights[offset, : len(order)] = others[order], scores[order]
        return neighbours, weights

    def _maxsim(self, row: int, others: np.ndarray) -> np.ndarray:
        import torch

        if not len(others):
            return np.zeros(0, dtype=np.float32)
        device = device_of(self.stages)
        query_tokens = torch.from_numpy(self._tokens(row)).to(device).double()  # half precision: products are exact
        parts = []
        step = max(1, (SCORE_MB << 20) // (4 * max(1, len(query_tokens)) * 512))
        for low in range(0, len(others), step):
            tokens = [self._tokens(int(other)) for other in others[low : low + step]]
            owner = torch.from_numpy(np.repeat(np.arange(len(tokens)), list(map(len, tokens)))).to(device)
            similar = (query_tokens @ torch.from_numpy(np.concatenate(tokens)).to(device).double().T).float()
            top = torch.full((len(query_tokens), len(tokens)), -1.0, device=device)
            top.scatter_reduce_(1, owner.expand(len(query_tokens), -1), similar, reduce="amax")
            parts.append(top.mean(dim=0).cpu().numpy())
        return np.concatenate(parts)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        """Return the share of the true neighbours (MaxSim with every document) among those given."""
        hits = []
        for row, named in zip(rows.tolist(), neighbours, strict=True):
            banned = {row, *(self.excluded.of(row).tolist() if self.excluded else ())}
            others = np.array([other for other in range(len(self.corpus)) if other not in banned], dtype=np.int64)
            scores = self._maxsim(row, others)
            count = min(self.k, len(others))
            if count:
                least = np.partition(scores, len(scores) - count)[len(scores) - count] - 1e-6
                hits.append(float(np.isin(others[scores >= least], named).sum()) / count)
        return min(1.0, float(np.mean(hits))) if hits else 1.0
