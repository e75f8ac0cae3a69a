"""Tiny checkpoints of random weights, made by transformers itself."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from quit.models.folders import minilm_folder

_BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SIZES = {
    "BertConfig": _BERT,
    "DPRConfig": _BERT,
    "GPT2Config": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
    "LlamaConfig": _BERT,
    "T5Config": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0},
}


def tokenizer(folder: Path, words: str) -> Any:
    """Save a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", *dict.fromkeys(words.split())])}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )
    fast.save_pretrained(folder)
    return fast


def model(folder: Path, architecture: str, words: str | None = None, seed: int = 0, **options: Any) -> tuple[Any, Any]:
    """Save a checkpoint of a class of transformers; return it and its tokenizer, of ``words`` or MiniLM's."""
    tokens = tokenizer(folder, words) if words else transformers.AutoTokenizer.from_pretrained(minilm_folder())
    tokens.save_pretrained(folder)
    kind = getattr(transformers, architecture)
    config = kind.config_class
    torch.manual_seed(seed)
    network = kind(config(**{"vocab_size": len(tokens), **SIZES[config.__name__], **options})).eval()
    network.save_pretrained(folder)
    return network, tokens


def t5(folder: Path, words: str) -> tuple[Path, Any, Any]:
    """Save an encoder-decoder that knows MonoT5's words and ``words``; return folder, model and tokenizer."""
    vocabulary = f"true false Query: Document: Relevant: {words}"
    return folder, *model(folder, "T5ForConditionalGeneration", vocabulary)


def encoder(folder: Path, words: str, similarity: str) -> Path:
    """Save an encoder of sentence-transformers over a tiny BERT, without a head."""
    from sentence_transformers import SentenceTransformer

    model(folder / "bert", "BertModel", words)
    network = SentenceTransformer(str(folder / "bert"), device="cpu", similarity_fn_name=similarity)
    network.save_pretrained(str(folder / "encoder"), create_model_card=False)
    return folder / "encoder"


def late(folder: Path, bert: Path) -> Any:
    """Save a multi-vector model over a BERT, and return it."""
    from sentence_transformers import MultiVectorEncoder

    network = MultiVectorEncoder(str(bert), device="cpu")
    network.save_pretrained(str(folder))
    return network


def classifier(folder: Path, labels: dict[int, str]) -> Path:
    """Save a classifier of pairs of texts with these labels."""
    numbers = {name: number for number, name in labels.items()}
    more = {"hidden_size": 32, "initializer_range": 0.5, "id2label": labels, "label2id": numbers}
    model(folder, "BertForSequenceClassification", seed=5, **more)
    return folder


def logits(folder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Return a classifier's logits of each pair by transformers itself."""
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return np.concatenate([network(**tokens(*pair, return_tensors="pt")).logits.numpy() for pair in pairs])
