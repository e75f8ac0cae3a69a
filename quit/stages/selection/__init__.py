"""Which passages are asked with ``labels.partial = "estimated"``, and how far the labels of the others are bounded.

Method, evidence and limits: docs/economy.md.
"""

from quit.stages.selection.bounds import audit_size, upper_bound
from quit.stages.selection.rounds import LOOKS, MAX_HINTS, Look, Options, Reason, Selection, select

__all__ = ["LOOKS", "MAX_HINTS", "Look", "Options", "Reason", "Selection", "audit_size", "select", "upper_bound"]
