"""What a dataset card is made from, results of ``quit benchmark run`` on the same release among it, and how its texts
are written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quit.dataset.dataset import Dataset
from quit.dataset.statistics import Statistics
from quit.errors import InputError
from quit.evaluate.circularity import Circularity
from quit.evaluate.labels import ReaderAgreement, SharedAnswers, SplitLabels
from quit.evaluate.metrics import with_largest_k
from quit.render.table import markdown_cell
from quit.settings.card import Card
from quit.text.words import first_names

METRICS = ("Hit(rel=2)@1", "Hit(rel=2)@10", "MRR(rel=2)@100", "nDCG@10", "EM", "F1")
"""Metrics of a card's table, where a benchmark has one of them; else its first."""
CITATION = """@inproceedings{mozafari2026inferential,
  title     = {Inferential Question Answering},
  author    = {Mozafari, Jamshid and Zamani, Hamed and Zuccon, Guido and Jatowt, Adam},
  booktitle = {Proceedings of the ACM Web Conference 2026 (WWW '26)},
  year      = {2026},
  doi       = {10.1145/3774904.3792653}
}"""
_SPDX = (
    "MIT Apache-2.0 AFL-3.0 Artistic-2.0 BSL-1.0 ECL-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2 ISC LGPL-2.1 LPPL-1.3c "
    "MS-PL MPL-2.0 NCSA OFL-1.1 OSL-3.0 PostgreSQL WTFPL Zlib BSD-3-Clause-Clear CC-BY-NC-2.0 CC0-1.0 "
    "CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC-BY-NC-3.0 "
    "CC-BY-NC-4.0 CC-BY-ND-4.0 CC-BY-NC-ND-3.0 CC-BY-NC-ND-4.0 CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 CC-BY-NC-SA-4.0 "
    "BSD-2-Clause BSD-3-Clause GPL-2.0 GPL-3.0 LGPL-3.0 AGPL-3.0 CDLA-Permissive-1.0 CDLA-Permissive-2.0 "
    "CDLA-Sharing-1.0 Unlicense"
).split()
_LICENCES = {name.lower(): name for name in _SPDX} | {"odc-by": "ODC-By-1.0", "odbl": "ODbL-1.0", "unknown": ""}
_LICENCES |= {"pddl": "PDDL-1.0", "gfdl": "GFDL-1.3-or-later", "etalab-2.0": "etalab-2.0"}
"""Identifier of the Hugging Face Hub -> of SPDX (https://spdx.org/licenses/)."""
PAPER = "[Inferential Question Answering](https://doi.org/10.1145/3774904.3792653) (Mozafari et al., WWW 2026)"
TEXT = 300
"""Characters at most of a text in the example."""


@dataclass(frozen=True)
class Baselines:
    """``questions``: which ones, in words. ``rows``: system (retriever, reranker, reader with its number of passages)
    -> metric -> mean, 0 to 1, in the benchmark's order. ``circular``: which models are marked."""

    questions: str
    rows: Mapping[str, Mapping[str, float]]
    circular: Circularity


def read_baselines(folder: Path, content_id: str | None) -> Baselines:
    """Return the results in a folder of ``quit benchmark run``.

    Of a reader only the rows with most passages count; the bounds that know the labels keep the name ``oracle``. Raises
    ``InputError`` for a folder without results, damaged ones, or those of another release than ``content_id``.
    """
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        facts, circular = run["facts"], Circularity(**run["circular"])
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        release, without_relevant = str(facts["release"]), str(facts["without a relevant passage"])
        questions = f"{facts['questions']}; one without a relevant passage {without_relevant}"
        rows = _rows(results, circular)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{folder} holds no results of quit benchmark run, or damaged ones: name the folder of its --out."
        ) from error
    if not content_id or content_id not in release:
        raise InputError(
            f"The benchmark in {folder} ran on the release {release}, not on this "
            f"{f'one (content id {content_id})' if content_id else 'workspace: name a release'}."
        )
    return Baselines(questions, rows, circular)


def _rows(results: Sequence[Mapping[str, Any]], circular: Circularity) -> dict[str, dict[str, float]]:
    """Return what :class:`Baselines` has: below a marked system its scores on labels that do not rest on it."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    names = list(dict.fromkeys(row["metric"] for row in results))
    metrics = [name for name in METRICS if name in names] or names[: len(METRICS)]
    for row in with_largest_k(results):
        models = (row["retriever"], row["reranker"], row["reader"])
        independent = circular.corpus(models)
        if row["metric"] not in metrics or row["corpus"] not in ("release", independent):
            continue
        system = row["retriever"] + (f" + {row['reranker']}" if row["reranker"] else "")
        if row["reader"]:
            context = "each passage alone" if row["strategy"] == "any" else f"{row['k']} passages, {row['strategy']}"
            system += f" + {row['reader']} ({context})"
        mark = " †" if any(model in circular.related for model in models) else ""
        corpus = "" if row["corpus"] == "release" else f", labels {row['corpus'].removeprefix('release, ')}"
        rows.setdefault((system + mark, corpus), {})[row["metric"]] = float(row["value"])
    order = [system for system, corpus in rows if not corpus]
    by_system = sorted(rows, key=lambda row: (order.index(row[0]), row[1]))
    return {"".join(row): rows[row] for row in by_system}


@dataclass(frozen=True)
class Origin:
    """Where labels come from, without the labels. ``provenance``: as of ``quit.dataset.dataset.Dataset``."""

    provenance: Mapping[str, Any]


class Shard(NamedTuple):
    """One Parquet file: its config and split, path within the folder, rows, size in bytes on disk and in memory."""

    config: str
    split: str
    path: str
    rows: int
    bytes: int
    loaded_bytes: int


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


def hub_licence(licence: str) -> str:
    """Return the hub's identifier of a licence: ``CC BY 4.0`` -> ``cc-by-4.0``; ``other`` for one it does not know,
    ``unknown`` for none."""
    key = "-".join(licence.casefold().replace("-", " ").split()).removesuffix("-license").removesuffix("-licence")
    spdx = {text.casefold(): name for name, text in _LICENCES.items()}
    return {"": "unknown", "cc0": "cc0-1.0", **spdx, **{name: name for name in _LICENCES}}.get(key, "other")


def licence_urls(origin: Dataset | Origin, card: Card) -> list[str]:
    """Return the addresses of the licences' texts; none where one of them is not known."""
    names = licence_header(origin, card)["license"]
    licences = [_LICENCES.get(name) for name in ([names] if isinstance(names, str) else names)]
    if card.licence_link or not all(licences):
        return [card.licence_link] if card.licence_link else []
    return [f"https://spdx.org/licenses/{name}.html" for name in licences]


def licence_header(dataset: Dataset | Origin, card: Card) -> dict[str, Any]:
    """Return the card's fields on licences: that of the settings, else those of the sources."""
    if not card.licence:
        licences = sorted({hub_licence(str(source.get("licence") or "")) for source in source_list(dataset)})
        return {"license": licences[0] if len(licences) == 1 else licences or "unknown"}
    licence = hub_licence(card.licence)
    if licence != "other":
        return {"license": licence}
    name = re.sub(r"[^a-z0-9.]+", "-", card.licence.casefold()).strip("-")
    link = {"license_link": card.licence_link} if card.licence_link else {}
    return {"license": licence, "license_name": name, **link}


def source_list(dataset: Dataset | Origin) -> list[Mapping[str, Any]]:
    """Return what is known of the sources: mappings as in ``Dataset.provenance``."""
    return list(dataset.provenance.get("sources") or [])


def title(dataset: Dataset | Origin, card: Card) -> str:
    """Return the dataset's name; where the publisher gives none, one with the files of its sources."""
    files = list(dict.fromkeys(str(source["file"]) for source in source_list(dataset) if source.get("file")))
    given = (dataset.provenance.get("settings") or {}).get("passages", {}).get("hints") == "given"
    what = "Question answering with labelled passages" if given else "Inferential question answering"
    return card.name or what + (f" from {first_names(files)}" if files else "")


def cell(value: Any) -> str:
    """Return a value for a table or a line: HTML, bars and line ends escaped, a dash for None."""
    return "–" if value is None else markdown_cell(str(value))


def code(value: Any) -> str:
    """Return an id or a name as code: as :func:`cell`, without the characters that could end it."""
    return f"`{unescape(cell(re.sub('[`<>]', '', str(value))))}`"


def prose(value: str) -> str:
    """Return a source's or model's text for prose: cut, on one line, with Markdown's marks escaped."""
    cut = value if len(value) <= TEXT else value[:TEXT] + "..."
    return cell("".join(f"\\{char}" if char in "\\`*_[]#~" else char for char in cut))
