"""A request, its arms, and what each of them would show: all that a simulation needs, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quit.common.arithmetic import products


@dataclass(frozen=True, eq=False)
class Request:
    """A user request Q with its sub-queries q_1..q_K (the arms) and their ranked lists of at most N documents.

    ``arms``: the sub-queries' texts. ``documents``: shape (K, N), int64, the corpus row at each rank, -1 past a list's
    end. ``scores``: (K, N), float64, retrieval scores. ``observed``: (K, N), float64 in 0..1, the relevance that
    policies get to see (qrels, a judge, scores). ``relevant``: (K, N), bool, what metrics count. ``parents``: (K,), the
    arm that an arm refines, -1 for a first-level one; a parent stands before its children. ``vectors``: (distinct
    documents, dimension), unit vectors in the order of ``pool``, None where no policy needs them. ``gold``: rows of all
    relevant documents, retrieved or not; ``nuggets``: bool, (len(gold), nuggets), which of the request's nuggets each
    of them holds. ``decomposition``: number of the request's decomposition, from 0.
    """

    request_id: str
    text: str
    arms: tuple[str, ...]
    documents: np.ndarray
    scores: np.ndarray
    observed: np.ndarray
    relevant: np.ndarray
    parents: np.ndarray
    gold: np.ndarray
    nuggets: np.ndarray
    vectors: np.ndarray | None = None
    decomposition: int = 0

    @property
    def stream(self) -> str:
        """The name of its random stream."""
        return f"{self.request_id}#{self.decomposition}" if self.decomposition else self.request_id

    @cached_property
    def lengths(self) -> np.ndarray:
        """Documents of each arm, shape (K,)."""
        return (self.documents >= 0).sum(axis=1)

    @property
    def size(self) -> int:
        """All documents of all arms: what a budget of 100% observes."""
        return int(self.lengths.sum())

    @cached_property
    def pool(self) -> np.ndarray:
        """The distinct corpus rows among the documents, sorted."""
        return np.unique(self.documents[self.documents >= 0])

    @cached_property
    def pool_positions(self) -> np.ndarray:
        """The position of each document in ``pool``, shape (K, N), int64; 0 past a list's end."""
        return np.searchsorted(self.pool, self.documents)

    @cached_property
    def similarity(self) -> np.ndarray:
        """Cosines of the documents in ``pool``, float32."""
        if self.vectors is None:
            raise ValueError(f"request {self.request_id}: a policy that looks at diversity needs vectors")
        return np.clip(products(self.vectors, self.vectors), -1.0, 1.0)

    @property
    def relevant_share(self) -> float:
        """Relevant documents among those of the arms; 0 where there are none at all."""
        return float(self.relevant.sum() / self.size) if self.size else 0.0

    def children(self, arm: int) -> np.ndarray:
        """Return the arms that refine an arm."""
        return np.flatnonzero(self.parents == arm)
