"""Tiny checkpoints of random weights, made by transformers itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch


def tokenizer(folder: Path, words: str) -> Any:
    """Save a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", *dict.fromkeys(words.split())])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )
    fast.save_pretrained(folder)
    return fast


def t5(folder: Path, words: str) -> tuple[Path, Any, Any]:
    """Save an encoder-decoder that knows MonoT5's words and ``words``; return folder, model and tokenizer."""
    from transformers import T5Config, T5ForConditionalGeneration

    made = tokenizer(folder, f"true false Query: Document: Relevant: {words}")
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(made), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    model = T5ForConditionalGeneration(config).eval()
    model.save_pretrained(folder)
    return folder, model, made


def encoder(folder: Path, words: str, similarity: str) -> Path:
    """Save an encoder of sentence-transformers over a tiny BERT, without a head."""
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel

    made = tokenizer(folder / "bert", words)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(made), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder / "bert")
    model = SentenceTransformer(str(folder / "bert"), device="cpu", similarity_fn_name=similarity)
    model.save_pretrained(str(folder / "encoder"), create_model_card=False)
    return folder / "encoder"


def dpr(folder: Path, words: str, architecture: str, **options: Any) -> Path:
    """Save an encoder of DPR (``DPRQuestionEncoder``, ``DPRContextEncoder``) or its reader."""
    import transformers

    made = tokenizer(folder, words)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.DPRConfig(vocab_size=len(made), **sizes, **options)
    getattr(transformers, architecture)(config).save_pretrained(folder)
    return folder
