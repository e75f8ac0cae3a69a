"""Which passages are asked with ``labels.partial = "estimated"``, and how far the labels of the others are bounded.

Method, evidence and limits: docs/research/economy.md.
"""

from quit.stages.selection.rounds import LOOKS, Promise, Reason, select

__all__ = ["LOOKS", "Promise", "Reason", "select"]
