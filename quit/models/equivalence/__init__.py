"""Answer equivalence (Bulian et al. 2022): does a candidate mean the same as a reference, as an answer to a question?

Two implementations stand behind :class:`quit.models.protocols.Equivalence`: :class:`EmbeddedEquivalence`, which ships with
the project and needs no download, and :class:`BemEquivalence`, the published BERT classifier from a Hugging Face checkpoint.
"""

from quit.models.equivalence.bem import BemEquivalence
from quit.models.equivalence.embedded import EmbeddedEquivalence

__all__ = ["BemEquivalence", "EmbeddedEquivalence"]
