"""Do two answers mean the same? Bidirectional entailment (the SUNAR paper, section 3.2; Kuhn et al. 2023).

``MNLI(a -> b) and MNLI(b -> a)``, both answers with the question before them. Embedded: the answer equivalence model,
asked both ways round.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any, Protocol

from quit.errors import InputError
from quit.models.loading import load_pretrained, model_identity
from quit.models.protocols import Equivalence, Pair


class Entailment(Protocol):
    """Whether two answers to a question entail each other."""

    identity: str

    def mutual(self, question: str, answer: str, other: str) -> bool:
        """Return whether each answer entails the other. Symmetric."""

    def contradicts(self, question: str, answer: str, other: str) -> bool:
        """Return whether an answer contradicts the other, either way. Symmetric."""


EQUIVALENT = 0.5
"""Probability from which two answers are equivalent."""


class EquivalentAnswers:
    """Two answers are one where the equivalence model gives both directions at least :data:`EQUIVALENT`."""

    def __init__(self, equivalence: Equivalence) -> None:
        self.identity = f"equivalence({EQUIVALENT:g})/{equivalence.identity}"
        self._equivalence = equivalence

    def mutual(self, question: str, answer: str, other: str) -> bool:
        """See :class:`Entailment`."""
        both = self._equivalence.probability([Pair(question, answer, other), Pair(question, other, answer)])
        return bool((both >= EQUIVALENT).all())

    def contradicts(self, question: str, answer: str, other: str) -> bool:
        """Return whether the answers are not equivalent: the model knows no neutral answers."""
        return not self.mutual(question, answer, other)


class NaturalLanguageInference:
    """A sequence classifier of transformers with the labels ``entailment`` and, to be asked for it, ``contradiction``,
    such as roberta-large-mnli, which the paper's authors use in their code (the paper names no model).

    ``model``: a hub name or a folder. Raises :class:`InputError` where it cannot be loaded or lacks a label.
    """

    def __init__(self, model: str, *, device: str = "cpu") -> None:
        self.identity = f"nli/{model_identity(model)}"
        self._model, self._device = model, device
        self._lock = Lock()

    def mutual(self, question: str, answer: str, other: str) -> bool:
        """See :class:`Entailment`."""
        return all(self._says("entailment", question, *pair) for pair in ((answer, other), (other, answer)))

    def contradicts(self, question: str, answer: str, other: str) -> bool:
        """See :class:`Entailment`."""
        return any(self._says("contradiction", question, *pair) for pair in ((answer, other), (other, answer)))

    def _says(self, label: str, question: str, premise: str, hypothesis: str) -> bool:
        import torch

        with self._lock:
            model, tokenizer, labels = self._loaded
            if label not in labels:
                raise InputError(
                    f"The model {self._model!r} has no label {label!r} (it has {', '.join(labels)}): "
                    "it is not an NLI model."
                )
            pair = (f"{question} {premise}", f"{question} {hypothesis}")
            inputs = tokenizer(*pair, truncation=True, return_tensors="pt").to(self._device)
            with torch.inference_mode():
                return int(model(**inputs).logits[0].argmax()) == labels[label]

    @cached_property
    def _loaded(self) -> tuple[Any, Any, dict[str, int]]:
        """The model, its tokenizer and the numbers of its labels."""
        model, tokenizer = load_pretrained(
            "AutoModelForSequenceClassification", self._model, device=self._device, what="The entailment model"
        )
        return model, tokenizer, {name.casefold(): number for name, number in model.config.label2id.items()}
