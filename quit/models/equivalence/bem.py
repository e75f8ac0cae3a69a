"""BEM, the published answer-equivalence classifier (Bulian et al. 2022), from a Hugging Face checkpoint.

The converted checkpoint ``kortukov/answer-equivalence-bem`` reads ``[CLS] candidate [SEP]`` as segment 0 and
``reference [SEP] question [SEP]`` as segment 1, written out as text, without further special tokens; class 1 is
"equivalent".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quit.errors import InputError, MissingDependency
from quit.models import limits
from quit.models.folders import folder_checksum
from quit.models.loading import load_pretrained, usable_device
from quit.models.protocols import Pair

CHECKPOINT = "kortukov/answer-equivalence-bem"
VERSION = 1
"""Rises whenever the same checkpoint would give other probabilities."""

_STEP = 16
"""Tokens by which the inputs of a batch grow."""
PAIR = 507
"""Word pieces of question, gold answer and answer together that BEM reads, beside its special tokens."""

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")


class BemEquivalence:
    """Equivalence from a BERT sequence classifier.

    ``checkpoint`` is a name on the hub or a local folder, ``revision`` a commit of the former; ``device`` is ``cpu``,
    ``cuda`` or ``auto`` (a GPU where there is one). Batches have one size and the length of their pairs, in steps, so
    that a probability does not depend on the other pairs. Raises :class:`MissingDependency` when the checkpoint cannot
    be loaded.
    """

    def __init__(self, checkpoint: str, *, revision: str = "", device: str = "auto", batch: int = 64) -> None:
        self._device = usable_device(device, "the device of BEM")
        try:
            self._model, self._tokenizer = load_pretrained(
                "AutoModelForSequenceClassification",
                checkpoint,
                revision=revision,
                device=self._device,
                what="The BEM checkpoint",
            )
        except InputError as error:
            raise MissingDependency(
                f"{error} Download it on a connected machine (hf download {CHECKPOINT} --local-dir FOLDER) and set "
                "models.bem_checkpoint=FOLDER, or set models.equivalence=embedded."
            ) from error
        labels = int(self._model.config.num_labels)
        if labels != 2:
            raise InputError(f"The checkpoint {checkpoint!r} has {labels} classes; BEM has two.")
        self._batch = batch
        self.identity = f"bem-{VERSION}:{Path(checkpoint).name}@{_digest(self._model)}"

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability of class 1 for each pair, shape (len(pairs),), float64 in [0, 1]."""
        import torch

        if not pairs:
            return np.zeros(0)
        longest = min(512, self._model.config.max_position_embeddings)
        tokens = self._tokenizer(
            [f"[CLS] {pair.candidate} [SEP]" for pair in pairs],
            [f"{pair.reference} [SEP] {pair.question} [SEP]" for pair in pairs],
            add_special_tokens=False,
            truncation="longest_first",
            max_length=longest,
        )
        lengths = np.array([min(-(-len(ids) // _STEP) * _STEP, longest) for ids in tokens["input_ids"]])
        probabilities = np.zeros(len(pairs))
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length).tolist()
            for start in range(0, len(rows), self._batch):
                part = rows[start : start + self._batch]
                padded = part + part[-1:] * (self._batch - len(part))
                columns = {key: [tokens[key][row] for row in padded] for key in tokens}
                batch = self._tokenizer.pad(columns, padding="max_length", max_length=length, return_tensors="pt")
                with torch.inference_mode():
                    chances = self._model(**batch.to(self._device)).logits.float().softmax(dim=-1)[:, 1]
                probabilities[part] = chances[: len(part)].tolist()
        return probabilities

    @staticmethod
    def note(question: str, gold_answers: Sequence[str], answer: str) -> str | None:
        """Return what BEM cannot read properly of an answer's pairs with gold answers."""
        return limits.note(question, [("pair", f"{question} {gold} {answer}", PAIR) for gold in gold_answers])


def checkpoint_identity(checkpoint: str, revision: str) -> str:
    """Return what a checkpoint's probabilities depend on, without loading it: its folder's content, or its revision.

    Raises :class:`InputError` for a folder that holds no checkpoint, or a name that is neither a folder nor one of
    the hub's.
    """
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InputError(f"The folder {checkpoint} holds no checkpoint: config.json is missing.")
        return f"bem-{VERSION}@{folder_checksum(folder)}"
    if not _HUB_NAME.fullmatch(checkpoint):
        raise InputError(f"There is no folder {checkpoint!r}, nor is it a name on the hub, such as {CHECKPOINT}.")
    return f"bem-{VERSION}:{checkpoint}@{revision}"


def is_bem(identity: str) -> bool:
    """Return whether an identity is BEM's."""
    return identity.startswith("bem-")


def _digest(model) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]
