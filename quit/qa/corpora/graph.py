"""Neighbourhood graphs: each document's k nearest others, in the format that PyTerrier's adaptive package loads.

::

    G/edges.u32.np, weights.f16.np   raw little-endian, documents x k, nearest first;
                                     a short row ends with its own number, weight 0
    G/docnos.npids                   document ids, by the package npids
    G/edges.parquet                  the same edges as rows, without padding
    G/graph.json                     corpus, encoder, method, recall, degrees, similarities
    G/pt_meta.json                   written last: what lacks it is no graph
    G/vectors/                       kept, so that a larger corpus costs only its new documents
    G/partial/                       the steps of an unfinished search
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from quit.common.extras import importing
from quit.common.files import read_json, remove_leftovers, replacing, write_json
from quit.common.ids import content_hash, draw
from quit.common.manifests import fault, write_manifest
from quit.common.parquet import parquet_writer
from quit.common.progress import note
from quit.common.steps import remove_steps
from quit.errors import InputError, SettingsError, refuse_newer
from quit.qa.contracts.corpora import EDGES
from quit.qa.corpora.neighbour_file import HIGHEST_HALF, read_neighbours
from quit.qa.corpora.neighbours import Neighbours, Search, make_neighbours
from quit.qa.folders import building, is_own
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.vectors import PARTIAL, checkpointed_batches, write_joined
from quit.qa.settings import FirstStages, Graph
from quit.settings.section import set_options
from quit.text.words import shell_word

VERSION = 1
EDGES_FILE, WEIGHTS_FILE, IDS_FILE = "edges.u32.np", "weights.f16.np", "docnos.npids"
FILES = (EDGES_FILE, WEIGHTS_FILE, IDS_FILE, "edges.parquet")
META, FACTS = "pt_meta.json", "graph.json"
CHECKPOINT = 8192
"""Documents between two points from which a killed search resumes."""
ROWS_A_GROUP = 16_384
RECALL_SAMPLE, RECALL_SEED = 500, "quit"
"""Documents whose neighbours are compared with the true ones (late interaction takes fewer), and the seed of their
draw."""


class RecallFacts(TypedDict):
    """The share of a ``sample``'s true neighbours among the first ``at``; None where nobody knows the true ones.
    ``against``: what says them."""

    at: int
    value: float | None
    sample: int
    against: str


class GraphFacts(TypedDict):
    """``graph.json``, with its files and a checksum beside these. ``plan``: what its edges depend on; ``first_stages``:
    those of these settings that they may depend on."""

    version: int
    identity: str
    corpus: str
    documents: int
    k: int
    edges: int
    recall: RecallFacts
    statistics: dict[str, Any]
    plan: dict[str, Any]
    first_stages: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class NeighbourhoodGraph:
    """A graph on disk, memory-mapped. Implements :class:`quit.retrieval.protocols.NeighbourGraph`.

    ``edges``: uint32, ``weights``: float16, shapes (documents, k).
    """

    path: Path
    facts: GraphFacts
    edges: np.ndarray
    weights: np.ndarray

    @classmethod
    def open(cls, path: str | Path, corpus: BuiltCorpus | None = None) -> NeighbourhoodGraph:
        """Return the graph in a folder; with ``corpus``, one that was made of it.

        Raises :class:`InputError` where there is none, an unfinished one, one of another corpus, or files that have not
        the checksums of ``graph.json``; :class:`WorkspaceError` for a newer layout.
        """
        path = Path(path)
        facts, meta = read_json(path / FACTS), read_json(path / META)
        corpus_word = shell_word(corpus.path if corpus else "CORPUS")
        if facts is None or meta is None:
            unfinished = " (an unfinished build is there: run it again)" if is_own(path, "graph") else ""
            raise InputError(
                f"{path} holds no graph{unfinished}. Make one: quit graph build --corpus {corpus_word} --out "
                f"{shell_word(path)}"
            )
        refuse_newer(f"The graph {path}", facts.get("version", 0), VERSION)
        if problem := _fault(path):
            raise InputError(f"{problem}. Make the graph again, of the same corpus: {_again(facts, corpus_word, path)}")
        if corpus is not None and facts["corpus"] != corpus.identity:
            raise InputError(
                f"The corpus {corpus.path} is not the one that the graph {path} was made of ({facts['documents']:,} "
                f"documents then, {len(corpus):,} now). Name the graph's corpus, or make the graph again (a dense "
                f"encoder encodes new documents alone): {_again(facts, corpus_word, path)}"
            )
        return cls(path, facts, *_mapped(path, facts["documents"], facts["k"]))

    @property
    def identity(self) -> str:
        """Changes with the corpus, the encoder, k and how it was searched."""
        return self.facts["identity"]

    @property
    def encoder(self) -> str:
        """The name of the encoder that made it."""
        return self.facts["plan"]["encoder"]

    @property
    def k(self) -> int:
        """Neighbours stored for each document."""
        return int(self.edges.shape[1])

    def __len__(self) -> int:
        return len(self.edges)

    def neighbours(self, row: int, k: int) -> np.ndarray:
        """Return at most ``k`` neighbours, nearest first, int64. Raises ``SettingsError`` for more than are stored."""
        if not 0 <= k <= self.k:
            raise SettingsError(f"The graph {self.path} stores {self.k} neighbours per document, not {k}.")
        neighbours = np.asarray(self.edges[row, :k], dtype=np.int64)
        return neighbours[neighbours != row]


def build_graph(
    corpus: BuiltCorpus, encoder: str, k: int, out: Path, settings: Graph, stages: FirstStages
) -> tuple[NeighbourhoodGraph, bool]:
    """Build the graph of a corpus in the folder ``out``; return it, and whether anything had to be done.

    ``encoder``: as :mod:`quit.qa.indexes.encoders` names them, or ``bm25``. A killed build resumes at its last step of
    vectors or of neighbours. Raises :class:`SettingsError` for a ``k`` that the corpus cannot fill,
    ``cross_question_only`` without a release, or a folder that holds something else; :class:`InputError` when the
    encoder returns NaN; :class:`WorkspaceError` when the disk refuses or another build is at work there.
    """
    if not 1 <= k < len(corpus):
        raise SettingsError(
            f"k is {k}; it must be at least 1 and below the number of documents of the corpus {corpus.path}, which is "
            f"{len(corpus):,}."
        )
    return _build(corpus, out, lambda: make_neighbours(corpus, encoder, k, out, settings, stages))


def import_graph(corpus: BuiltCorpus, file: Path, encoder: str, out: Path) -> tuple[NeighbourhoodGraph, bool]:
    """Write the graph that another program made of a corpus to the folder ``out``; return it, and whether anything had
    to be done.

    ``file``: as :func:`quit.qa.corpora.neighbour_file.read_neighbours` reads it. ``encoder``: what made it, as
    ``build_graph`` names it. Raises as both.
    """
    return _build(corpus, out, lambda: read_neighbours(corpus, file, encoder))


def _build(corpus: BuiltCorpus, out: Path, make: Callable[[], Neighbours]) -> tuple[NeighbourhoodGraph, bool]:
    with building(out, "graph"):
        neighbours = make()
        plan = {"version": VERSION, "corpus": corpus.identity, "k": neighbours.k, **neighbours.facts}
        earlier = read_json(out / FACTS)
        remove_leftovers(out, "*")
        new = not earlier or earlier.get("plan") != plan or not read_json(out / META)
        if not new and (problem := _fault(out)):
            note(f"{problem}: the graph is built again")
            new = True
        if new:
            with importing("A neighbourhood graph"):  # said before hours of search
                from npids import Lookup
            search = neighbours.prepare()
            steps = _search(search, len(corpus), out / PARTIAL, plan)
            _finish(neighbours, search, out, plan, steps, Lookup)
        remove_steps(out / PARTIAL)
    return NeighbourhoodGraph.open(out, corpus), new


def _again(facts: GraphFacts, corpus: str, path: Path) -> str:
    """Return the command that makes a graph again, with its settings."""
    plan = facts.get("plan", {})
    if "file" in plan:
        subcommand, k = f"import {shell_word('FOLDER/' + plan['file'])}", ""
    else:
        subcommand, k = "build", f" --k {plan.get('k')}"
    methods = ("exact", "faiss")  # others say what an encoder has in place of a method
    options = set_options("graph", Graph, {key: plan[key] for key in plan if key != "method" or plan[key] in methods})
    options += set_options("first_stages", FirstStages, facts.get("first_stages", {}))
    encoder = shell_word(plan.get("encoder"))
    return f"quit graph {subcommand} --corpus {corpus} --encoder {encoder}{k} --out {shell_word(path)}{options}"


def _search(search: Search, count: int, partial: Path, plan: dict[str, Any]) -> list[list[np.ndarray]]:
    """Return the edges and weights of each step, as on disk."""

    def make(start: int, stop: int) -> list[np.ndarray]:
        rows, similarity = search.rows(start, stop)
        self_rows = np.arange(start, stop, dtype=np.int64)[:, None]
        weights = np.clip(similarity, -HIGHEST_HALF, HIGHEST_HALF).astype("<f2")
        return [np.where(rows < 0, self_rows, rows).astype("<u4"), weights]

    return checkpointed_batches(partial, plan, ("edges", "weights"), count, CHECKPOINT, make, "neighbours")


def _finish(
    neighbours: Neighbours, search: Search, out: Path, plan: dict[str, Any], steps: list[list[np.ndarray]], lookup: Any
) -> None:
    """Put the steps together; a run that is killed here does that again."""
    corpus = neighbours.corpus
    (out / META).unlink(missing_ok=True)
    write_joined(out / EDGES_FILE, [edges for edges, _ in steps])
    write_joined(out / WEIGHTS_FILE, [weights for _, weights in steps])
    edges, weights = _mapped(out, len(corpus), neighbours.k)
    # The sample is drawn by a keyed hash of the ids: the same documents whatever their order.
    ids = corpus.all_ids()
    size = min(neighbours.max_sampled or RECALL_SAMPLE, len(corpus))
    sample = np.sort(np.argsort([draw(identity, RECALL_SEED) for identity in ids], kind="stable")[:size])
    stored = np.array(edges[sample], dtype=np.int64)
    recall = search.recall(sample, np.where(stored == sample[:, None], -1, stored))
    with replacing(out / IDS_FILE) as temporary:
        lookup.build(ids, temporary, return_self=False)
    _write_parquet(out / "edges.parquet", ids, edges, weights)
    facts: GraphFacts = {
        "version": VERSION,
        "identity": content_hash("graph", plan),
        "corpus": corpus.identity,
        "documents": len(corpus),
        "k": neighbours.k,
        "edges": int((edges != np.arange(len(corpus), dtype=np.uint32)[:, None]).sum()),
        "recall": {"at": neighbours.k, "value": recall, "sample": size, "against": neighbours.truth},
        "statistics": statistics(edges, weights),
        "plan": plan,
        "first_stages": neighbours.first_stages,
    }
    write_manifest(out / FACTS, facts, [out / name for name in FILES])
    write_json(out / META, _meta(facts))


def _meta(facts: GraphFacts) -> dict[str, str | int]:
    meta = {"type": "corpus_graph", "format": "np_topk", "package_hint": "pyterrier-adaptive"}
    return {**meta, "doc_count": facts["documents"], "k": facts["k"]}


def _fault(folder: Path) -> str | None:
    """Return what is not as it was written, in words."""
    if problem := fault(folder / FACTS):
        return problem
    same = read_json(folder / META) == _meta(read_json(folder / FACTS))
    return None if same else f"{folder / META} was altered since it was written"


def _mapped(folder: Path, documents: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return edges and weights, memory-mapped."""
    edges = np.memmap(folder / EDGES_FILE, dtype="<u4", mode="r", shape=(documents, k))
    return edges, np.memmap(folder / WEIGHTS_FILE, dtype="<f2", mode="r", shape=(documents, k))


def statistics(edges: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """Return how often documents are neighbours (in-degree) and how near neighbours are, as quantiles.

    ``edges``: uint32, ``weights``: float16, shapes (n, k), padding as on disk.
    """
    indegree = _in_degrees(edges)
    self_rows = np.arange(len(edges), dtype=np.uint32)
    first, last = (
        np.where(edges[:, rank] == self_rows, np.nan, weights[:, rank].astype(np.float64)) for rank in (0, -1)
    )
    at = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0]
    names = [f"{int(share * 100)}%" for share in at]

    def quantiles(values: np.ndarray) -> dict[str, float]:
        values = values[~np.isnan(values)]
        if not len(values):
            return {}
        quantiles = np.quantile(values, at)
        return {name: round(float(value), 4) for name, value in zip(names, quantiles, strict=True)}

    return {
        "in_degree": quantiles(indegree.astype(np.float64)),
        "never_a_neighbour": int((indegree == 0).sum()),
        "rows_with_k_neighbours": int((edges[:, -1] != self_rows).sum()),
        "similarity_of_first": quantiles(first),
        f"similarity_of_{edges.shape[1]}th": quantiles(last),
    }


def _in_degrees(edges: np.ndarray) -> np.ndarray:
    """Return how often each document is a neighbour, int64, shape (n,)."""
    degrees = np.zeros(len(edges), dtype=np.int64)
    for start in range(0, len(edges), ROWS_A_GROUP):
        block = np.asarray(edges[start : start + ROWS_A_GROUP])
        real = block != np.arange(start, start + len(block), dtype=np.uint32)[:, None]
        degrees += np.bincount(block[real], minlength=len(edges))
    return degrees


def _write_parquet(target: Path, ids: list[str], edges: np.ndarray, weights: np.ndarray) -> None:
    names = pa.array(ids, pa.string())
    k = edges.shape[1]
    schema = EDGES.schema
    with replacing(target) as temporary, parquet_writer(temporary, schema) as file:
        step = max(1, ROWS_A_GROUP * 10 // k)
        for start in range(0, len(edges), step):
            block = np.asarray(edges[start : start + step]).astype(np.int64)
            self_rows = np.repeat(np.arange(start, start + len(block)), k)
            real = np.flatnonzero(block.ravel() != self_rows)
            rank = np.tile(np.arange(1, k + 1, dtype=np.int16), len(block))[real]
            weight = np.asarray(weights[start : start + step], dtype=np.float32).ravel()[real]
            ends = [names.take(pa.array(rows[real])) for rows in (self_rows, block.ravel())]
            table = pa.table([*ends, pa.array(rank), pa.array(weight)], schema=schema)
            file.write_table(table, row_group_size=len(table) or 1)
