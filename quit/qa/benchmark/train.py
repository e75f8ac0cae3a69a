"""Training of retrievers and rerankers on (question, positive, negative) triples (paper, sections 5.2 and 5.3).

A bi-encoder, two towers (DPR) or a multi-vector model (ColBERT) learns by MultipleNegativesRanking over the triples; a
cross-encoder by binary cross-entropy over pairs; MonoT5 to say ``true`` or ``false``. No batch of the first three holds
a question twice: its other positives would count as negatives.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quit.common.extras import importing
from quit.models.encoders.sentence import load_encoder
from quit.models.loading import load_pretrained, load_sentence_model
from quit.qa.benchmark.rerankers import MONOT5_WORDS, monot5_text
from quit.qa.settings import QaSettings
from quit.text.words import split_names

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from transformers import Trainer

Triples = Sequence[tuple[str, str, str]]
WARMUP_SHARE = 0.1
"""Share of the steps in which the learning rate rises."""
_NO_WIDGET: list[dict[str, str]] = [{}]
"""Of a model's card, which is not written: the trainer looks for no examples."""


def train(kind: str, base: str, examples: Triples, settings: QaSettings, folder: Path) -> None:
    """Train a model of a kind (:data:`quit.qa.benchmark.finetune.KINDS`) and save it to ``folder``. Seeded: the same
    inputs on the same machine give the same weights.

    Raises ``InputError`` for a base that cannot be loaded, ``MissingDependency`` without accelerate.
    """
    with importing("Fine-tuning"):
        import accelerate  # noqa: F401  # what transformers' trainer runs on
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.set_seed(settings.finetune.seed)
    trainer = _TRAINERS[kind](base, examples, settings, folder)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    shutil.rmtree(folder / "trainer", ignore_errors=True)
    model: Any = trainer.model
    if kind == "monot5":
        tokenizer: Any = trainer.processing_class
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    else:
        model.save_pretrained(str(folder), create_model_card=False)


def _arguments(settings: QaSettings, folder: Path) -> dict[str, Any]:
    """Return what every trainer is given."""
    tuning = settings.finetune
    return {
        "output_dir": str(folder / "trainer"),
        "num_train_epochs": tuning.epochs,
        "max_steps": tuning.max_steps or -1,
        "per_device_train_batch_size": tuning.batch,
        "learning_rate": tuning.learning_rate,
        "warmup_steps": WARMUP_SHARE,
        "seed": tuning.seed,
        "data_seed": tuning.seed,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": settings.benchmark.device == "cpu",
        **({"optim": "adafactor"} if tuning.optimizer == "adafactor" else {}),
    }


def _bi_encoder(base: str, examples: Triples, settings: QaSettings, folder: Path) -> Trainer:
    return _vector_trainer(_encoder(base, settings), examples, settings, folder)


def _two_towers(base: str, examples: Triples, settings: QaSettings, folder: Path) -> Trainer:
    """Return the trainer of one model with an encoder of questions and one of passages (DPR, Karpukhin et al. 2020):
    separate weights, also where both start from the same model."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    names = split_names(base)
    of_questions, of_passages = (_encoder(name, settings) for name in (names[0], names[-1]))
    router = Router.for_query_document([*of_questions], [*of_passages])
    similarity = of_passages.similarity_fn_name
    towers = SentenceTransformer(modules=[router], device=settings.benchmark.device, similarity_fn_name=similarity)
    routes = {"anchor": "query", "positive": "document", "negative": "document"}
    return _vector_trainer(towers, examples, settings, folder, router_mapping=routes)


def _encoder(name: str, settings: QaSettings) -> SentenceTransformer:
    benchmark = settings.benchmark
    return load_encoder(name, device=benchmark.device, pooling=benchmark.pooling, similarity=benchmark.similarity)


def _vector_trainer(
    model: SentenceTransformer, examples: Triples, settings: QaSettings, folder: Path, **routes: Any
) -> Trainer:
    """Return the trainer of a model of one vector per text."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments, util
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model.max_seq_length = settings.finetune.max_length
    model.model_card_data.widget = _NO_WIDGET
    arguments = SentenceTransformerTrainingArguments(
        batch_sampler="no_duplicates", **routes, **_arguments(settings, folder)
    )
    # DPR: as it is searched.
    options: dict[str, Any] = (
        {"scale": 1.0, "similarity_fct": util.dot_score} if model.similarity_fn_name == "dot" else {}
    )
    loss = MultipleNegativesRankingLoss(model, **options)
    return SentenceTransformerTrainer(model=model, args=arguments, train_dataset=_triples(examples), loss=loss)


def _multi_vector(base: str, examples: Triples, settings: QaSettings, folder: Path) -> Trainer:
    from sentence_transformers import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments
    from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss

    model = load_sentence_model("MultiVectorEncoder", base, device=settings.benchmark.device)
    model.max_seq_length = settings.finetune.max_length
    model.model_card_data.widget = _NO_WIDGET
    arguments = MultiVectorEncoderTrainingArguments(batch_sampler="no_duplicates", **_arguments(settings, folder))
    loss = MultiVectorMultipleNegativesRankingLoss(model)
    return MultiVectorEncoderTrainer(model=model, args=arguments, train_dataset=_triples(examples), loss=loss)


def _cross_encoder(base: str, examples: Triples, settings: QaSettings, folder: Path) -> Trainer:
    from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    length = settings.finetune.max_length
    model = load_sentence_model("CrossEncoder", base, device=settings.benchmark.device, num_labels=1, max_length=length)
    model.model_card_data.widget = _NO_WIDGET
    arguments = CrossEncoderTrainingArguments(**_arguments(settings, folder))
    loss = BinaryCrossEntropyLoss(model)
    return CrossEncoderTrainer(model=model, args=arguments, train_dataset=_pairs(examples), loss=loss)


def _triples(examples: Triples) -> Dataset:
    """Return the examples with the columns anchor, positive, negative."""
    from datasets import Dataset

    columns = (list(column) for column in zip(*examples, strict=True))
    return Dataset.from_dict(dict(zip(("anchor", "positive", "negative"), columns, strict=True)))


def _pairs(examples: Triples) -> Dataset:
    """Return two rows per example with the columns query, passage, label: 1 for its positive, 0 for its negative."""
    from datasets import Dataset

    rows = [(question, text, 1.0 - at) for question, *texts in examples for at, text in enumerate(texts)]
    columns = (list(column) for column in zip(*rows, strict=True))
    return Dataset.from_dict(dict(zip(("query", "passage", "label"), columns, strict=True)))


def _monot5(base: str, examples: Triples, settings: QaSettings, folder: Path) -> Trainer:
    """Return the trainer of MonoT5 (Nogueira et al. 2020): every positive with ``true``, every negative with
    ``false``."""
    import transformers

    model, tokenizer = load_pretrained("AutoModelForSeq2SeqLM", base, device=settings.benchmark.device, dtype="float32")

    def batch(pairs: Sequence[tuple[str, str]]) -> Any:
        texts, words = zip(*pairs, strict=True)
        cut = {"truncation": True, "max_length": settings.finetune.max_length}
        # Both words are one piece, so no label is padding.
        return tokenizer(list(texts), text_target=list(words), padding=True, return_tensors="pt", **cut)

    pairs = [
        (monot5_text(question, passage), word)
        for question, *passages in examples
        for passage, word in zip(passages, MONOT5_WORDS, strict=True)
    ]
    arguments = transformers.TrainingArguments(remove_unused_columns=False, **_arguments(settings, folder))
    return transformers.Trainer(
        model=model, args=arguments, train_dataset=pairs, data_collator=batch, processing_class=tokenizer
    )


_TRAINERS = {
    "bi-encoder": _bi_encoder,
    "two-tower": _two_towers,
    "cross-encoder": _cross_encoder,
    "multi-vector": _multi_vector,
    "monot5": _monot5,
}
"""Kind -> what makes its trainer."""
