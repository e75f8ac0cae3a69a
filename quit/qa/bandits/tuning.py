"""The best n, tau and lambda of a policy's tree (figure 12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quit.errors import SettingsError
from quit.qa.bandits.experiment import evaluate
from quit.qa.bandits.policies import Policy
from quit.qa.bandits.request import Request
from quit.qa.settings.bandits import Bandits


class Trial(NamedTuple):
    """n, tau and lambda, the ``precision`` of the tree at the smallest budget, and its ``gain`` over flat arms."""

    expand_after: int
    expand_above: float
    inheritance: float
    precision: float
    gain: float


def trials_of(requests: Sequence[Request], policy: Policy, settings: Bandits) -> list[Trial]:
    """Return ``settings.trials`` trials of a policy's tree, best first.

    The first trial has the settings' own values; the others are drawn evenly from 1 to N, 0 to 1 and 0.001 to 1. All
    share their random streams. Raises :class:`InputError` where no request is left, :class:`SettingsError` where no arm
    refines another or the policy opens none.
    """
    if not policy.expands or all((request.parents < 0).all() for request in requests):
        raise SettingsError(f"--tune {policy.name}: there is no tree. Take a policy with one, and --arms two-level.")
    rng = np.random.default_rng(settings.seed)
    trials: list[Trial] = []
    own = (settings.expand_after, settings.expand_above, settings.inheritance)
    for number in range(settings.trials):
        n, tau = int(rng.integers(1, settings.documents + 1)), round(rng.uniform(), 3)
        sample = n, tau, max(0.001, round(1.0 - rng.uniform(), 3))  # a child's prior has no parameter that is 0
        n, tau, share = sample if number else own
        changed = settings.model_copy(update={"expand_after": n, "expand_above": tau, "inheritance": share})
        grid = evaluate(requests, [policy], changed, hierarchical=True)
        budget = min(settings.budgets)
        flat, tree = (float(grid.value(policy.name, budget, structure=name).mean()) for name in grid.structures)
        trials.append(Trial(n, tau, share, tree, tree - flat))
    return sorted(trials, key=lambda trial: -trial.precision)
