"""Exact nearest neighbours by blocked matrix products, on a CPU or a GPU.

Fast products choose candidates: bf16's are three times faster than fp32's and rank nearly alike. What they put among
the best ``k + rescored`` is scored again in float64, where products of unit vectors are exact, so that weights are the
same everywhere and only a document that falls out of all these candidates is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

LANES = 16
"""Columns of which one maximum is taken before selection: the k best lie in the k lanes with the highest maxima."""
MAX_ROWS = 2048
SCORE_MB, SCORE_MB_GPU = 512, 4096
"""Memory of one block of similarities, on a CPU and on a GPU."""


def block_bytes(device: str) -> int:
    """Return the memory of one block of similarities, in bytes."""
    return (SCORE_MB if device == "cpu" else SCORE_MB_GPU) << 20


class Exclusions:
    """Which documents must not be neighbours: those of the same group (the document itself never is one).

    ``groups``: rows of each group; a row may be in several or in none.
    """

    def __init__(self, groups: Sequence[Sequence[int]], documents: int) -> None:
        self._groups = [np.asarray(group, dtype=np.int64) for group in groups]
        self._of: list[list[int]] = [[] for _ in range(documents)]
        for number, group in enumerate(groups):
            for row in group:
                self._of[row].append(number)
        self.max_excluded = max((len(self.of(row)) for row in range(documents)), default=0)

    def of(self, row: int) -> np.ndarray:
        """Return the rows in a group with ``row``, itself among them; empty for a row without a group."""
        groups = [self._groups[number] for number in self._of[row]]
        return groups[0] if len(groups) == 1 else np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *groups]))

    def pairs(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (row - start, excluded row) of all rows from ``start`` up to ``stop``."""
        lists = [self.of(row) for row in range(start, stop)]
        return np.repeat(np.arange(len(lists)), [len(rows) for rows in lists]), np.concatenate(lists)


class ExactSearch:
    """Every document's ``k`` nearest others.

    ``matrix``: float32, shape (n, d). ``rescored``: candidates beyond k. Results do not depend on which rows are asked
    for together.
    """

    def __init__(
        self,
        matrix: np.ndarray,
        k: int,
        *,
        precision: str = "bf16",
        rescored: int = 30,
        device: str = "cpu",
        excluded: Exclusions | None = None,
    ) -> None:
        import torch

        self._device, self._excluded = device, excluded
        self._k, self._n = k, len(matrix)
        self._exact = torch.from_numpy(np.array(matrix, dtype=np.float32)).to(device)
        self._fast = self._exact.to(torch.bfloat16) if precision == "bf16" else self._exact
        self._want = min(k + rescored, self._n)
        self._bytes = block_bytes(device)
        width = self._n * self._fast.element_size()
        self.step = int(max(16, min(MAX_ROWS, self._bytes // width)))
        # Written over by every block: memory that the system has to hand out anew costs a fifth of the product's time.
        self._scores = torch.empty((self.step, self._n), dtype=self._fast.dtype, device=device)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (neighbours: int64, weights: float32), shapes (stop - start, k), nearest first, ties by the lower row.

        A row with fewer than k others ends with -1 and weight 0.
        """
        parts = [self._block(low, min(low + self.step, stop)) for low in range(start, stop, self.step)]
        return np.concatenate([block for block, _ in parts]), np.concatenate([block for _, block in parts])

    def _block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        import torch

        with torch.inference_mode():
            scores = self._scores[: stop - start]
            torch.mm(self._fast[start:stop], self._fast.T, out=scores)
            self._forbid(scores, start, stop)
            values, columns = _top(scores, self._want)
            values = self._rescored(start, stop, columns, values)
            values, columns = _ordered(values, columns, min(self._k, self._want))
            weights, neighbours = values.float().cpu().numpy(), columns.cpu().numpy()
        missing = np.isneginf(weights)
        neighbours[missing], weights[missing] = -1, 0.0
        short = ((0, 0), (0, self._k - columns.shape[1]))
        return np.pad(neighbours, short, constant_values=-1), np.pad(weights, short)

    def _forbid(self, scores: Tensor, start: int, stop: int) -> None:
        import torch

        diagonal = torch.arange(stop - start, device=self._device)
        scores[diagonal, diagonal + start] = -float("inf")
        if self._excluded is not None:
            rows, others = self._excluded.pairs(start, stop)
            index = [torch.from_numpy(positions).to(self._device) for positions in (rows, others)]
            scores[index[0], index[1]] = -float("inf")

    def _rescored(self, start: int, stop: int, columns: Tensor, values: Tensor) -> Tensor:
        import torch

        exact = torch.empty(columns.shape, dtype=torch.float32, device=self._device)
        step = max(1, self._bytes // (columns.shape[1] * self._exact.shape[1] * 8))
        for low in range(0, stop - start, step):
            block = columns[low : low + step]
            # index_select of flat rows, then one product per document: several times faster than fancy indexing.
            others = self._exact.index_select(0, block.reshape(-1)).view(*block.shape, -1).double()
            row_vectors = self._exact[start + low : start + low + len(block)].unsqueeze(2).double()
            exact[low : low + step] = torch.bmm(others, row_vectors).squeeze(2)
        exact[torch.isneginf(values)] = -float("inf")
        return exact

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        """Return the mean share of true k nearest (fp32) among the given neighbours of some rows; equal scores count
        alike.

        ``rows``: int64, shape (m,). ``neighbours``: int64, shape (m, k), -1 where there are fewer.
        """
        import torch

        hits = 0.0
        with torch.inference_mode():
            for row, columns in zip(rows.tolist(), neighbours, strict=True):
                scores = self._exact[row : row + 1] @ self._exact.T
                self._forbid(scores, row, row + 1)
                scores = scores[0]
                possible = int(torch.isfinite(scores).sum())
                count = min(self._k, possible)
                if not count:
                    hits += 1
                    continue
                threshold = torch.topk(scores, count).values[-1] - 1e-6
                columns = torch.from_numpy(columns[columns >= 0].astype(np.int64)).to(self._device)
                hits += float((scores[columns] >= threshold).sum().clamp(max=count)) / count
        return hits / len(rows) if len(rows) else 1.0


def _top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` highest values of each row and their columns, in no order.

    One maximum per lane, then the best lanes, then their members: reads the block once instead of selecting from all of
    it.
    """
    import torch

    rows, width = scores.shape
    lanes = width // LANES
    if lanes <= 2 * count or scores.is_cuda:
        return torch.topk(scores, min(count, width), dim=1, sorted=False)
    whole = scores[:, : lanes * LANES].view(rows, LANES, lanes)
    best_lanes = torch.topk(whole.amax(1), count, dim=1, sorted=False).indices
    columns = (best_lanes.unsqueeze(2) + lanes * torch.arange(LANES)).view(rows, -1)
    rest = torch.arange(lanes * LANES, width).expand(rows, -1)
    columns = torch.cat([columns, rest], 1)
    values, places = torch.topk(scores.gather(1, columns), count, dim=1, sorted=False)
    return values, columns.gather(1, places)


def _ordered(values: Tensor, columns: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the best ``count`` of each row, highest first, ties by the lower column."""
    import torch

    columns, order = torch.sort(columns, dim=1)
    values, places = torch.sort(values.gather(1, order), dim=1, descending=True, stable=True)
    return values[:, :count], columns.gather(1, places)[:, :count]
