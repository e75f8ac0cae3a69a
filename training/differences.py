"""How a fine-tuned copy of MiniLM is stored: as its difference from the published weights, a few bits a number
(:func:`quit.models.minilm.layers.restore` reads it)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from torch import nn

from quit.common.files import replacing


def differences(trained: nn.Module, published: nn.Module, per_sigma: float) -> dict[str, np.ndarray]:
    """Return arrays from which :func:`restore` rebuilds ``trained``.

    Matrices become int8 steps from the published ones, ``per_sigma`` steps to a row's standard deviation (so that
    deflate brings them to about log2(4 * per_sigma) bits a number); everything else is kept as float32.
    """
    before = published.state_dict()
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in trained.state_dict().items():
        after = tensor.detach().numpy()
        if after.ndim == 2 and name.startswith("layers."):
            change = after.astype(np.float64) - before[name].numpy()
            step = np.maximum(change.std(axis=1, keepdims=True), 1e-12) / per_sigma
            arrays[f"step:{name}"] = step.astype(np.float32)
            arrays[f"int8:{name}"] = np.clip(np.rint(change / step), -127, 127).astype(np.int8)
        else:
            arrays[f"full:{name}"] = after.astype(np.float32)
    return arrays


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an npz whose bytes depend on the arrays alone (no time stamps), and move it into place."""
    with replacing(path) as partial, zipfile.ZipFile(partial, "w") as file:
        for name, array in sorted(arrays.items()):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name.replace(':', '!')}.npy", (1980, 1, 1, 0, 0, 0))
            file.writestr(info, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
