"""Models through transformers on tiny checkpoints that the tests make, against transformers without our key-value
cache."""

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quit.errors import InputError, SettingsError, Stopped
from quit.models.generation import ChatRequest, Completion
from quit.models.generation.base import ModelOptions, before_stop
from quit.models.generation.ledger import Ledger
from quit.models.generation.local import TransformersGenerator
from quit.models.prompting import PromptTemplate, load_prompt
from tests.servers.checkpoints import checkpoint

PROMPT = load_prompt("reader")
HINTS = ["It is a large city.", "It has an iron tower.", "It lies on a river."]


def _requests(temperature: float = 0.0, sample: int = 0) -> list[ChatRequest]:
    paths = [path for size in range(1, 4) for path in itertools.permutations(range(3), size)]
    contexts = [" ".join(HINTS[row] for row in path) for path in sorted(paths)]
    fields = [{"context": context, "question": "Which city?"} for context in contexts]
    return [ChatRequest(PROMPT, values, 3, temperature, sample, group="q1") for values in fields]


def _generate(generator: TransformersGenerator, requests: list[ChatRequest]) -> list[Completion]:
    replies: dict[int, Completion] = {}
    generator.generate(requests, replies.__setitem__)
    assert list(replies) == list(range(len(requests)))
    return list(replies.values())


def _llama() -> TransformersGenerator:
    return TransformersGenerator("t", ModelOptions(str(checkpoint("llama", 3))))


@pytest.fixture(scope="module", params=["llama", "qwen3", "gemma3"])
def model(request: pytest.FixtureRequest) -> Path:
    return checkpoint(request.param, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("gpt_oss", {"num_local_experts": 4, "num_experts_per_tok": 2}),
        ("llama4_text", {"attention_chunk_size": 32, "num_local_experts": 2, "intermediate_size_mlp": 128}),
        ("deepseek_v3", {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "v_head_dim": 16,
                         "qk_nope_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
                         "topk_group": 1, "moe_intermediate_size": 32, "num_key_value_heads": 4, "head_dim": 8}),
    ],
)  # fmt: skip
def test_attention_with_other_terms_is_refused(tmp_path: Path, kind: str, more: dict[str, int]) -> None:
    """Sinks, chunks, and keys of another width than values: replies would not be the model's."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint("llama", 3))
    sizes = {"vocab_size": -(-len(tokenizer) // 64) * 64, "hidden_size": 64, "intermediate_size": 128, "head_dim": 16}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = AutoConfig.for_model(kind, **{**sizes, **layers, **ids, **more})
    AutoModelForCausalLM.from_config(config).float().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="Serve the model"):
        _generate(TransformersGenerator("t", ModelOptions(str(tmp_path))), _requests()[:1])


@pytest.mark.slow
def test_replies_are_those_of_a_model_asked_for_each_prompt_alone(model: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"enable_thinking": False} if "qwen3" in model.name else {}
    generator = TransformersGenerator("t", ModelOptions(str(model), template_options=options))
    requests = _requests()
    replies = _generate(generator, requests)
    tokenizer = AutoTokenizer.from_pretrained(model)
    plain = AutoModelForCausalLM.from_pretrained(model, dtype="auto").eval()
    whole = 0
    for request, reply in zip(requests, replies, strict=True):
        ids = tokenizer.apply_chat_template(
            request.messages(), add_generation_prompt=True, return_dict=True, return_tensors="pt", **options
        )
        with torch.inference_mode():
            output = plain.generate(**ids, do_sample=False, max_new_tokens=3)
        new = output[0, ids["input_ids"].shape[1] :]
        assert reply.text == tokenizer.decode(new, skip_special_tokens=True)
        assert (reply.prompt_tokens, reply.completion_tokens) == (ids["input_ids"].shape[1], len(new))
        whole += reply.prompt_tokens
    assert generator.computed_tokens < whole / 5, "depth first, all but the last hint and the question is reused"


class _Recording(TransformersGenerator):
    """Keeps the logits of every token, per request."""

    def __init__(self, model: Path) -> None:
        super().__init__("t", ModelOptions(str(model)))
        self.logits: dict[tuple[str, int], list[Any]] = {}

    def _add_token(self, reply: Any, logits: Any) -> None:
        key = (reply.request.fields["context"], reply.request.sample)
        self.logits.setdefault(key, []).append(logits.clone())
        super()._add_token(reply, logits)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_token_has_the_same_bits_in_any_company_and_order(model: Path, dtype: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    AutoModelForCausalLM.from_pretrained(model, dtype=dtype).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(model).save_pretrained(tmp_path)

    # More than one wave.
    requests = _requests() + [request for sample in range(1, 5) for request in _requests(1.0, sample)]
    whole = _Recording(tmp_path)
    _generate(whole, requests)
    draw = random.Random(7)
    other = _Recording(tmp_path)
    for size in (1, 2, 7, len(requests)):
        other.generate(draw.sample(requests, size), lambda *_: None)
        for key, rows in other.logits.items():
            assert len(rows) == len(whole.logits[key])
            assert all(map(torch.equal, rows, whole.logits[key])), key
        other.logits.clear()


def test_a_model_with_layers_without_attention_is_refused() -> None:
    generator = _llama()
    generator._loaded[0].config.num_hidden_layers += 1  # as if one computed no keys
    with pytest.raises(InputError, match="1 of the 3 layers of .* have no attention"):
        _generate(generator, _requests()[:1])


def test_samples_follow_their_number() -> None:
    first, again, other = (_generate(_llama(), _requests(1.0, sample)) for sample in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no/such-model-here"):
        _generate(TransformersGenerator("t", ModelOptions("no/such-model-here")), _requests()[:1])


def test_a_chat_template_that_refuses_the_prompt_is_named() -> None:
    """Gemma 2's has no turn of the system."""
    generator = _llama()
    generator._loaded[1].chat_template = "{{ raise_exception('System role not supported') }}"
    with pytest.raises(InputError, match=r"refuses the prompt \(System role not supported\)"):
        _generate(generator, _requests()[:1])


def test_a_prompt_that_is_too_long_names_its_question() -> None:
    request = ChatRequest(PROMPT, {"context": "word " * 20_000, "question": "Which?"}, 32, group="wikihint-test_7")
    with pytest.raises(InputError, match="wikihint-test_7"):
        _generate(_llama(), [request])


def test_thoughts_are_refused_or_dropped_and_stop_strings_in_them_do_not_end_a_reply() -> None:
    request = replace(_requests()[0], max_tokens=4, stop=("\n",))
    model = str(checkpoint("qwen3", 3, lessons=[(request.messages(), "<think>\nIt has a tower.\n</think>\n\nParis")]))
    with pytest.raises(SettingsError, match="enable_thinking"):
        _generate(TransformersGenerator("t", ModelOptions(model)), [replace(request, stop=())])
    [reply] = _generate(TransformersGenerator("t", ModelOptions(model, thinking="drop", thinking_tokens=30)), [request])
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")


@pytest.mark.parametrize(
    ("text", "stop", "left"),
    [("a Stop b", ("Stop",), "a "), ("a b", ("Stop",), "a b"), ("xy", ("y", "x"), ""), ("a", (), "a")],
)
def test_a_reply_ends_before_the_first_stop_string(text: str, stop: tuple[str, ...], left: str) -> None:
    assert before_stop(text, stop) == left


def test_penalties_and_stop_strings_are_heeded() -> None:
    """Requests to servers have them in test_server."""
    generator = _llama()
    request = ChatRequest(PromptTemplate("t", "0123456789ab", (("user", "Say {what}."),)), {"what": "it"}, 12)

    def reply(**more) -> Completion:
        return _generate(generator, [replace(request, **more)])[0]

    def repeats(text: str) -> int:
        ids = generator._loaded[1](text, add_special_tokens=False)["input_ids"]
        return len(ids) - len(set(ids))

    plain = reply().text
    assert repeats(plain) > 5, "the checkpoint must repeat itself for this test to show anything"
    for name in ("frequency_penalty", "presence_penalty"):
        assert repeats(reply(**{name: 1000.0}).text) < repeats(plain) / 2
    middle = plain[len(plain) // 2 :][:4]
    stopped = reply(stop=(middle,))
    assert stopped.text == plain[: plain.index(middle)] and stopped.finish_reason == "stop"


def test_after_an_interrupt_finished_replies_are_kept_and_no_further_token_is_made() -> None:
    requests = [replace(_requests()[0], max_tokens=tokens) for tokens in (2, 9)]
    ledger, replies = Ledger(), {}
    generator = TransformersGenerator("t", ModelOptions(str(checkpoint("llama", 3))), ledger=ledger)

    def keep(position: int, completion: Completion) -> None:
        replies[position] = completion
        ledger.stop()

    with pytest.raises(Stopped):
        generator.generate(requests, keep)
    assert len(replies) == 1 and replies[0] == _generate(_llama(), requests)[0]
