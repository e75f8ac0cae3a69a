"""The vectorised runs: against Algorithms 1 and 2 written out for one run, and by what must hold for any policy."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.qa.bandits.policies import policies
from quit.qa.bandits.posteriors import QuantileTable
from quit.qa.bandits.request import Request
from quit.qa.bandits.simulate import simulate
from quit.qa.settings.bandits import Bandits
from tests.qa.bandits.requests import drawn, request_of

SETTINGS = Bandits()
NAMES = [policy.name for policy in policies(SETTINGS)]
TREE = (-1, -1, 0, 0, 1)


def run(request: Request, name: str, runs: int = 200, seed: int = 0, **options) -> np.ndarray:
    [policy] = policies(SETTINGS, [name])
    rng = np.random.default_rng(seed)
    return simulate(request, policy, SETTINGS, QuantileTable(4096), rng, runs=runs, **options)


def table_1(name: str, rel: np.ndarray, n: int, near: float | None) -> float:
    """The reward of rank ``n`` (from 0) on a list, ``near`` the largest cosine to what was observed, None for nothing
    observed."""
    window, ucb = rel[n : n + 5].mean(), 0.1 * math.sqrt(math.log2(n + 2) / (n + 1))
    novel = 1 if near is None else 1 - (near + 1) / 2
    concave = 1 if near is None or near < 0 else math.exp(-5 * near**15)
    return {
        **dict.fromkeys(("bernoulli", "random", "random-rank-aware", "epsilon-greedy"), rel[n]),
        "bernoulli-ucb": rel[n] + ucb,
        "bernoulli-top-5": window,
        "bernoulli-rank-aware": rel[n] / math.log2(n + 2),
        "diversity": rel[n] * novel,
        "diversity-concave": rel[n] * concave,
        "top-k-ucb-diversity": window * novel + ucb,
        "gaussian": 0.0,
        "gaussian-ing": 0.0,
    }[name]


def written_out(request: Request, name: str, runs: int, hierarchical: bool = False) -> np.ndarray:
    """Algorithm 1 with table 1's rewards (or algorithm 2), one run and one document at a time. Returns hits by step,
    (runs, T)."""
    rng = np.random.default_rng(99)
    rel, lengths = request.observed, request.lengths
    arms = len(lengths)
    hits = np.zeros((runs, request.size))
    for each in range(runs):
        alpha, beta, pulls = np.ones(arms), np.ones(arms), np.zeros(arms, int)
        mean, weight = np.zeros(arms), np.ones(arms)  # Gaussian: mu and 1 / sigma^2, the latter also kappa
        shape, rate = np.ones(arms), np.ones(arms)
        last = unread = -1
        left = [list(range(length)) for length in lengths]
        open_ = (request.parents < 0) if hierarchical else np.ones(arms, bool)
        expanded: set[int] = set()
        seen: list[int] = []
        for step in range(request.size):
            free = [i for i in range(arms) if open_[i] and pulls[i] < lengths[i]]
            while not free:
                for i in [i for i in range(arms) if open_[i] and i not in expanded]:
                    expanded.add(i)
                    inherit(request, i, open_, mean, alpha, beta, weight, shape, rate)
                free = [i for i in range(arms) if open_[i] and pulls[i] < lengths[i]]
            if name == "random":
                cells = [(i, rank) for i in free for rank in left[i]]
                chosen, unread = cells[rng.integers(len(cells))]
                theta = [float(i == chosen) for i in free]
            elif name in ("random-rank-aware", "epsilon-greedy"):
                theta = list(rng.random(len(free)))
                if name == "epsilon-greedy" and last in free and rel[last, pulls[last] - 1]:
                    theta = [float(i == last) for i in free]
            elif name == "gaussian":
                theta = [rng.normal(mean[i], math.sqrt(1 / weight[i])) for i in free]
            elif name == "gaussian-ing":
                deviations = [math.sqrt(1 / rng.gamma(shape[i], 1 / rate[i]) / weight[i]) for i in free]
                theta = [rng.normal(mean[i], deviation) for i, deviation in zip(free, deviations, strict=True)]
            else:
                theta = [rng.beta(alpha[i], beta[i]) for i in free]
            a = free[int(np.argmax(theta))]
            n = unread if name == "random" else int(pulls[a])
            left[a].remove(n)
            last = a
            document = int(request.pool_positions[a, n])
            near = max((float(request.similarity[document, other]) for other in seen), default=None)
            r = table_1(name, rel[a, : lengths[a]], n, near)
            low, high = request.scores[request.documents >= 0].min(), request.scores[request.documents >= 0].max()
            score = (request.scores[a, n] - low) / (high - low) if high > low else 1.0
            rate[a] += weight[a] * (score - mean[a]) ** 2 / (2 * (weight[a] + 1))
            mean[a] = (weight[a] * mean[a] + score) / (weight[a] + 1)
            weight[a], shape[a] = weight[a] + 1, shape[a] + 0.5
            r = min(1.0, max(0.0, float(r)))
            alpha[a] += r
            beta[a] += 1 - r
            pulls[a] += 1
            seen.append(document)
            hits[each, step] = request.relevant[a, n]
            worth = mean[a] if name.startswith("gaussian") else alpha[a] / (alpha[a] + beta[a])
            if hierarchical and a not in expanded and pulls[a] >= 4 and worth > 0.77:
                expanded.add(a)
                inherit(request, a, open_, mean, alpha, beta, weight, shape, rate)
    return hits


def inherit(request: Request, parent: int, open_: np.ndarray, mean: np.ndarray, *held: np.ndarray) -> None:
    """Open the children of an arm at its mean, with 0.91 of everything else."""
    for child in request.children(parent):
        open_[child], mean[child] = True, mean[parent]
        for values in held:
            values[child] = 0.91 * values[parent]


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return how far the expected hits after some step are apart, in standard errors, where they are farthest."""
    ours, theirs = ours.cumsum(axis=1), theirs.cumsum(axis=1)
    error = np.sqrt(np.concatenate([ours, theirs]).var(axis=0) * (1 / len(ours) + 1 / len(theirs)))
    return float((np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / np.maximum(error, 1e-9)).max())


WRITTEN_OUT = (
    "bernoulli", "bernoulli-ucb", "bernoulli-top-5", "bernoulli-rank-aware", "gaussian", "gaussian-ing", "diversity",
    "diversity-concave", "top-k-ucb-diversity",
)  # fmt: skip
ENOUGH = 4.0  # standard errors: seeds are fixed, so what is nearer today is nearer tomorrow


@cache
def _both(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the hits of the vectorised runs and of those written out, on a request on which the policies differ."""
    request = drawn(50, arms=5, ranks=12)
    return request.relevant.reshape(-1)[run(request, name, runs=6000)], written_out(request, name, 600)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_runs_are_distributed_as_the_algorithm_written_out(name: str) -> None:
    ours, theirs = _both(name)
    assert apart(ours, theirs) < ENOUGH
    for other in set(WRITTEN_OUT) - {name}:  # and as no other one is: so the comparison can tell
        assert apart(_both(other)[0], theirs) > ENOUGH, other


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["bernoulli", "gaussian-ing", "diversity", "random", "random-rank-aware", "epsilon-greedy"]
)
def test_trees_too(name: str) -> None:
    lists = [[1, 1, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0, 1, 0], [1, 1, 1, 0]]
    good = request_of(lists, parents=TREE, vectors=np.eye(26))
    ours, flat = (good.relevant.reshape(-1)[run(good, name, runs=6000, hierarchical=tree)] for tree in (True, False))
    theirs = written_out(good, name, 600, hierarchical=True)
    assert apart(ours, theirs) < ENOUGH < apart(flat, theirs)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 1000), hierarchical=st.booleans())
def test_every_run_observes_every_document_once_each_list_from_the_top(
    name: str, seed: int, hierarchical: bool
) -> None:
    request = drawn(seed, arms=5, parents=TREE)
    order = run(request, name, runs=20, seed=seed, hierarchical=hierarchical)
    pool = np.flatnonzero(request.documents.reshape(-1) >= 0).tolist()
    ranks = request.documents.shape[1]
    for each in order.tolist():
        assert sorted(each) == pool
        if name != "random":
            for arm in range(5):
                mine = [cell % ranks for cell in each if cell // ranks == arm]
                assert mine == list(range(len(mine)))
    short = run(request, name, runs=20, seed=seed, hierarchical=hierarchical, steps=5)
    assert (short == order[:, :5]).all(), "a smaller budget is the beginning of a larger one"


def test_exploitation_reads_lists_to_their_end_and_exploration_one_rank_at_a_time() -> None:
    request = request_of([[0, 0, 0], [0], [0, 0, 0]])
    arms = run(request, "exploitation") // 3
    assert (np.diff(arms, axis=1) != 0).sum(axis=1).max() == 2
    ranks = run(request, "exploration") % 3
    assert (np.diff(ranks, axis=1) >= 0).all()
    first = run(request, "bernoulli-ucb-index")[:, :3] // 3
    assert all(sorted(each) == [0, 1, 2] for each in first.tolist())  # every arm once before any arm twice


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_pull(name: str) -> None:
    assert run(request_of([[], []]), name, runs=3).shape == (3, 0)
    one = run(request_of([[1], []], vectors=np.ones((1, 1))), name, runs=3)
    assert one.tolist() == [[0], [0], [0]]
