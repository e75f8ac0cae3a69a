"""Which passages are asked with ``labels.partial = "estimated"``, and how far the labels of the others are bounded.

Method, evidence and limits: docs/research/economy.md.
"""

from quit.stages.selection.rounds import INTERIM_LOOKS, ErrorGuarantee, Reason, select

__all__ = ["INTERIM_LOOKS", "ErrorGuarantee", "Reason", "select"]
