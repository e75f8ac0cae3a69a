"""Attention of many replies that are computed at a time, each with the same bits as alone.

A product of one shape treats each of its rows alike, so linear layers always run over PREFILL or DECODE rows, filled up
with zeros. What a template puts before its first field is computed once, and all rows attend to it in one product.
Prompts attend to their own tokens PIECES at a time; the size of that product follows from the place of a token in its
prompt. A prompt takes over the tokens that it shares with the prompt before it: in depth-first order, all hints but the
last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from quit.common.rows import grouped
from quit.errors import InputError

PREFILL = 256
"""Rows of a pass over prompts."""
DECODE = 64
"""Rows of a pass over the last tokens of replies: so many replies are computed at a time."""
PIECE = 16
"""Tokens of a prompt whose attention is computed together."""
PIECES = 16
"""Pieces whose attention to their own texts is one product."""
STEP = 64
"""Keys of a text by which such a product grows."""

SERVE = 'Serve the model (kind = "server").'


@dataclass(eq=False)
class Text:
    """The tokens of a prompt after its ``beginning``, then of its reply.

    ``layers``: keys and values per layer, shape (2, key heads, ``room`` or a little more, width). ``shared``: how many
    tokens have those of the text ``source``.
    """

    ids: list[int]
    room: int
    beginning: Text | None = None
    source: Text | None = None
    shared: int = 0
    layers: dict[int, Any] = field(default_factory=dict)

    @property
    def start(self) -> int:
        """Tokens before these."""
        return len(self.beginning.ids) if self.beginning else 0

    def keep(self, layer: int, at: int, both: Any) -> None:
        """Keep the keys and values of the tokens from ``at`` on."""
        if layer not in self.layers:
            _, heads, _, width = both.shape
            self.layers[layer] = both.new_zeros((2, heads, _room(self.room), width))
            if self.source is not None:
                self.layers[layer][:, :, : self.shared] = self.source.layers[layer][:, :, : self.shared]
        self.layers[layer][:, :, at : at + both.shape[2]] = both


@dataclass(frozen=True)
class Piece:
    """The tokens ``at`` to ``end`` of a text, in the rows of a pass from ``row`` on."""

    text: Text
    at: int
    end: int
    row: int

    @property
    def rows(self) -> slice:
        """Its rows."""
        return slice(self.row, self.row + self.end - self.at)


@dataclass(frozen=True)
class _Product:
    """Pieces whose attention to the first ``keys`` tokens of their ``texts`` is one product.

    ``positions``: of their tokens in their texts, shape (``PIECES``, tokens); ``rows``: of their tokens in the pass, in
    the same shape. Where tokens or pieces are missing, the last is there again.
    """

    texts: Sequence[Text]
    keys: int
    positions: Any
    rows: Any


def passes(texts: Sequence[Text]) -> Iterator[list[Piece]]:
    """Yield the pieces of texts, in order, in passes of at most ``PREFILL`` rows."""
    pieces: list[Piece] = []
    row = 0
    for text in texts:
        at = text.shared
        while at < len(text.ids):
            end = min(at + PIECE, _room(at + 1), at + PREFILL - row, len(text.ids))
            pieces.append(Piece(text, at, end, row))
            row, at = row + end - at, end
            if row == PREFILL:
                yield pieces
                pieces, row = [], 0
    if pieces:
        yield pieces


def options_of(pieces: Sequence[Piece], rows: int, device: Any) -> dict[str, Any]:
    """Return what :func:`attend` is told of a pass over so many rows."""
    products = list(_products(pieces, PIECE if rows == PREFILL else 1, device))
    return {"pieces": pieces, "products": products, "beginnings": _beginnings(pieces, rows, device)}


def _room(tokens: int) -> int:
    """Return the keys of a product that has room for so many tokens of a text."""
    return -(-tokens // STEP) * STEP


def _products(pieces: Sequence[Piece], tokens: int, device: Any) -> Iterator[_Product]:
    """Yield the products of pieces of at most so many tokens."""
    import torch

    groups = grouped((_room(piece.end), piece) for piece in pieces)
    for keys, group in groups.items():
        for start in range(0, len(group), PIECES):
            part = group[start : start + PIECES]
            part += part[-1:] * (PIECES - len(part))
            at, end, row = torch.tensor([(piece.at, piece.end, piece.row) for piece in part]).T[..., None]
            positions = torch.minimum(at + torch.arange(tokens), end - 1)
            rows = positions - at + row
            yield _Product([piece.text for piece in part], keys, positions.to(device), rows.to(device))


def _beginnings(pieces: Sequence[Piece], rows: int, device: Any) -> list[tuple[Text, Any]]:
    """Return the beginnings of texts, each with its rows in a pass: booleans, shape (rows, 1, 1, 1)."""
    import torch

    beginnings: dict[Text, Any] = {}
    for piece in pieces:
        if piece.text.beginning is not None:
            beginnings.setdefault(piece.text.beginning, torch.zeros(rows, 1, 1, 1, dtype=torch.bool))[piece.rows] = True
    return [(beginning, belongs.to(device)) for beginning, belongs in beginnings.items()]


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    *,
    pieces: Sequence[Piece],
    products: Sequence[_Product],
    beginnings: Sequence[tuple[Text, Any]],
    positions: Any,
    scaling: float,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **more: Any,
) -> tuple[Any, None]:
    """Attention of a pass, as transformers calls it. ``query``, ``key``, ``value``: (1, heads, rows, width).

    Each row attends to its text's own tokens, then to the text's beginning. The second softmax has one column more: for
    the first as a whole, with the logarithm of its sum of exponentials as score. Raises :class:`InputError` for a model
    whose attention has other terms.
    """
    import torch

    chunk = getattr(module.config, "attention_chunk_size", None) or math.inf
    terms = [term for name, term in more.items() if name != "position_ids" and torch.is_tensor(term)]  # such as sinks
    if terms or key.shape != value.shape or any(piece.end > chunk for piece in pieces):
        raise InputError(f"Replies computed together cannot share the attention of {type(module).__name__}. {SERVE}")
    index = module.layer_idx
    _, heads, rows, width = key.shape
    both = torch.cat([key, value])
    for piece in pieces:  # in order: a later piece can take over what an earlier one has
        piece.text.keep(index, piece.at, both[:, :, piece.rows])

    def scores_of(queries: Any, keys: Any) -> Any:
        """Return scores (..., key heads, tokens, group, keys) of queries (..., tokens, key heads, group, width)."""
        queries = queries.transpose(-4, -3)
        scores = (queries.flatten(-3, -2) @ keys.mT).unflatten(-2, queries.shape[-3:-1]).float()
        return torch.tanh(scores / softcap) * softcap if softcap else scores

    def mix(shares: Any, values: Any) -> Any:
        """Return sums of values, in the shape of queries."""
        return (shares.flatten(-3, -2) @ values).unflatten(-2, shares.shape[-3:-1]).transpose(-4, -3)

    query = (query[0] * scaling).transpose(0, 1).reshape(rows, heads, -1, width)
    output, total = torch.zeros_like(query), torch.zeros_like(query[..., 0], dtype=torch.float32)
    for product in products:
        stack = torch.stack([text.layers[index][:, :, : product.keys] for text in product.texts], dim=1)
        columns, last = torch.arange(product.keys, device=query.device), product.positions[..., None]
        mask = columns > last
        if sliding_window:
            mask |= columns <= last - sliding_window
        scores = scores_of(query[product.rows], stack[0]).masked_fill_(mask[:, None, :, None], -torch.inf)
        output[product.rows] = mix(torch.softmax(scores, dim=-1).to(query.dtype), stack[1])
        total[product.rows] = scores.logsumexp(dim=-1).transpose(1, 2)
    for beginning, belongs in beginnings:
        length = len(beginning.ids)
        keys, values = beginning.layers[index][:, :, : length + 1]
        scores = scores_of(query, keys)
        if sliding_window:
            columns = torch.arange(length + 1, device=query.device)
            scores.masked_fill_((columns <= positions[:, None] - sliding_window)[:, None], -torch.inf)
        scores[..., -1] = total.transpose(0, 1)
        shares = torch.softmax(scores, dim=-1).to(query.dtype)
        output = torch.where(belongs, mix(shares, values) + shares[..., -1:].transpose(0, 1) * output, output)
    return output.flatten(1, 2)[None], None
