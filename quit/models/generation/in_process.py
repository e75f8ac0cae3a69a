"""A model through vLLM in this process (``LLM.chat``): no server, the whole of a GPU until it is released, prefix
caching on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from quit.errors import InputError, MissingDependency, QuitError, ServerError
from quit.models.generation.base import ChatRequest, Completion, ModelOptions, OnReply, free_memory
from quit.models.generation.ledger import Ledger
from quit.models.generation.reply import UnaskedThoughts, answer_of
from quit.models.loading import once
from quit.text.secrets import shown
from quit.text.vendors import meaning

_AT_ONCE = 4096  # requests handed to the engine together: what is kept when it is killed comes in such portions


class VllmGenerator:
    """``options.extra`` are engine arguments, such as ``max_model_len`` or ``tensor_parallel_size``.

    Raises :class:`MissingDependency` without vLLM, :class:`InputError` where the model cannot be loaded.
    """

    def __init__(self, name: str, options: ModelOptions, at_once: int = _AT_ONCE, ledger: Ledger | None = None) -> None:
        self.name = name
        self.identity = options.identity
        self._options = options
        self._at_once = at_once
        self._ledger = ledger or Ledger()
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """See :class:`quit.models.generation.base.Generator`. One caller at a time."""
        with self._lock:
            for start in range(0, len(requests), self._at_once):
                self._ledger.check_not_stopped()
                part = requests[start : start + self._at_once]
                faults: list[QuitError] = []
                for position, reply in enumerate(self._replies(part), start=start):
                    try:
                        completion = self._completion(reply)
                    except (ServerError, UnaskedThoughts) as error:
                        faults.append(error)
                        continue
                    on_reply(position, completion)
                if faults:  # only now that the other replies of the portion are handed on
                    raise faults[0]

    def _replies(self, requests: Sequence[ChatRequest]) -> Sequence[Any]:
        engine = self._engine
        try:
            return engine.chat(
                [request.messages() for request in requests],
                [self._sampling(request) for request in requests],
                use_tqdm=False,
                chat_template_kwargs=self._options.template or None,
            )
        except ValueError as error:  # a prompt longer than the model allows, for example
            longest = max(requests, key=lambda request: sum(len(turn["content"]) for turn in request.messages()))
            raise InputError(
                f"{self.name}: vLLM refuses a prompt: {shown(str(error))} The longest of these {len(requests):,} is of "
                f"question {longest.group}. Shorten the prompt file, raise max_model_len, or use another model."
            ) from error

    def _completion(self, reply: Any) -> Completion:
        output = reply.outputs[0]
        finish_reason = meaning("finish", output.finish_reason or "stop") or "unknown"
        if finish_reason not in ("stop", "length"):
            raise ServerError(f"{self.name}: vLLM ended a reply with {output.finish_reason!r}.")
        text = answer_of(self.name, self._options, output.text, finish_reason)
        return Completion(text, finish_reason, len(reply.prompt_token_ids or ()), len(output.token_ids))

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`: ends the engine and its processes."""
        with self._lock:
            engine = self.__dict__.pop("_engine", None)
            if engine is not None:
                engine.llm_engine.engine_core.shutdown()
                del engine
                free_memory()

    def _sampling(self, request: ChatRequest) -> Any:
        from vllm import SamplingParams

        options = self._options.sampling(request) | {
            "temperature": request.temperature,
            "max_tokens": request.max_tokens + self._options.thinking_tokens,
            "seed": request.sample,
            "skip_special_tokens": False,  # of thoughts and turns
        }
        if request.choices:
            from vllm.sampling_params import StructuredOutputsParams

            options["structured_outputs"] = StructuredOutputsParams(choice=list(request.choices))
        return SamplingParams(**options)

    @once
    def _engine(self) -> Any:
        try:
            from vllm import LLM
        except ImportError as error:
            raise MissingDependency(
                f"{self.name}: vLLM is not installed ({error}). "
                "Run: pip install -e '.[vllm]' where there is a GPU, or serve the model and use kind = \"server\"."
            ) from error
        revision = {"revision": self._options.revision} if self._options.revision else {}
        options = {"enable_prefix_caching": True, "generation_config": "vllm"} | revision
        try:
            return LLM(self._options.model, **{**options, **self._options.extra})
        except (OSError, ValueError, RuntimeError, TypeError) as error:  # TypeError: an argument that it does not know
            cause = shown(str(error)) or type(error).__name__
            raise InputError(f"{self.name}: vLLM cannot load {self._options.model!r}: {cause}") from error
