"""A model through transformers, in this process: for anyone with a hub or a folder of weights and no server.

Many replies are computed at a time (:mod:`quit.models.generation.shared_attention`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from quit.errors import InputError
from quit.models.generation.base import ChatRequest, Completion, ModelOptions, OnReply, before_stop, free_memory
from quit.models.generation.ledger import Ledger
from quit.models.generation.reply import answer_of
from quit.models.generation.shared_attention import DECODE, PREFILL, SERVE, Piece, Text, attend, options_of, passes
from quit.models.loading import load_pretrained, once
from quit.models.prompting import PromptTemplate
from quit.text.vendors import parted

REFILL = DECODE // 4
"""Replies that begin together, unless fewer are left: a pass over prompts costs the same for few."""


@dataclass(eq=False)
class _Reply:
    """A request while it is answered. ``prompt``: tokens of the prompt; ``new``: the reply's tokens."""

    position: int
    request: ChatRequest
    text: Text
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
        self._before: Text | None = None
        self._beginnings: dict[PromptTemplate, Text] = {}

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
                for commit in filter(None, commits):
                    commit.result()
                if active:
                    pieces = [
                        Piece(reply.text, len(reply.text.ids) - 1, len(reply.text.ids), row)
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
        text = Text(rest, len(rest) + room, beginning)
        if (before := self._before) is not None and before.beginning is beginning:
            # At least the last token is computed: its output is the reply's first token.
            text.source, text.shared = before, _common(rest[:-1], before.ids)
        self._before = Text(list(rest), 0, beginning, layers=text.layers)  # the reply's tokens are not shared
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

    def _beginning(self, template: PromptTemplate) -> Text | None:
        """Return what a template puts before its first field, computed."""
        if template not in self._beginnings:
            fields = (dict.fromkeys(template.placeholders, word) for word in ("a", "9"))
            ids, others = (self._tokens(template.messages(values)) for values in fields)
            length = _common(ids, others)
            text = Text(ids[:length], length + 1)  # and a row of zeros
            if length:
                self._prefill([text])
            self._beginnings[template] = text
        return self._beginnings[template] if self._beginnings[template].ids else None

    def _prefill(self, texts: Sequence[Text]) -> list[Any]:
        """Compute the keys and values of texts; returns the logits after the last token of each."""
        logits: list[Any] = []
        for pieces in passes(texts):
            last = [piece.rows.stop - 1 for piece in pieces if piece.end == len(piece.text.ids)]
            logits += self._pass(pieces, PREFILL, last)
            self.computed_tokens += sum(piece.end - piece.at for piece in pieces)
        for text in texts:
            text.source = None
        return logits

    def _pass(self, pieces: Sequence[Piece], rows: int, logit_rows: Sequence[int]) -> Sequence[Any]:
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
            positions=positions[0].to(device),
            **options_of(pieces, rows, device),
        ).logits[0]
        layers = model.config.get_text_config().num_hidden_layers
        if (without := layers - len(pieces[0].text.layers)) != 0:
            raise InputError(
                f"{self.name}: {without} of the {layers} layers of {self._options.model!r} have no attention that "
                f"replies computed together can share. {SERVE}"
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

        AttentionInterface.register(attend.__name__, attend)
        model, tokenizer = load_pretrained(
            "AutoModelForCausalLM",
            self._options.model,
            revision=self._options.revision,
            device=self._device,
            what=f"{self.name}: the model",
            dtype="auto",
            attn_implementation=attend.__name__,
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


def _ends(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id} - {None}
