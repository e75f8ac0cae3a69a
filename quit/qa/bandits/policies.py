"""The policies of table 1 by name: how an arm is selected, and which reward moves its belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quit.errors import check_known
from quit.qa.bandits import rewards
from quit.qa.bandits.posteriors import Belief, BetaBelief, GaussianBelief, GaussianIngBelief
from quit.qa.bandits.request import Request
from quit.qa.settings.bandits import Bandits

TOP_K, FULL_K = (3, 4, 5), 5
"""k of the top-k policies, and of the full policy (equation 1)."""
CONCAVE = (5.0, 15.0)
"""a and b of the concave diversity reward (table 1)."""
RELEVANT = 0.5
"""Observed relevance from which a document counts as relevant to the policies that look at it."""
UNPULLED = 1e3
"""The infinite UCB term of an arm never pulled: theta still orders such arms."""


@dataclass(frozen=True)
class Policy:
    """One row of table 1: the arm with the largest theta is pulled, and its next rank observed.

    ``belief``: which posterior theta is drawn from; None: theta is uniform.
    ``reward``: (K, N) of a request, the part that novelty multiplies.
    ``bonus``: (N,) added to it. ``novelty``: factor from the cosine to the nearest observed document (1 when none is
    observed). ``window``: labels that a pull reads, its own included.
    ``worth``: of a request, theta and pulls, both (R, K): the value of each arm by which one is chosen instead.
    ``stays``: of the observed relevance of a run's last document, (R,): whether the run pulls the same arm again, if
    that has documents left. ``in_order``: whether an arm's ranks are observed from the top, else in any order.
    ``expands``: whether it runs in a tree too (table 4). One without a belief expands arms by the Beta belief that
    Bernoulli would have, and does not select by it.
    """

    name: str
    title: str
    belief: type[Belief] | None = None
    reward: Callable[[Request], np.ndarray] = lambda request: request.observed
    bonus: Callable[[int], np.ndarray] = np.zeros
    novelty: Callable[[np.ndarray], np.ndarray] | None = None
    window: int = 1
    worth: Callable[[Request, np.ndarray, np.ndarray], np.ndarray] | None = None
    stays: Callable[[np.ndarray], np.ndarray] | None = None
    in_order: bool = True
    expands: bool = True


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

    def index(request: Request, theta: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        terms = rewards.index_bonus(request.documents.shape[1], settings.ucb_c, UNPULLED)
        return theta + terms[pulls].astype(np.float32)

    full = (window(FULL_K), ucb, rewards.novelty, FULL_K)
    return [
        Policy("exploitation", "Exploitation only", stays=lambda last: last >= 0, expands=False),
        Policy("exploration", "Exploration only", worth=_fewest_pulls, expands=False),
        Policy("random", "Random", worth=_any_document, in_order=False),
        Policy("random-rank-aware", "Random rank-aware"),
        Policy("epsilon-greedy", "ε-greedy", stays=lambda last: last >= RELEVANT),
        Policy("bernoulli", "Bernoulli", BetaBelief),
        Policy("bernoulli-ucb", "Bernoulli UCB", BetaBelief, bonus=ucb),
        Policy("bernoulli-ucb-index", "Bernoulli UCB, index form", BetaBelief, worth=index),
        *(Policy(f"bernoulli-top-{k}", f"Bernoulli top-{k}", BetaBelief, window(k), window=k) for k in TOP_K),
        Policy("bernoulli-rank-aware", "Bernoulli rank-aware", BetaBelief, ranked),
        Policy("gaussian", "Gaussian", GaussianBelief, retrieved, window=0),
        Policy("gaussian-ing", "Gaussian ING", GaussianIngBelief, retrieved, window=0),
        Policy("diversity", "Diversity", BetaBelief, novelty=rewards.novelty),
        Policy("diversity-concave", "Diversity concave", BetaBelief, novelty=concave),
        Policy("top-k-ucb-diversity", "Top-k UCB diversity (Eq. 1)", BetaBelief, *full),
    ]


def _fewest_pulls(_: Request, theta: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """Return values of which the largest is of an arm with the fewest pulls; theta, 0 to 1, decides among several."""
    return theta - 2 * pulls.astype(np.float32)


def _any_document(request: Request, theta: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """Return values of which the largest is each arm's with the share of documents left that are its own: the largest
    u^(1/w), u uniform, is each arm's with probability w / sum of w (Efraimidis and Spirakis 2006)."""
    left = np.maximum(request.lengths - pulls, 1)
    return np.where(theta > 0, np.maximum(theta, 0) ** (1 / left), theta)
