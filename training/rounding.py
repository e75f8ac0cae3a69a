"""Round MiniLM's weights for ``quit/models/weights/rounding.npz``, so that its vectors stay near the published ones.

    OMP_NUM_THREADS=1 python -m training.rounding --data ../shared/data --out quit/models/weights/rounding.npz

Rounding each weight to the nearest whole number makes errors that add up. Here each column's error is made good by the
columns that are not rounded yet, over the inputs of real texts (GPTQ: Frantar et al. 2023). Before, columns are scaled
so that inputs and weights share the loss (SmoothQuant: Xiao et al. 2023). Texts: TriviaHG's hints and questions, TREC's
questions, EVOUNA's questions with answers; no labels. Prints the cosines of 300 other texts (WikiHint's) to the vectors
in floats, before and after. Takes three minutes of a free core.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from quit.models import linear
from quit.models.linear import LEVELS
from quit.models.minilm import layers, packed
from quit.models.minilm.encoder import MiniLM
from quit.models.minilm.layers import Body, rounded
from quit.sources import parse_source, read_source
from training.differences import save

BALANCE = 0.5
"""Exponent of inputs and weights in a column's scale."""
DAMPING = 0.01
"""Share of the mean variance that is added to every input's."""
SPAN = 64
"""Columns whose errors are passed on together."""


class Inputs:
    """Count, mean and covariance of a layer's inputs."""

    def __init__(self, width: int) -> None:
        self.count, self.sum, self.products = 0, np.zeros(width), np.zeros((width, width))

    def add(self, rows: np.ndarray) -> None:
        """Count rows, shape (tokens, width)."""
        self.count += len(rows)
        self.sum += rows.sum(axis=0)
        self.products += rows.T @ rows

    @property
    def mean(self) -> np.ndarray:
        """Shape (width,)."""
        return self.sum / self.count

    @property
    def covariance(self) -> np.ndarray:
        """Shape (width, width)."""
        return self.products / self.count - np.outer(self.mean, self.mean)


def texts_of(source: str) -> Iterator[str]:
    """Yield the questions and hints of a source."""
    for record in read_source(parse_source(source)):
        if record.question is not None:
            yield from (record.question.question, *(hint.text for hint in record.question.hints))


def calibration(data: Path) -> list[str]:
    """Return some texts of each kind."""
    hints = [text for path in sorted((data / "triviahg").glob("*.json")) for text in texts_of(f"triviahg:{path}")]
    lines = (data / "trec-qc" / "train_5500.label").read_text("latin-1").splitlines()
    rows = json.loads((data / "evouna" / "TQ.json").read_text(encoding="utf-8"))
    answers = [f"{row['question']} {row['golden_answer'].split('/')[0]}" for row in rows]
    return [*hints[::4], *(line.split(" ", 1)[1].strip() for line in lines[::12]), *answers[::6]]


def in_floats(model: MiniLM, texts: list[str]) -> tuple[np.ndarray, dict[torch.nn.Linear, Inputs]]:
    """Return the texts' vectors, computed in floats, and what went into each linear layer."""
    inputs: dict[torch.nn.Linear, Inputs] = {}

    def counted(layer: torch.nn.Linear, rows: torch.Tensor) -> torch.Tensor:
        inputs.setdefault(layer, Inputs(layer.in_features)).add(rows[rows.abs().sum(dim=1) > 0].numpy())
        return torch.nn.functional.linear(rows, layer.weight, layer.bias)

    with patch.object(layers, "linear", counted), patch.object(packed, "linear", counted):
        return model.encode(texts), inputs


def corrected(weights: np.ndarray, steps: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return whole weights, shape (out, in), each column's errors made good by those behind it."""
    width = len(covariance)
    order = np.argsort(-np.diag(covariance))
    damped = covariance[np.ix_(order, order)] + np.eye(width) * DAMPING * np.diag(covariance).mean()
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    rest, whole = weights[:, order].astype(np.float64), np.zeros(weights.shape, np.int8)
    for first in range(0, width, SPAN):
        last = min(width, first + SPAN)
        errors = np.zeros((len(weights), last - first))
        for at in range(first, last):
            column = np.clip(np.rint(rest[:, at] / steps), -LEVELS, LEVELS)
            whole[:, order[at]] = column
            errors[:, at - first] = (rest[:, at] - column * steps) / upper[at, at]
            rest[:, at:last] -= errors[:, at - first, None] * upper[at, at:last]
        rest[:, last:] -= errors @ upper[first:last, last:]
    return whole


def rounding(layer: torch.nn.Linear, inputs: Inputs) -> dict[str, np.ndarray]:
    """Return the arrays of :class:`quit.models.linear.Rounding`."""
    plain, spread = layer.weight.numpy(), np.sqrt(np.maximum(np.diag(inputs.covariance), 1e-6))
    scale = spread**BALANCE / np.maximum(np.abs(plain).max(axis=0), 1e-3) ** BALANCE
    scale = (scale / np.exp(np.log(scale).mean())).astype(np.float32)
    weights = torch.from_numpy(plain * scale)
    steps = linear.steps_of(weights)
    nearest = (weights / steps[:, None]).round_().to(torch.int8).numpy()
    whole = corrected(weights.numpy(), steps.numpy().astype(np.float64), inputs.covariance / np.outer(scale, scale))
    lost = weights.numpy() - whole * steps.numpy()[:, None]
    return {"scale": scale, "changes": whole - nearest, "shift": (lost @ (inputs.mean / scale)).astype(np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    start = time.time()
    torch.set_num_threads(1)
    packed._cores = lambda: 1
    body = Body(range(6)).eval().requires_grad_(False)
    model = MiniLM(body=body)
    tests = list(texts_of(f"wikihint:{next((options.data / 'wikihint').glob('*.json'))}"))[:300]
    vectors = {"nearest": model.encode(tests)}
    with torch.inference_mode():
        by_layer = in_floats(model, calibration(options.data))[1]
        names: dict[torch.nn.Module, str] = {layer: name for name, layer in body.named_modules()}
        arrays = {
            f"{kind}:{names[layer]}": array
            for layer, inputs in by_layer.items()
            for kind, array in rounding(layer, inputs).items()
        }
    save(options.out, arrays)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes, {time.time() - start:.0f} s")
    floats, _ = in_floats(model, tests)
    rounded(body, options.out)
    linear._whole_of.clear()
    vectors["rounded"] = model.encode(tests)
    for name, computed in vectors.items():
        cosines = (computed * floats).sum(axis=1)
        print(f"{name}: mean cosine {cosines.mean():.5f}, least {cosines.min():.5f}")


if __name__ == "__main__":
    main()
