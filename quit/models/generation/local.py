"""A model through transformers, in this process: for anyone with a hub or a folder of weights and no server.

One prompt at a time, with the key-value cache of the one before cut back to their common beginning. In depth-first
order that beginning is the few-shot prefix and all hints but the last, so only the last hint and the question are
computed; and a reply cannot depend on what shares its batch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from quit.errors import InputError
from quit.models.generation.base import (
    ChatRequest,
    Completion,
    Done,
    ModelOptions,
    before_stop,
    free_memory,
    refuse_thinking,
)
from quit.models.loading import load_pretrained, once


class TransformersGenerator:
    """``options.model`` is a hub name or a folder. Raises :class:`InputError` where it cannot be loaded."""

    def __init__(self, name: str, options: ModelOptions, device: str = "cpu") -> None:
        self.name = name
        self.identity = f"transformers/{options.identity}"
        self.computed_tokens = 0
        self._options = options
        self._device = device
        self._lock = threading.Lock()
        self._past: Any = None
        self._past_ids: list[int] = []

    def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
        """See :class:`quit.models.generation.base.Generator`. One caller at a time."""
        with self._lock:
            model, tokenizer = self._loaded
            for position, request in enumerate(requests):
                commit = done(position, self._complete(model, tokenizer, request))
                if commit is not None:
                    commit.result()

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`."""
        with self._lock:
            if self.__dict__.pop("_loaded", None) is not None:
                self._past, self._past_ids = None, []
                free_memory()

    def _complete(self, model: Any, tokenizer: Any, request: ChatRequest) -> Completion:
        import torch

        ids = tokenizer.apply_chat_template(
            request.messages(),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **dict(self._options.template_options),
        )["input_ids"]
        longest = getattr(model.config, "max_position_embeddings", None)
        if longest and len(ids) + request.max_tokens > longest:
            raise InputError(
                f"{self.name}: a prompt of question {request.group} has {len(ids)} tokens and the model allows "
                f"{longest}, {request.max_tokens} of them for its reply. Shorten the prompt file, or use another model."
            )
        common = self._reuse(ids)
        self.computed_tokens += len(ids) - common
        sampling: dict[str, Any] = {"do_sample": request.temperature > 0}
        if request.temperature > 0:
            torch.manual_seed(request.sample)
            sampling |= {"temperature": request.temperature, "top_p": 1.0, "top_k": 0}
        if request.frequency_penalty or request.presence_penalty:
            sampling["logits_processor"] = [_penalties(request, len(ids))]
        if request.stop:
            sampling |= {"stop_strings": list(request.stop), "tokenizer": tokenizer}
        with torch.inference_mode():
            output = model.generate(
                input_ids=torch.tensor([ids], device=model.device),
                attention_mask=torch.ones((1, len(ids)), dtype=torch.long, device=model.device),
                past_key_values=self._past,
                max_new_tokens=request.max_tokens,
                pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
                **sampling,
            )[0].tolist()
        new = output[len(ids) :]
        _cut(self._past, len(ids))
        self._past_ids = ids
        whole = tokenizer.decode(new, skip_special_tokens=True)
        text = before_stop(whole, request.stop)
        ended = text != whole or (bool(new) and new[-1] in _ends(model, tokenizer))
        refuse_thinking(self.name, text)
        return Completion(text, "stop" if ended else "length", len(ids), len(new))

    def _reuse(self, ids: list[int]) -> int:
        """Cut the key-value cache back to what it shares with ``ids``; returns how many tokens that is."""
        from transformers import DynamicCache

        common = 0
        # The last token is always computed: the model needs at least one to continue.
        for mine, theirs in zip(ids[:-1], self._past_ids, strict=False):
            if mine != theirs:
                break
            common += 1
        if self._past is None or common == 0:
            self._past = DynamicCache()
            return 0
        _cut(self._past, common)
        return common

    @once
    def _loaded(self) -> tuple[Any, Any]:
        model, tokenizer = load_pretrained(
            "AutoModelForCausalLM",
            self._options.model,
            revision=self._options.revision,
            device=self._device,
            what=f"{self.name}: the model",
            dtype="auto",
        )
        if tokenizer.chat_template is None:
            raise InputError(f"{self.name}: {self._options.model!r} has no chat template. Use an instruct model.")
        model.generation_config.temperature = model.generation_config.top_p = model.generation_config.top_k = None
        return model, tokenizer


def _penalties(request: ChatRequest, prompt: int) -> Any:
    """Return OpenAI's penalties on what was generated so far: frequency times its count, and presence once."""
    import torch

    def processor(ids: Any, scores: Any) -> Any:
        counts = torch.bincount(ids[0, prompt:], minlength=scores.shape[1])[: scores.shape[1]]
        return scores - request.frequency_penalty * counts - request.presence_penalty * (counts > 0)

    return processor


def _cut(past: Any, tokens: int) -> None:
    """Leave the first ``tokens`` tokens in a key-value cache."""
    surplus = past.get_seq_length() - tokens
    if surplus > 0:
        past.crop(-surplus)


def _ends(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id} - {None}
