"""The formats of exports: what each may be asked for, which of them fit a dataset, and writing them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quit.dataset.dataset import Dataset
from quit.errors import InputError, SettingsError, check_known
from quit.export.files import ExportFolder, FormatFacts, Manifest, Publication
from quit.export.training import FineTuning
from quit.models.protocols import Encoder
from quit.settings.card import Card

CANARY = "CANARY.txt"


@dataclass(frozen=True, slots=True)
class Options:
    """What a format may be asked for.

    ``paper_keys``: whether readers, ids and titles are the paper's; ``encoder``: called for the similarity in the card
    of huggingface; ``fine_tuning``: which passages tevatron, colbert, monot5 and the tasks of huggingface take;
    ``card``: what the publisher says, for cards; ``benchmark``: folder of ``quit benchmark run``, whose figures the
    card of huggingface has; ``evaluation``: whether huggingface has tasks for Inspect, lm-evaluation-harness and MTEB.
    """

    paper_keys: bool = False
    encoder: Callable[[], Encoder | None] = lambda: None
    fine_tuning: FineTuning = field(default_factory=FineTuning)
    card: Card = field(default_factory=Card)
    benchmark: Path | None = None
    evaluation: bool = False


_READ_BY = {
    "paper_keys": ("paper-keys", ("release-json", "paper-index", "tevatron")),
    "benchmark": ("benchmark", ("huggingface",)),
    "evaluation": ("eval", ("huggingface",)),
    "fine_tuning": ("a choice of positives and negatives", ("tevatron", "colbert", "monot5", "huggingface --eval")),
    "card": ("card", ("huggingface", "mteb")),
}
"""Field of ``Options`` -> what users call it, and the formats that read it."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format. ``module``: of those that share one; imported when needed.

    ``needs_answers``: it writes an answer of every reader to every passage, and cannot say that one was not asked.
    """

    name: str
    doc: str
    needs_answers: bool = False
    module: str = ""
    version: int = 1

    def writer(self) -> Callable[..., FormatFacts]:
        """Return ``write_NAME`` of ``module``, or ``write`` of the format's own: (dataset, folder, options) -> facts of
        the manifest."""
        name = self.name.replace("-", "_")
        module = importlib.import_module(f"quit.export.{self.module or name}")
        return getattr(module, f"write_{name}" if self.module else "write")


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("huggingface", "Parquet shards and a dataset card for datasets.load_dataset"),
        Format("release-json", "The paper's own JSON files and corpus.jsonl", needs_answers=True),
        Format("paper-index", "The index and retriever files of the paper's own scripts", needs_answers=True),
        Format("csv", "Questions and passages as tables for spreadsheets"),
        Format("beir", "BEIR's corpus, queries and qrels", module="retrieval_formats"),
        Format(
            "trec", "TREC topics, qrels and a collection, for trec_eval and similar tools", module="retrieval_formats"
        ),
        Format("pyserini", "A JSONL collection, topics and qrels for Pyserini", module="retrieval_formats"),
        Format("mteb", "The hub's retrieval layout in Parquet, as MTEB loads it"),
        Format("tevatron", "Training records, queries and corpus for Tevatron", module="training_formats"),
        Format("colbert", "Collection, queries and triples with integer ids for ColBERT", module="training_formats"),
        Format("monot5", "Triples of texts for MonoT5", module="training_formats"),
    )
}


def export(
    dataset: Dataset,
    formats: Sequence[str],
    out: Path,
    *,
    overwrite: bool = False,
    renew: bool = False,
    **fields: Any,
) -> list[Manifest]:
    """Write each format into its own folder ``out/<format>`` and return their manifests, in the order asked for.

    ``fields``: those of ``Options``. All targets are checked before anything is written. A target that holds these
    very bytes already, such as the first of two formats after a kill in the second, is left as it is. ``overwrite``:
    replace any earlier export of ours; ``renew``: one of this release only (with another card, say). Raises
    ``SettingsError`` for an unknown format, none at all, an option that no named format reads, a target that is not an
    earlier export of ours, or another one when neither allows it; ``InputError`` when a format needs answers or labels
    that are missing (``labels.partial``), or an equal target is damaged; ``WorkspaceError`` when the disk refuses
    (full, not writable).
    """
    options = Options(**fields)
    names = check_request(formats, options)
    publication = Publication(Path(out), dataset.fingerprint, dataset.embedded, overwrite, renew)

    def write(name: str, folder: ExportFolder) -> FormatFacts:
        _check_labels(dataset, FORMATS[name])
        dataset.writing = name
        folder.text(CANARY, f"{dataset.canary}\n")
        return FORMATS[name].writer()(dataset, folder, options)

    return publication.write(names, write, {name: FORMATS[name].version for name in names})


def default_formats(dataset: Dataset) -> list[str]:
    """Return the formats that are written where none is named: those of QUIT's authors that the tables fit."""
    return ["huggingface", *["release-json"] * (dataset.rows.is_full and not dataset.partly_asked)]


def requested_formats(formats: Sequence[str], known_names: Collection[str]) -> list[str]:
    """Return the names of formats, each once. Raises ``SettingsError`` for an unknown one, and for none."""
    if not formats:
        raise SettingsError(f"No export format was named. Known: {', '.join(known_names)}.")
    for name in formats:
        check_known(name, known_names, "export format")
    return list(dict.fromkeys(formats))


def check_request(formats: Sequence[str], options: Options) -> list[str]:
    """Return the names of formats, each once. Raises ``SettingsError`` as :func:`requested_formats`, and for an option
    that none of the formats reads."""
    names = requested_formats(formats, FORMATS)
    chosen = {*names, *["huggingface --eval"] * options.evaluation}
    for field_name, (option, readers) in _READ_BY.items():
        if getattr(options, field_name) != getattr(Options(), field_name) and not {*readers} & chosen:
            raise SettingsError(f"{option} is for {' or '.join(readers)}: name that format too, or leave it out.")
    return names


def card_for(formats: Sequence[str], card: Card) -> Card:
    """Return a dataset's own card where one of the formats has a card; else an empty one, for nobody asked for it."""
    return card if {*_READ_BY["card"][1]} & {*formats} else Card()


def _check_labels(dataset: Dataset, form: Format) -> None:
    """Raise ``InputError`` where a format would pass off as asked what was not."""
    if form.needs_answers and dataset.partly_asked:
        raise InputError(
            f"The format {form.name} cannot say that not every reader was asked about every passage (labels.partial); "
            f"huggingface can. To have all of them asked: {dataset.fill_in}"
        )
