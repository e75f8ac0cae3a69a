"""Training of retrievers and rerankers on (question, positive, negative) triples (paper, sections 5.2 and 5.3).

A bi-encoder, two towers (DPR) or a multi-vector model (ColBERT) learns by MultipleNegativesRanking over the triples; a
cross-encoder by binary cross-entropy over pairs; MonoT5 to say ``true`` or ``false``. No batch of the first three holds
a question twice: its other positives would count as negatives.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from quit.errors import importing
from quit.models.encoders.sentence import load_encoder
from quit.models.loading import load_pretrained, load_sentence_model
from quit.qa.benchmark.rerankers import MONOT5_WORDS, monot5_text
from quit.qa.settings import FineTune
from quit.text.words import split_names

Triples = Sequence[tuple[str, str, str]]
WARMUP_SHARE = 0.1
"""Share of the steps in which the learning rate rises."""
_CLASSES = {
    "bi-encoder": ("SentenceTransformer", "sentence_transformer", "MultipleNegativesRankingLoss"),
    "two-tower": ("SentenceTransformer", "sentence_transformer", "MultipleNegativesRankingLoss"),
    "cross-encoder": ("CrossEncoder", "cross_encoder", "BinaryCrossEntropyLoss"),
    "multi-vector": ("MultiVectorEncoder", "multi_vector_encoder", "MultiVectorMultipleNegativesRankingLoss"),
}
"""Kind -> sentence-transformers' class, the package of its losses, its loss."""


def train(
    kind: str, base: str, examples: Triples, settings: FineTune, device: str, folder: Path, **options: str
) -> None:
    """Train a model on (question, positive, negative) triples and save it to ``folder``. Seeded: the same inputs on the
    same machine give the same weights. ``options``: pooling and similarity of a base that is a plain checkpoint. Raises
    ``MissingDependency`` without accelerate."""
    with importing("Fine-tuning"):
        import accelerate  # noqa: F401  # what transformers' trainer runs on
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.set_seed(settings.seed)
    if kind == "monot5":
        job = _monot5_job(base, examples, settings, device, folder)
    else:
        job = _sentence_job(kind, base, examples, settings, device, folder, options)
    job.remove_callback(transformers.PrinterCallback)
    job.train()
    shutil.rmtree(folder / "trainer", ignore_errors=True)
    if kind == "monot5":
        job.model.save_pretrained(folder)
        job.processing_class.save_pretrained(folder)
    else:
        job.model.save_pretrained(str(folder), create_model_card=False)


def _arguments(settings: FineTune, device: str, folder: Path) -> dict[str, Any]:
    """Return what every trainer is given."""
    return {
        "output_dir": str(folder / "trainer"),
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps or -1,
        "per_device_train_batch_size": settings.batch,
        "learning_rate": settings.learning_rate,
        "warmup_steps": WARMUP_SHARE,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": device == "cpu",
        **({"optim": "adafactor"} if settings.optimizer == "adafactor" else {}),
    }


def _sentence_job(
    kind: str, base: str, examples: Triples, settings: FineTune, device: str, folder: Path, pooled: dict[str, str]
) -> Any:
    """Return the trainer of a model of sentence-transformers."""
    import sentence_transformers

    name, module, loss = _CLASSES[kind]
    crossed, towers = kind == "cross-encoder", kind == "two-tower"
    if name == "SentenceTransformer":
        model = _two_towers(base, device, pooled) if towers else load_encoder(base, device=device, **pooled)
    else:
        head: dict[str, Any] = {"num_labels": 1, "max_length": settings.max_length} if crossed else {}
        model = load_sentence_model(name, base, device=device, **head)
    if not crossed:
        model.max_seq_length = settings.max_length
    losses = import_module(f"sentence_transformers.{module}.losses")
    inner_product: dict[str, Any] = {}
    if name == "SentenceTransformer" and model.similarity_fn_name == "dot":  # DPR: as it is searched
        inner_product = {"scale": 1.0, "similarity_fct": sentence_transformers.util.dot_score}
    routes = {"router_mapping": {"anchor": "query", "positive": "document", "negative": "document"}} if towers else {}
    arguments = getattr(sentence_transformers, f"{name}TrainingArguments")(
        batch_sampler="batch_sampler" if crossed else "no_duplicates",
        **routes,
        **_arguments(settings, device, folder),
    )
    model.model_card_data.widget = [{}]  # no card is written: the trainer looks for no examples
    return getattr(sentence_transformers, f"{name}Trainer")(
        model=model,
        args=arguments,
        train_dataset=_rows(examples, crossed),
        loss=getattr(losses, loss)(model, **inner_product),
    )


def _two_towers(base: str, device: str, pooled: dict[str, str]) -> Any:
    """Return one model with an encoder of questions and one of passages (DPR, Karpukhin et al. 2020): separate weights,
    also where both start from the same model."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    names = split_names(base)
    of_questions, of_passages = (load_encoder(name, device=device, **pooled) for name in (names[0], names[-1]))
    router = Router.for_query_document(list(of_questions.children()), list(of_passages.children()))
    return SentenceTransformer(modules=[router], device=device, similarity_fn_name=of_passages.similarity_fn_name)


def _rows(examples: Triples, for_crossencoder: bool) -> Any:
    """Return the examples as a dataset: (query, passage, label) of a cross-encoder, else the triples themselves."""
    from datasets import Dataset as Rows

    questions, right, wrong = (list(column) for column in zip(*examples, strict=True))
    if not for_crossencoder:
        return Rows.from_dict({"anchor": questions, "positive": right, "negative": wrong})
    texts = [text for pair in zip(right, wrong, strict=True) for text in pair]
    labels = np.tile([1.0, 0.0], len(examples)).tolist()
    return Rows.from_dict({"query": np.repeat(questions, 2).tolist(), "passage": texts, "label": labels})


def _monot5_job(base: str, examples: Triples, settings: FineTune, device: str, folder: Path) -> Any:
    """Return the trainer of MonoT5 (Nogueira et al. 2020): every positive with ``true``, every negative with
    ``false``."""
    import transformers

    model, tokenizer = load_pretrained("AutoModelForSeq2SeqLM", base, device=device, dtype="float32")

    def batch(pairs: Sequence[tuple[str, str]]) -> Any:
        texts, words = zip(*pairs, strict=True)
        cut = {"truncation": True, "max_length": settings.max_length}
        # Both words are one piece, so no label is padding.
        return tokenizer(list(texts), text_target=list(words), padding=True, return_tensors="pt", **cut)

    pairs = [
        (monot5_text(question, passage), word)
        for question, *passages in examples
        for passage, word in zip(passages, MONOT5_WORDS, strict=True)
    ]
    arguments = transformers.TrainingArguments(remove_unused_columns=False, **_arguments(settings, device, folder))
    return transformers.Trainer(
        model=model, args=arguments, train_dataset=pairs, data_collator=batch, processing_class=tokenizer
    )
