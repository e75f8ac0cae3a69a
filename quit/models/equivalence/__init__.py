"""Answer equivalence (Bulian et al. 2022): does a candidate mean the same as a reference, as an answer to a question?

Two classes implement :class:`quit.models.protocols.Equivalence`: :class:`EmbeddedEquivalence`, which ships
with the project and needs no download, and :class:`BemEquivalence`, the published BERT classifier from a Hugging Face
checkpoint. :class:`CachedEquivalence` keeps what either of them said on disk.
"""

from quit.models.equivalence.bem import BemEquivalence
from quit.models.equivalence.cache import CachedEquivalence
from quit.models.equivalence.embedded import EmbeddedEquivalence

__all__ = ["BemEquivalence", "CachedEquivalence", "EmbeddedEquivalence"]
