"""The policies of table 1 by name: how an arm is selected, and which reward moves its belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quit.errors import check_known
from quit.qa.bandits import rewards
from quit.qa.bandits.request import Request
from quit.qa.settings.bandits import Bandits

Select = Literal["pool", "uniform", "stay", "finish", "round-robin", "thompson", "index"]
Novelty = Callable[[np.ndarray], np.ndarray]
TOP_K, FULL_K = (3, 4, 5), 5
"""k of the top-k policies, and of the full policy (equation 1)."""
CONCAVE = (5.0, 15.0)
"""a and b of the concave diversity reward (table 1)."""


@dataclass(frozen=True)
class Policy:
    """One row of table 1.

    ``select``: ``pool`` any document not yet observed, uniformly; ``uniform`` a uniform arm; ``stay`` the last arm
    while its last document was relevant, else a uniform one; ``finish`` the last arm to its end; ``round-robin`` an arm
    with the fewest pulls; ``thompson`` the largest theta; ``index`` the largest theta plus its UCB term. All but
    ``pool`` read an arm's next rank.
    ``belief``: which posterior theta is drawn from. ``reward``: (K, N) of a request, the part that novelty multiplies.
    ``bonus``: (N,) added to it. ``novelty``: factor from the cosine to the nearest observed document (1 when none is
    observed). ``window``: labels that a pull reads, its own included.
    """

    name: str
    title: str
    select: Select
    belief: Literal["beta", "gaussian", "gaussian-ing", None] = None
    reward: Callable[[Request], np.ndarray] = lambda request: request.observed
    bonus: Callable[[int], np.ndarray] = np.zeros
    novelty: Novelty | None = None
    window: int = 1

    @property
    def expands(self) -> bool:
        """Whether it runs in a tree too (table 4). One without a belief expands arms by the Beta belief that Bernoulli
        would have, and does not select by it."""
        return self.belief is not None or self.select in ("pool", "uniform", "stay")


def policies(settings: Bandits, names: Sequence[str] = ("all",)) -> list[Policy]:
    """Return policies by name, in the paper's order; ``all`` for every one of them.

    Raises :class:`SettingsError` for a name that is none, and without names.
    """
    by_name = {policy.name: policy for policy in _all(settings)}
    for name in names or [""]:
        check_known(name, ["all", *by_name], "policy")
    return [policy for name, policy in by_name.items() if "all" in names or name in names]


def _all(settings: Bandits) -> list[Policy]:
    def window(k: int) -> Callable[[Request], np.ndarray]:
        return lambda request: rewards.top_k(request.observed, request.lengths, k)

    def ranked(request: Request) -> np.ndarray:
        return rewards.rank_aware(request.observed)

    def retrieved(request: Request) -> np.ndarray:
        return rewards.normalised(request.scores, request.lengths)

    def ucb(ranks: int) -> np.ndarray:
        return rewards.ucb_term(ranks, settings.ucb_c)

    def concave(nearest: np.ndarray) -> np.ndarray:
        return rewards.concave_novelty(nearest, *CONCAVE)

    full = (window(FULL_K), ucb, rewards.novelty, FULL_K)
    return [
        Policy("exploitation", "Exploitation only", "finish"),
        Policy("exploration", "Exploration only", "round-robin"),
        Policy("random", "Random", "pool"),
        Policy("random-rank-aware", "Random rank-aware", "uniform"),
        Policy("epsilon-greedy", "ε-greedy", "stay"),
        Policy("bernoulli", "Bernoulli", "thompson", "beta"),
        Policy("bernoulli-ucb", "Bernoulli UCB", "thompson", "beta", bonus=ucb),
        Policy("bernoulli-ucb-index", "Bernoulli UCB, index form", "index", "beta"),
        *(Policy(f"bernoulli-top-{k}", f"Bernoulli top-{k}", "thompson", "beta", window(k), window=k) for k in TOP_K),
        Policy("bernoulli-rank-aware", "Bernoulli rank-aware", "thompson", "beta", ranked),
        Policy("gaussian", "Gaussian", "thompson", "gaussian", retrieved, window=0),
        Policy("gaussian-ing", "Gaussian ING", "thompson", "gaussian-ing", retrieved, window=0),
        Policy("diversity", "Diversity", "thompson", "beta", novelty=rewards.novelty),
        Policy("diversity-concave", "Diversity concave", "thompson", "beta", novelty=concave),
        Policy("top-k-ucb-diversity", "Top-k UCB diversity (Eq. 1)", "thompson", "beta", *full),
    ]
