"""Texts packed without padding: the same bits whatever they are computed with, and hardly a position that is no
token."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.nn import functional

from quit.common.arithmetic import OWN
from quit.errors import SettingsError
from quit.models import linear
from quit.models.equivalence.crossencoder import CrossEncoder
from quit.models.minilm import layers, packed
from quit.models.minilm.layers import WIDTH, Body, Layer
from tests.paths import ROOT
from training.padded import pooled

SCRIPT = """
import sys, torch
torch.set_num_threads(int(sys.argv[1]))
from tests.models.minilm.test_packed import body_of, logits_of, texts_of
from quit.models.minilm import packed
packed._cores = lambda: int(sys.argv[2])
packed.PASS = int(sys.argv[3])
every = packed.run(body_of(), texts_of(), lambda states: states)
sys.stdout.buffer.write(b"".join(states.tobytes() for states in every))
sys.stdout.buffer.write(logits_of().tobytes())
"""


def texts_of(count: int = 40) -> list[packed.Pieces]:
    """Texts of 1 to 256 pieces, most of them short."""
    generator = random.Random(3)
    lengths = [1, 2, 256, *(min(256, 1 + int(generator.expovariate(0.05))) for _ in range(count - 3))]
    return [tuple(tuple(generator.randrange(high) for _ in range(n)) for high in (30_000, 2, 4)) for n in lengths]


def body_of() -> Body:
    return Body([0, 5]).eval().requires_grad_(False)


def logits_of() -> np.ndarray:
    torch.manual_seed(2)
    short = [text for text in texts_of() if len(text[0]) < 200]
    return packed.logits(CrossEncoder([1]).eval().requires_grad_(False), short)


def states(texts: list[packed.Pieces]) -> list[np.ndarray]:
    return packed.run(body_of(), texts, lambda computed: computed)


@pytest.fixture(scope="module")
def together() -> list[np.ndarray]:
    return states(texts_of())


@pytest.mark.parametrize(("whole", "distance"), [(True, 0.08), (False, 0.005)])
def test_states_are_near_those_of_the_plain_layers(whole: bool, distance: float, monkeypatch) -> None:
    """The reference: the forward pass of training, one text at a time. Without whole numbers, only attention rounds."""
    if not whole:
        monkeypatch.setattr(linear, "_in_float32_on_cpu", lambda rows: False)
    body = body_of()
    for text, computed in zip(texts_of(), states(texts_of()), strict=True):
        parts = [torch.tensor([part]) for part in text]
        with torch.no_grad():  # in floats
            means = pooled(body, *parts, torch.ones_like(parts[0], dtype=torch.bool))[0].numpy()
        difference = np.concatenate([computed[0], computed.mean(axis=0)]) - means
        assert np.linalg.norm(difference) <= distance * np.linalg.norm(means)


def test_neighbours_and_the_offset_in_a_chunk_change_no_bit(together: list[np.ndarray]) -> None:
    texts = texts_of()
    for alone, computed in zip([states([text])[0] for text in texts[:12]], together, strict=False):
        assert alone.tobytes() == computed.tobytes()
    order = random.Random(4).sample(range(len(texts)), len(texts))
    for row, computed in zip(order, states([texts[row] for row in order]), strict=True):
        assert computed.tobytes() == together[row].tobytes()
    for fillers in (1, 7, 64):  # texts of one piece come first and move all others
        moved = states([((5,),)] * fillers + texts)[fillers:]
        assert [a.tobytes() for a in moved] == [b.tobytes() for b in together]


def test_neighbours_change_no_bit_where_states_are_wild() -> None:
    """A shorter text's slot is filled up with what the attention of other texts may have left behind."""
    torch.manual_seed(6)
    layer, x = Layer().eval().requires_grad_(False), torch.randn(128, WIDTH) * torch.logspace(2, -2, 128)[:, None]
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    lengths = [4, 6, 8, 12, 17, 20, 30]  # alone, four of them fill their slots

    @torch.inference_mode()
    def after(rows: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        rows = functional.pad(rows, (0, 0, 0, 128 - len(rows)))
        return packed._layer(layer, rows, rows.repeat(1, 3), list(packed._blocks(lengths, 1200, rows)), 128)

    starts = np.cumsum([0, *lengths])
    together = after(x[: starts[-1]], lengths)
    for start, length in zip(starts, lengths, strict=False):
        alone = after(x[start : start + length], [length])
        assert torch.equal(alone[:length], together[start : start + length])


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "cores", "size"), [(1, 1, 4096), (2, 1, 4096), (4, 3, 300)])
def test_the_number_of_threads_changes_no_bit(together: list[np.ndarray], threads: int, cores: int, size: int) -> None:
    arguments = [sys.executable, "-c", SCRIPT, str(threads), str(cores), str(size)]
    output = subprocess.run(arguments, capture_output=True, check=True, cwd=ROOT).stdout
    assert output == b"".join(computed.tobytes() for computed in together) + logits_of().tobytes()


def test_a_call_from_each_of_two_threads_gets_its_own_and_torch_keeps_its_threads(together) -> None:
    texts = texts_of()
    before = torch.get_num_threads()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(states, [texts, texts[::-1]])
    assert torch.get_num_threads() == before
    assert [a.tobytes() for a in first] == [b.tobytes() for b in together] == [b.tobytes() for b in second[::-1]]


def test_a_machine_that_computes_otherwise_under_the_common_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed.check.__wrapped__()
    monkeypatch.setattr(layers, "gelu", functional.relu)
    with pytest.raises(SettingsError, match=f"(?s)does not compute MiniLM here as it does .* set {OWN} to a name"):
        packed.check.__wrapped__()
    monkeypatch.setenv(OWN, "mine")
    packed.check.__wrapped__()


def test_few_positions_are_computed_that_are_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    positions, real = [], Body.embedded
    monkeypatch.setattr(Body, "embedded", lambda self, ids, *rest: positions.append(len(ids)) or real(self, ids, *rest))
    texts = texts_of(300)
    states(texts)
    tokens = sum(len(text[0]) for text in texts)
    assert tokens <= sum(positions) <= 1.1 * tokens
