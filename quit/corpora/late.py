"""Late-interaction neighbours: MaxSim over token vectors, among the candidates that mean vectors name.

Similarity of document q to d: the mean over q's tokens of the highest cosine with a token of d (ColBERT's MaxSim divided by
q's length, so that weights are comparable and fit float16). Token vectors take some hundred times the space of one vector a
document; scoring every pair is out of reach past some ten thousand documents, so candidates come from mean vectors.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from quit.corpora.built import BuiltCorpus
from quit.corpora.encoders import LateEncoder, device_of
from quit.corpora.search import ExactSearch, Exclusions
from quit.corpora.vectors import check_finite
from quit.estimate import Estimate
from quit.files import replacing, write_json
from quit.settings import FirstStages, Graph

SAMPLE = 20
"""Documents whose neighbours are compared with MaxSim over the whole corpus: each costs as much as a search of its own."""


class LateNeighbours:
    """Neighbours by MaxSim. Implements ``quit.corpora.neighbours.Neighbours``."""

    truth = "MaxSim with every document"
    most_sampled = SAMPLE

    def __init__(
        self,
        corpus: BuiltCorpus,
        encoder: LateEncoder,
        k: int,
        out: Path,
        settings: Graph,
        stages: FirstStages,
        excluded: Exclusions | None,
        given: dict[str, Any],
    ) -> None:
        self._corpus, self._encoder, self._k, self._settings, self._stages = corpus, encoder, k, settings, stages
        self._folder = out / "tokens"
        self._excluded = excluded
        self.facts = {
            **given,
            "identity": encoder.identity,
            "method": "maxsim",
            "late_candidates": settings.late_candidates,
        }

    def prepare(self, say: Callable[[str], None]) -> None:
        """Encode the token vectors that are missing, and their means."""
        self._steps = _encode(self._corpus, self._encoder, self._folder, self._stages.block, say)
        lengths = [np.load(self._folder / f"{start:010d}.lengths.npy") for start in self._steps]
        self._files = [np.load(self._folder / f"{start:010d}.tokens.npy", mmap_mode="r") for start in self._steps]
        self._bounds = [np.concatenate([[0], np.cumsum(one)]) for one in lengths]
        means = np.stack([self._tokens(row).mean(axis=0) for row in range(len(self._corpus))]).astype(np.float32)
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        self._search = ExactSearch(
            means,
            min(self._k * self._settings.late_candidates, len(self._corpus) - 1),
            precision="fp32",
            score_mb=self._settings.score_mb,
            device=device_of(self._stages),
            excluded=self._excluded,
        )

    def _tokens(self, row: int) -> np.ndarray:
        step, place = divmod(row, self._stages.block)
        low, high = self._bounds[step][place], self._bounds[step][place + 1]
        return np.asarray(self._files[step][low:high], dtype=np.float32)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (neighbours: int64, -1 where there are fewer; weights: float32), shapes (stop - start, k)."""
        made = np.full((stop - start, self._k), -1, dtype=np.int64)
        weights = np.zeros((stop - start, self._k), dtype=np.float32)
        candidates, _ = self._search.rows(start, stop)
        for place, some in enumerate(candidates):
            some = np.sort(some[some >= 0])
            scores = self._maxsim(start + place, some)
            order = np.argsort(-scores, kind="stable")[: self._k]
            made[place, : len(order)], weights[place, : len(order)] = some[order], scores[order]
        return made, weights

    def _maxsim(self, row: int, others: np.ndarray) -> np.ndarray:
        import torch

        if not len(others):
            return np.zeros(0, dtype=np.float32)
        device = device_of(self._stages)
        asked = torch.from_numpy(self._tokens(row)).to(device)
        parts = []
        step = max(1, (self._settings.score_mb << 20) // (4 * max(1, len(asked)) * 512))
        for low in range(0, len(others), step):
            tokens = [self._tokens(int(one)) for one in others[low : low + step]]
            owner = torch.from_numpy(np.repeat(np.arange(len(tokens)), [len(one) for one in tokens])).to(device)
            similar = asked @ torch.from_numpy(np.concatenate(tokens)).to(device).T
            top = torch.full((len(asked), len(tokens)), -1.0, device=device)
            top.scatter_reduce_(1, owner.expand(len(asked), -1), similar, reduce="amax")
            parts.append(top.mean(dim=0).cpu().numpy())
        return np.concatenate(parts)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        """Return the share of the true neighbours (MaxSim with every document) among those given."""
        hits = []
        for row, given in zip(rows.tolist(), neighbours, strict=True):
            banned = {row, *(self._excluded.of(row).tolist() if self._excluded else ())}
            others = np.array([one for one in range(len(self._corpus)) if one not in banned], dtype=np.int64)
            scores = self._maxsim(row, others)
            count = min(self._k, len(others))
            if count:
                least = np.partition(scores, len(scores) - count)[len(scores) - count] - 1e-6
                hits.append(float(np.isin(others[scores >= least], given).sum()) / count)
        return min(1.0, float(np.mean(hits))) if hits else 1.0


def _encode(
    corpus: BuiltCorpus, encoder: LateEncoder, folder: Path, block: int, say: Callable[[str], None]
) -> list[int]:
    plan = {"corpus": corpus.identity, "identity": encoder.identity, "block": block}
    known = folder / "plan.json"
    if not known.is_file() or json.loads(known.read_text()) != plan:
        shutil.rmtree(folder, ignore_errors=True)
        write_json(known, plan)
    starts, estimate = list(range(0, len(corpus), block)), Estimate(len(corpus))
    for start in starts:
        stop = min(start + block, len(corpus))
        lengths = folder / f"{start:010d}.lengths.npy"
        if not lengths.is_file():
            made = encoder.documents(corpus.text_range(start, stop))
            empty = np.zeros((1, encoder.dimension), dtype=np.float32)  # a text without a token is near to nothing
            made = [one if len(one) else empty for one in made]
            for row, one in enumerate(made):
                check_finite(one[None], encoder.name, lambda _, row=start + row: corpus.ids([row])[0])
            with replacing(folder / f"{start:010d}.tokens.npy") as temporary, temporary.open("wb") as file:
                np.save(file, np.concatenate(made).astype(np.float16))
            with replacing(lengths) as temporary, temporary.open("wb") as file:  # last: what has it is whole
                np.save(file, np.array([len(one) for one in made], dtype=np.int64))
        say(f"token vectors: documents {estimate.at(stop)}")
    return starts
