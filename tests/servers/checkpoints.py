"""Tiny language models that the tests make: real architectures, own tokenizer and chat template, no download.

An untaught checkpoint writes noise. A taught one has a read-out fitted in closed form to lessons (messages, reply): the
transformer's random features stay as they are, only the last matrix is solved for. That takes forward passes only, is
the same for a seed, and answers the lessons' prompts as told and others with some reply out of the lessons.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from tests.once import kept
from tests.paths import starter_lines

VERSION = 2
"""Raise it when a change here makes other checkpoints of the same arguments."""

RIDGE = 1e-5
"""Of the read-out's fit, relative to the mean square of a feature."""

Message = Mapping[str, str]
Lesson = tuple[Sequence[Message], str]

TEMPLATES = Path(__file__).with_name("templates")
"""Chat templates: as Qwen 3's, an empty thought is put in the model's mouth only where thinking is switched off; as
Gemma's, there is no system role (it goes before the first user turn), and the assistant is called model."""


@dataclass(frozen=True, slots=True)
class Style:
    """What tells a family of models from another. ``special``: begin of text, end of turn, then the template's
    others."""

    special: tuple[str, ...]
    tied: bool = False
    kind: str = ""
    """transformers' name of the architecture, where it is another."""


STYLES = {
    "llama": Style(("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")),
    "qwen3": Style(("<|endoftext|>", "<|im_end|>", "<|im_start|>")),
    "gemma3": Style(("<bos>", "<end_of_turn>", "<start_of_turn>"), True, "gemma3_text"),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a checkpoint. vLLM's attention on CPU wants ``head_dim`` 32 or more."""

    layers: int = 2
    hidden: int = 256
    heads: int = 4
    head_dim: int = 32
    vocabulary: int = 4096
    context: int = 8192


def checkpoint(style: str, seed: int, *, shape: Shape = Shape(), lessons: Sequence[Lesson] = ()) -> Path:
    """Return the folder of a checkpoint with these arguments, made once and kept under the cache's ``tests`` folder:
    weights (float32), tokenizer with chat template, configurations. Same arguments, same bytes.

    ``lessons``: (messages, reply) pairs to answer as told, without thinking unless the reply begins with ``<think>``; a
    reply without its thoughts becomes one token.
    """
    import transformers

    key = [VERSION, transformers.__version__, style, seed, asdict(shape)]
    key += [[[list(m), r] for m, r in lessons], _starter_texts()]
    digest = hashlib.sha256(json.dumps(key, default=dict).encode()).hexdigest()[:16]
    make = partial(_make, seed=seed, style=style, shape=shape, lessons=lessons)
    return kept(f"checkpoints/{style}-{seed}-{digest}", make)


def _make(folder: Path, seed: int, style: str, shape: Shape, lessons: Sequence[Lesson]) -> None:
    import torch

    family = STYLES[style]
    if lessons and family.tied:
        raise ValueError(f"a {style} checkpoint cannot be taught: its read-out is its embedding")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in the same order everywhere
    try:
        tokenizer = _tokenizer(style, shape, sorted({reply.rpartition("</think>\n\n")[2] for _, reply in lessons}))
        model = _model(style, shape, len(tokenizer), tokenizer, seed)
        if lessons:
            _teach(model, tokenizer, lessons)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def starter_lessons(count: int) -> list[Lesson]:
    """Return lessons of the starter's first questions: the question alone, its first answer."""
    rows = [json.loads(line) for line in starter_lines(count)]
    return [([{"role": "user", "content": row["question"]}], row["answers"][0]) for row in rows]


def _starter_texts() -> list[str]:
    rows = [json.loads(line) for line in starter_lines()]
    return [text for row in rows for text in (row["question"], *row["answers"], *row["hints"])]


def _tokenizer(style: str, shape: Shape, replies: Sequence[str]):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    family = STYLES[style]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = {"initial_alphabet": sorted(pre_tokenizers.ByteLevel.alphabet()), "special_tokens": [*family.special]}
    trainer = trainers.BpeTrainer(vocab_size=shape.vocabulary, show_progress=False, **alphabet)
    bpe.train_from_iterator(_starter_texts(), trainer)
    thoughts = ["<think>", "</think>"] if style == "qwen3" else []
    # Special ones would vanish from the reply's text; single words do not cut prompts in the middle of a word.
    bpe.add_tokens([AddedToken(text, normalized=False) for text in thoughts])
    bpe.add_tokens([AddedToken(text, normalized=False, single_word=True) for text in replies])
    begin, end, *_ = family.special
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token=begin, eos_token=end, pad_token=end)
    tokenizer.chat_template = (TEMPLATES / f"{style}.jinja").read_text(encoding="utf-8")
    tokenizer.model_max_length = shape.context
    return tokenizer


def _model(style: str, shape: Shape, vocabulary: int, tokenizer, seed: int):
    import torch
    import transformers

    common = {
        "vocab_size": -(-vocabulary // 64) * 64, "hidden_size": shape.hidden, "intermediate_size": 2 * shape.hidden,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "head_dim": shape.head_dim,
        "num_key_value_heads": max(1, shape.heads // 2), "max_position_embeddings": shape.context,
        "tie_word_embeddings": STYLES[style].tied,
    }  # fmt: skip
    common |= {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    more = {"query_pre_attn_scalar": shape.head_dim} if style == "gemma3" else {}
    config = transformers.AutoConfig.for_model(STYLES[style].kind or style, **common, **more)
    state = torch.random.get_rng_state()
    try:
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
        _sharpen(model)
    finally:
        torch.random.set_rng_state(state)
    return model


def _sharpen(model) -> None:
    """Give random weights features worth reading: larger ones, and attention that prefers what is near.

    All embeddings share one direction, which queries and keys map to a constant: under rotary positions the product of
    two equal constants falls with the logarithm of the distance, so attention falls with a power of it. Without that
    the last position sees the average of the prompt, in which a question is a hundredth.
    """
    import torch

    near = 12.0
    width = model.config.hidden_size
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        shared = torch.randn(width)
        embedding.normal_().add_(shared)
        for name, weight in model.named_parameters():
            if weight.dim() != 2 or weight is embedding or name.startswith("lm_head"):
                continue
            weight.normal_(std=weight.shape[1] ** -0.5)
            if "q_proj" in name or "k_proj" in name:
                constant = (near / model.config.head_dim**0.5) ** 0.5
                weight.mul_(0.7).add_(constant * shared[None, :] / (shared.square().sum() * 0.5**0.5))


def _teach(model, tokenizer, lessons: Sequence[Lesson]) -> None:
    import torch
    import transformers

    end = tokenizer.eos_token_id
    sequences = []
    for messages, reply in lessons:
        thinks = reply.startswith("<think>")
        prompt = tokenizer.apply_chat_template(
            [*map(dict, messages)], add_generation_prompt=True, return_dict=False, enable_thinking=thinks
        )
        sequences.append((prompt, [*tokenizer(reply, add_special_tokens=False)["input_ids"], end]))
    first, last = min(prompt[:-1] for prompt, _ in sequences), max(prompt[:-1] for prompt, _ in sequences)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last)))  # is read once
    rows, targets = [], []
    with torch.inference_mode():
        cache = transformers.DynamicCache(config=model.config)
        model.model(torch.tensor([sequences[0][0][:shared]]), past_key_values=cache, use_cache=True)
        for prompt, wanted in sequences:
            rest = torch.tensor([[*prompt[shared:], *wanted[:-1]]])
            states = model.model(rest, past_key_values=cache, use_cache=True).last_hidden_state[0]
            cache.crop(-rest.shape[1])
            rows.append(states[len(prompt) - shared - 1 :])
            targets += wanted
    features = torch.cat(rows).double()
    classes = sorted(set(targets))
    wanted_columns = torch.zeros(len(targets), len(classes) + 1, dtype=torch.float64)
    for row, target in enumerate(targets):
        wanted_columns[row, classes.index(target)] = 1.0
    wanted_columns[:, -1] = -1.0  # every other token
    ridge = RIDGE * features.square().sum(0).mean() * torch.eye(features.shape[1], dtype=torch.float64)
    solved = torch.linalg.solve(features.T @ features + ridge, features.T @ wanted_columns).T
    with torch.no_grad():
        head = model.get_output_embeddings().weight
        head.copy_(solved[-1].float().expand_as(head))
        head[classes] = solved[:-1].float()
        head.mul_(10.0)
