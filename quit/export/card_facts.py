"""What a dataset card is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit.dataset.dataset import Dataset
from quit.dataset.description import Provenance, section_of
from quit.dataset.statistics import Statistics
from quit.evaluate.labels import ReaderAgreement, SharedAnswers, SplitLabels
from quit.export.baselines import Baselines
from quit.export.parquet_shards import Shard
from quit.settings.card import Card
from quit.sources.files import is_given
from quit.text.words import first_names

CITATION = """@inproceedings{mozafari2026inferential,
  title     = {Inferential Question Answering},
  author    = {Mozafari, Jamshid and Zamani, Hamed and Zuccon, Guido and Jatowt, Adam},
  booktitle = {Proceedings of the ACM Web Conference 2026 (WWW '26)},
  year      = {2026},
  doi       = {10.1145/3774904.3792653}
}"""


@dataclass(frozen=True, slots=True)
class Example:
    """A question with passages: ``question`` a row of the config ``questions``; ``passages`` rows of ``passages``, each
    with what the labelers answered from it (``answers``) beside."""

    question: Mapping[str, Any]
    passages: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class CardFacts:
    """What a card is made from.

    ``schemas``: the columns of each config. ``digest``: of the data files. ``agreement``: of all readers;
    ``labelers``: of the labelers only. ``unjudged``: answers without a verdict. ``baselines``: None where no benchmark
    was named.
    """

    dataset: Dataset
    card: Card
    figures: Statistics
    labels: Sequence[SplitLabels]
    agreement: ReaderAgreement
    labelers: ReaderAgreement
    shared: Sequence[SharedAnswers]
    example: Example
    schemas: Mapping[str, pa.Schema]
    shards: Sequence[Shard]
    digest: str
    unjudged: int = 0
    baselines: Baselines | None = None

    @cached_property
    def models(self) -> dict[str, list[str]]:
        """Task -> identities of the models that did it, for ``settings.json``."""
        dataset, verdicts = self.dataset, self.dataset.verdicts
        of_model = verdicts.filter(pc.equal(verdicts["basis"], "model"))
        columns = {
            "convergence": dataset.ranked_hints.filter(dataset.ranked_hints["selected"])["producer"],
            "question types": dataset.descriptions["type_producer"],
            "difficulty": dataset.descriptions["difficulty_producer"],
            "judges": (of_model if len(of_model) else verdicts)["judge"],
        }
        identities = {task: sorted(set(column.to_pylist()) - {None}) for task, column in columns.items()}
        readers = [f"{info.name}: {info.identity}" for info in dataset.ordered_readers]
        return {"readers": readers, **identities, "similarity": [self.figures.encoder] if self.figures.encoder else []}

    def of(self, config: str, split: str) -> list[Shard]:
        """Return the files of a config and split."""
        return [shard for shard in self.shards if (shard.config, shard.split) == (config, split)]


def title(provenance: Provenance, card: Card) -> str:
    """Return the dataset's name; where the publisher gives none, one with the files of its sources, except those that
    hold records given in Python."""
    names = dict.fromkeys(source.get("file") or "" for source in provenance.get("sources", ()))
    files = [name for name in names if name and not is_given(name)]
    of_given = section_of(provenance, "passages").get("hints") == "given"
    what = "Question answering with labelled passages" if of_given else "Inferential question answering"
    return card.name or what + (f" from {first_names(files)}" if files else "")
