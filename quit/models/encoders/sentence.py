"""Encoders of one vector per text, loaded by sentence-transformers, and plain checkpoints of transformers, which do not
say how their token vectors are pooled and compared."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from quit.errors import InputError
from quit.models.loading import load

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Pooling = Literal["auto", "cls", "mean", "last"]
Similarity = Literal["cosine", "dot"]
_MODES: dict[Pooling, Literal["cls", "mean", "lasttoken"]] = {"cls": "cls", "mean": "mean", "last": "lasttoken"}
"""Our names of poolings -> those of sentence-transformers."""
_DPR = {"DPRQuestionEncoder": "question_encoder", "DPRContextEncoder": "ctx_encoder"}
"""Class of a checkpoint of DPR -> where its BERT is."""


def load_encoder(
    name: str, *, device: str, pooling: Pooling = "auto", similarity: Similarity = "cosine"
) -> SentenceTransformer:
    """Return the encoder of a folder or hub name, on a device that :func:`quit.models.loading.usable_device` returned.

    A model with files of sentence-transformers says itself how it pools and compares. A plain checkpoint of DPR (either
    encoder) takes the first token and inner products, Contriever the mean and inner products, as their papers do; any
    other one ``pooling`` (``cls``, ``mean``, ``last``; ``auto``: the last token of a class whose name ends in
    ``ForCausalLM``, else the mean) and ``similarity``. Raises :class:`InputError` for a model that cannot be loaded or
    makes no vector of a text.
    """

    def make(path: str) -> SentenceTransformer:
        model = _load(path, device, pooling, similarity)
        model.encode(["text"], show_progress_bar=False)  # some kinds of model fail only now
        return model

    return load(name, make, "The encoder")


def _load(path: str, device: str, pooling: Pooling, similarity: Similarity) -> SentenceTransformer:
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from sentence_transformers.util import is_sentence_transformer_model

    options: dict[str, Any] = {"device": device, "local_files_only": Path(path).is_dir()}
    if is_sentence_transformer_model(path, local_files_only=options["local_files_only"]):
        return SentenceTransformer(path, **options)
    model: Any
    config = transformers.AutoConfig.from_pretrained(path)
    if config.model_type == "dpr":
        model, pooling = _dpr(path, config, options), "cls"
    elif config.architectures == ["Contriever"]:
        model, pooling = SentenceTransformer(path, **options, similarity_fn_name="dot"), "mean"
    else:
        model = SentenceTransformer(path, **options, similarity_fn_name=similarity)
    if pooling in _MODES:
        model[-1] = modules.Pooling(model[0].get_embedding_dimension(), _MODES[pooling])
    return model


def _dpr(path: str, config: Any, options: dict[str, Any]) -> SentenceTransformer:
    """Return a DPR encoder for sentence-transformers, which loads the BERT model inside it from a checkpoint."""
    import transformers
    from sentence_transformers import SentenceTransformer

    architecture = (config.architectures or [""])[0]
    if architecture not in _DPR or config.projection_dim:
        raise InputError(
            f"The encoder {path!r} cannot be loaded: it is a {architecture}, projected to {config.projection_dim} "
            f"numbers. Name a {' or '.join(_DPR)} without projection."
        )
    encoder = getattr(getattr(transformers, architecture).from_pretrained(path), _DPR[architecture])
    with TemporaryDirectory() as folder:
        encoder.bert_model.config = transformers.BertConfig.from_dict({**config.to_dict(), "model_type": "bert"})
        encoder.bert_model.save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(path).save_pretrained(folder)
        bare = {"add_pooling_layer": False}  # DPR has none
        return SentenceTransformer(folder, **options, similarity_fn_name="dot", model_kwargs=bare)
