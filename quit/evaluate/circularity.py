"""Which models under test made the labels that they are scored on, or are of the family of one that did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

CORPUS = "release, without "
"""Beginning of the corpus in rows of results whose labels rest on fewer labelers; their names follow."""


@dataclass(frozen=True)
class Circularity:
    """``labelers``: those of the release. ``related``: name of a retriever, reranker or reader -> the labelers that are
    the same model, or of its family; none for others."""

    labelers: Sequence[str] = ()
    related: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def left_out(self, models: Iterable[str]) -> tuple[str, ...]:
        """Return without which labelers no label rests on these models: those of their families, or where these are
        all, the models themselves; nothing where no labeler would be left."""
        related = {model: self.related[model] for model in models if model in self.related}
        for left_out in ({*chain(*related.values())}, {*related} & {*self.labelers}):
            if len(left_out) < len(self.labelers):
                return tuple(name for name in self.labelers if name in left_out)
        return ()

    def corpus(self, models: Iterable[str]) -> str | None:
        """Return the corpus in rows of a system's results on labels that do not rest on its ``models``, or None."""
        names = self.left_out(models)
        return CORPUS + ", ".join(names) if names else None

    def sentence(self) -> str:
        """Return which models are marked, and what that means; nothing where none is."""
        reasons = (
            f"{model} is a labeler" if model in self.labelers else f"{model} is of the family of {', '.join(names)}"
            for model, names in self.related.items()
        )
        said = "; ".join(reasons)
        return said and (
            f"{said}. Such scores rest on labels that the model, or one like it, made: see those on labels without "
            "these labelers."
        )
