"""A model through transformers, in this process: for anyone with a hub or a folder of weights and no server.

Many replies are computed at a time, each with the same bits as alone. A product of one shape treats each of its rows
alike, so linear layers always run over PREFILL or DECODE rows, filled up with zeros. What a template puts before its
first field is computed once, and all rows attend to it in one product. Prompts attend to their own tokens PIECES at a
time; the size of that product follows from the place of a token in its prompt. A prompt takes over the tokens that it
shares with the prompt before it: in depth-first order, all hints but the last.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from quit.common.rows import grouped
from quit.errors import InputError
from quit.models.generation.base import ChatRequest, Completion, ModelOptions, OnReply, before_stop, free_memory
from quit.models.generation.ledger import Ledger
from quit.models.generation.reply import answer_of
from quit.models.loading import load_pretrained, once
from quit.models.prompting import PromptTemplate
from quit.text.vendors import parted

PREFILL = 256
"""Rows of a pass over prompts."""
DECODE = 64
"""Rows of a pass over the last tokens of replies: so many replies are computed at a time."""
REFILL = DECODE // 4
"""Replies that begin together, unless fewer are left: a pass over prompts costs the same for few."""
PIECE = 16
"""Tokens of a prompt whose attention is computed together."""
PIECES = 16
"""Pieces whose attention to their own texts is one product."""
STEP = 64
"""Keys of a text by which such a product grows."""

_SERVE = 'Serve the model (kind = "server").'


@dataclass(eq=False)
class _Text:
    """The tokens of a prompt after its ``beginning``, then of its reply.

    ``layers``: keys and values per layer, shape (2, key heads, ``room`` or a little more, width). ``shared``: how many
    tokens have those of the text ``source``.
    """

    ids: list[int]
    room: int
    beginning: _Text | None = None
    source: _Text | None = None
    shared: int = 0
    layers: dict[int, Any] = field(default_factory=dict)

    @property
    def start(self) -> int:
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
class _Piece:
    """The tokens ``at`` to ``end`` of a text, in the rows of a pass from ``row`` on."""

    text: _Text
    at: int
    end: int
    row: int

    @property
    def rows(self) -> slice:
        return slice(self.row, self.row + self.end - self.at)


@dataclass(frozen=True)
class _Product:
    """Pieces whose attention to the first ``keys`` tokens of their ``texts`` is one product.

    ``positions``: of their tokens in their texts, shape (``PIECES``, tokens); ``rows``: of their tokens in the pass, in
    the same shape. Where tokens or pieces are missing, the last is there again.
    """

    texts: Sequence[_Text]
    keys: int
    positions: Any
    rows: Any


@dataclass(eq=False)
class _Reply:
    """A request while it is answered. ``prompt``: tokens of the prompt; ``new``: the reply's tokens."""

    position: int
    request: ChatRequest
    text: _Text
    prompt: int
    generator: Any
    new: list[int] = field(default_factory=list)
    completion: Completion | None = None


class TransformersGenerator:
    """``options.model`` is a hub name or a folder. Raises :class:`InputError` where it cannot be loaded."""

    def __init__(self, name: str, options: ModelOptions, device: str = "cpu", ledger: Ledger | None = None) -> None:
        self.name = name
        self.identity = options.identity
        self.computed_tokens = 0
        self._options = options
        self._device = device
        self._ledger = ledger or Ledger()
        self._lock = threading.Lock()
        self._before: _Text | None = None
        self._beginnings: dict[PromptTemplate, _Text] = {}

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """See :class:`quit.models.generation.base.Generator`. One caller at a time."""
        import torch

        with self._lock, torch.inference_mode():
            self._before = None  # an error may have left one whose keys were not computed
            queue = list(enumerate(requests))[::-1]
            active: list[_Reply] = []
            while queue or active:
                self._ledger.check_not_stopped()
                places = min(len(queue), DECODE - len(active))
                if queue and places >= min(REFILL, len(queue)):
                    beginners = [self._begin(*queue.pop()) for _ in range(places)]
                    logits = self._prefill([reply.text for reply in beginners])
                    for reply, row in zip(beginners, logits, strict=True):
                        self._add_token(reply, row)
                    active += beginners
                commits = [on_reply(reply.position, reply.completion) for reply in active if reply.completion]
                active = [reply for reply in active if not reply.completion]
                for commit in commits:
                    if commit is not None:
                        commit.result()
                if active:
                    pieces = [
                        _Piece(reply.text, len(reply.text.ids) - 1, len(reply.text.ids), row)
                        for row, reply in enumerate(active)
                    ]
                    for reply, row in zip(active, self._pass(pieces, DECODE, range(len(active))), strict=True):
                        self._add_token(reply, row)

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`."""
        with self._lock:
            if self.__dict__.pop("_loaded", None) is not None:
                self._before = None
                self._beginnings.clear()
                free_memory()

    def _begin(self, position: int, request: ChatRequest) -> _Reply:
        import torch

        model, _ = self._loaded
        ids = self._tokens(request.messages())
        longest = getattr(model.config, "max_position_embeddings", None)
        room = request.max_tokens + self._options.thinking_tokens
        if longest and len(ids) + room > longest:
            raise InputError(
                f"{self.name}: a prompt of question {request.group} has {len(ids)} tokens and the model allows "
                f"{longest}, {room} of them for its reply. Shorten the prompt file, or use another model."
            )
        beginning = self._beginning(request.template)
        if beginning is not None and ids[: len(beginning.ids)] != beginning.ids:
            beginning = None
        rest = ids[len(beginning.ids) :] if beginning else ids
        text = _Text(rest, len(rest) + room, beginning)
        if (before := self._before) is not None and before.beginning is beginning:
            # At least the last token is computed: its output is the reply's first token.
            text.source, text.shared = before, _common(rest[:-1], before.ids)
        self._before = _Text(list(rest), 0, beginning, layers=text.layers)  # the reply's tokens are not shared
        generator = torch.Generator(model.device).manual_seed(request.sample) if request.temperature > 0 else None
        return _Reply(position, request, text, len(ids), generator)

    def _tokens(self, messages: list[dict[str, str]]) -> list[int]:
        from jinja2 import TemplateError

        options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True}
        try:
            tokens = self._loaded[1].apply_chat_template(messages, **options, **self._options.template)
        except TemplateError as error:
            raise InputError(
                f"{self.name}: the chat template of {self._options.model} refuses the prompt ({error}). Name a prompt "
                "file without the turn that it refuses (often the system's), or another model."
            ) from None
        ids: list[int] = tokens["input_ids"]
        return ids

    def _beginning(self, template: PromptTemplate) -> _Text | None:
        """Return what a template puts before its first field, computed."""
        if template not in self._beginnings:
            fields = (dict.fromkeys(template.placeholders, word) for word in ("a", "9"))
            ids, others = (self._tokens(template.messages(values)) for values in fields)
            length = _common(ids, others)
            text = _Text(ids[:length], length + 1)  # and a row of zeros
            if length:
                self._prefill([text])
            self._beginnings[template] = text
        return self._beginnings[template] if self._beginnings[template].ids else None

    def _prefill(self, texts: Sequence[_Text]) -> list[Any]:
        """Compute the keys and values of texts; returns the logits after the last token of each."""
        logits: list[Any] = []
        for pieces in _passes(texts):
            last = [piece.rows.stop - 1 for piece in pieces if piece.end == len(piece.text.ids)]
            logits += self._pass(pieces, PREFILL, last)
            self.computed_tokens += sum(piece.end - piece.at for piece in pieces)
        for text in texts:
            text.source = None
        return logits

    def _pass(self, pieces: Sequence[_Piece], rows: int, logit_rows: Sequence[int]) -> Sequence[Any]:
        """Run the model over pieces; returns the logits of ``logit_rows``, which are at most ``DECODE``."""
        import torch

        model, _ = self._loaded
        ids, positions = torch.zeros((2, 1, rows), dtype=torch.long)
        for piece in pieces:
            ids[0, piece.rows] = torch.tensor(piece.text.ids[piece.at : piece.end])
            positions[0, piece.rows] = torch.arange(piece.at, piece.end) + piece.text.start
        row_indices = torch.tensor([*logit_rows, *[0] * (DECODE - len(logit_rows))])
        device = model.device
        logits = model(
            input_ids=ids.to(device),
            position_ids=positions.to(device),
            use_cache=False,
            logits_to_keep=row_indices.to(device),
            pieces=pieces,
            products=list(_products(pieces, PIECE if rows == PREFILL else 1, device)),
            beginnings=_beginnings(pieces, rows, device),
            positions=positions[0].to(device),
        ).logits[0]
        layers = model.config.get_text_config().num_hidden_layers
        if (without := layers - len(pieces[0].text.layers)) != 0:
            raise InputError(
                f"{self.name}: {without} of the {layers} layers of {self._options.model!r} have no attention that "
                f"replies computed together can share. {_SERVE}"
            )
        return list(logits[: len(logit_rows)])

    def _add_token(self, reply: _Reply, logits: Any) -> None:
        import torch

        model, tokenizer = self._loaded
        request = reply.request
        if reply.new and (request.frequency_penalty or request.presence_penalty):
            counts = torch.bincount(torch.tensor(reply.new), minlength=len(logits)).to(logits.device)
            logits = logits - request.frequency_penalty * counts - request.presence_penalty * (counts > 0)
        if request.temperature > 0:
            shares = torch.softmax(logits.float() / request.temperature, dim=-1)
            token = int(torch.multinomial(shares, 1, generator=reply.generator))
        else:
            token = int(logits.argmax())
        reply.new.append(token)
        reply.text.ids.append(token)
        full_text = tokenizer.decode(reply.new, skip_special_tokens=True)
        text = before_stop(full_text, self._options.sampling(request).get("stop", ()))
        is_end = text != full_text or token in _ends(model, tokenizer)
        if is_end or len(reply.new) == request.max_tokens + self._options.thinking_tokens:
            reason = "stop" if is_end else "length"
            if parted(whole := tokenizer.decode(reply.new))[1]:  # thoughts whose marks are special tokens
                text = whole
            answer = answer_of(self.name, self._options, text, reason)
            reply.completion = Completion(answer, reason, reply.prompt, len(reply.new))

    @once
    def _loaded(self) -> tuple[Any, Any]:
        import torch
        from transformers import AttentionInterface

        from quit.models.linear import fast_linear

        AttentionInterface.register(_attend.__name__, _attend)
        model, tokenizer = load_pretrained(
            "AutoModelForCausalLM",
            self._options.model,
            revision=self._options.revision,
            device=self._device,
            what=f"{self.name}: the model",
            dtype="auto",
            attn_implementation=_attend.__name__,
        )
        for module in model.modules():
            if type(module) is torch.nn.Linear:
                module.forward = partial(fast_linear, module)  # type: ignore[method-assign]
        if tokenizer.chat_template is None:
            raise InputError(f"{self.name}: {self._options.model!r} has no chat template. Use an instruct model.")
        return model, tokenizer


def _common(ids: Sequence[int], others: Sequence[int]) -> int:
    """Return how many tokens two texts share at their beginnings."""
    length = min(len(ids), len(others))
    return next((at for at in range(length) if ids[at] != others[at]), length)


def _passes(texts: Sequence[_Text]) -> Iterator[list[_Piece]]:
    """Yield the pieces of texts, in order, in passes of at most ``PREFILL`` rows."""
    pieces: list[_Piece] = []
    row = 0
    for text in texts:
        at = text.shared
        while at < len(text.ids):
            end = min(at + PIECE, _room(at + 1), at + PREFILL - row, len(text.ids))
            pieces.append(_Piece(text, at, end, row))
            row, at = row + end - at, end
            if row == PREFILL:
                yield pieces
                pieces, row = [], 0
    if pieces:
        yield pieces


def _room(tokens: int) -> int:
    """Return the keys of a product that has room for so many tokens of a text."""
    return -(-tokens // STEP) * STEP


def _products(pieces: Sequence[_Piece], tokens: int, device: Any) -> Iterator[_Product]:
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


def _beginnings(pieces: Sequence[_Piece], rows: int, device: Any) -> list[tuple[_Text, Any]]:
    """Return the beginnings of texts, each with its rows in a pass: booleans, shape (rows, 1, 1, 1)."""
    import torch

    beginnings: dict[_Text, Any] = {}
    for piece in pieces:
        if piece.text.beginning is not None:
            beginnings.setdefault(piece.text.beginning, torch.zeros(rows, 1, 1, 1, dtype=torch.bool))[piece.rows] = True
    return [(beginning, belongs.to(device)) for beginning, belongs in beginnings.items()]


def _attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    *,
    pieces: Sequence[_Piece],
    products: Sequence[_Product],
    beginnings: Sequence[tuple[_Text, Any]],
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
        raise InputError(f"Replies computed together cannot share the attention of {type(module).__name__}. {_SERVE}")
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


def _ends(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id} - {None}
