"""``quit corpus``, ``quit index``, ``quit graph``: what the QA systems search and walk over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quit.commands.declaring import Group
from quit.commands.options import show, working
from quit.common.terminal import echo
from quit.qa.commands import options
from quit.qa.commands.options import load_settings
from quit.text.words import split_names

if TYPE_CHECKING:
    from quit.qa.corpora.graph import GraphFacts
    from quit.qa.indexes.built import BuiltCorpus, CorpusManifest
    from quit.qa.settings import QaSettings
    from quit.retrieval.protocols import FirstStage

corpus = Group("Corpora for the QA systems: documents, queries, relevance.")
index = Group("First stages over a corpus: BM25, sparse and dense encoders.")
graph = Group("Neighbourhood graphs of a corpus.")

OutOption = Annotated[Path, typer.Option("-o", help="Folder to write to.")]
EncoderOption = Annotated[
    str,
    typer.Option(
        "-e", help="`minilm`, `bm25`, a sentence-transformers model or folder, `sparse:NAME`, or (graphs) `late:NAME`."
    ),
]
CorpusArgument = Annotated[Path, typer.Argument(help="Folder of a corpus.")]
GraphArgument = Annotated[Path, typer.Argument(help="Folder of a graph.")]


@corpus.command("build")
def corpus_build(
    source: Annotated[list[str], typer.Option("-s")],
    out: OutOption,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    quiet: options.Quiet = False,
) -> None:
    """Merge sources into a corpus: documents, queries with their sub-questions, and which documents support them.

    What is up to date is not built again; a killed build resumes after its last whole step. Settings: `corpora.*`.

    Example: `quit corpus build --source musique:musique_ans.jsonl --source 2wiki:train.json --out C`

    Args:
        source: `musique:FILE`, `2wiki:FILE`, `quit:RELEASE`, `beir:FOLDER`, `jsonl:FILE`; repeat for several.
    """
    from quit.qa.corpora.build import build
    from quit.qa.corpora.sources import parse_corpus_source

    refs = [parse_corpus_source(text) for text in source]
    with working("corpus", quiet):
        built, new = build(refs, out, load_settings(profile, set_).corpora)
    _print_built(out, new, quiet, _corpus_lines(built.manifest))


@corpus.command("show")
def corpus_show(path: CorpusArgument, as_json: options.Json = False) -> None:
    """Show what a corpus holds: counts by source, query sets, licences, what was left out.

    Example: `quit corpus show C`
    """

    manifest = _open_corpus(path).manifest
    show(manifest, as_json, _corpus_lines(manifest))


@corpus.command("export")
def corpus_export(
    path: CorpusArgument,
    out: OutOption,
    formats: Annotated[str, typer.Option("--format", "-f")] = "beir",
    overwrite: bool = False,
) -> None:
    """Export a corpus for other tools, each format into its own folder, with a manifest of counts and licences.

    Example: `quit corpus export C --format beir,trec,pyserini --out exports`

    Args:
        formats: Names with commas between them: beir, trec, pyserini.
        overwrite: Replace an earlier export.
    """
    from quit.qa.corpora.export import export_corpus

    for manifest in export_corpus(_open_corpus(path), split_names(formats), out, overwrite=overwrite):
        echo(f"{out / manifest.format}: {len(manifest.files)} files")


@index.command("build")
def index_build(
    corpus: options.Corpus,
    out: OutOption,
    encoder: EncoderOption = "bm25",
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    quiet: options.Quiet = False,
) -> None:
    """Build a first stage over a corpus and keep it on disk. Settings: `first_stages.*`.

    Example: `quit index build --corpus C --encoder bm25 --out I`
    """
    from quit.qa.indexes.first_stage import build_first_stage

    stages = load_settings(profile, set_).first_stages
    with working("index", quiet):
        first_stage = build_first_stage(_open_corpus(corpus), encoder, out, stages)
    if not quiet:
        echo(f"{out}: {first_stage.identity}")


@index.command("evaluate")
def index_evaluate(
    corpus: options.Corpus,
    folders: list[Path],
    graph: Annotated[Path | None, typer.Option("-g")] = None,
    kind: options.QuestionKind = None,
    questions: options.QuestionLimit = None,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Measure first stages against the corpus's qrels: nDCG at 10, recall at 10 and 100, what hops add.

    Example: `quit index evaluate --corpus C I-bm25 I-minilm --graph G`

    Args:
        folders: Folders of indexes; several are also fused.
        graph: A graph: adds one and two hops.
    """
    from quit.qa.corpora.graph import NeighbourhoodGraph
    from quit.qa.corpora.reach import reach, reach_table
    from quit.retrieval.hybrid import FusedStage

    documents = _open_corpus(corpus)
    neighbour_graph = NeighbourhoodGraph.open(graph, documents) if graph else None
    stages = _first_stages(folders, documents, load_settings(profile, set_))
    if len(stages) > 1:
        stages[" + ".join(stages)] = FusedStage(list(stages.values()))
    rows = [
        row for name, stage in stages.items() for row in reach(documents, name, stage, neighbour_graph, kind, questions)
    ]
    show(rows, as_json, [reach_table(rows)])


@graph.command("build")
def graph_build(
    corpus: options.Corpus,
    out: OutOption,
    encoder: EncoderOption = "minilm",
    k: Annotated[int, typer.Option("-k", min=1)] = 100,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    quiet: options.Quiet = False,
) -> None:
    """Find each document's k nearest others and store them as PyTerrier's np_topk and as Parquet. Settings: `graph.*`.

    A killed build resumes at its last step; with a dense encoder a larger corpus costs only its new documents' vectors.

    Example: `quit graph build --corpus C --encoder minilm --k 100 --out G`

    Args:
        k: Neighbours per document.
    """
    from quit.qa.corpora.graph import build_graph

    settings = load_settings(profile, set_)
    documents = _open_corpus(corpus)
    with working("graph", quiet):
        built, new = build_graph(documents, encoder, k, out, settings.graph, settings.first_stages)
    _print_built(out, new, quiet, _graph_lines(built.facts))


@graph.command("import")
def graph_import(
    file: Path,
    corpus: options.Corpus,
    out: OutOption,
    encoder: Annotated[str, typer.Option("-e")] = "imported",
    quiet: options.Quiet = False,
) -> None:
    """Store the neighbours that another program found as a graph of a corpus. Ids are the corpus's, or those of its
    sources `jsonl` and `beir`; the graph says how many documents the corpus lacks.

    Example: `quit graph import gar_graph.json --corpus C --out G --encoder late:colbert-ir/colbertv2.0`

    Args:
        file: `.json` of {document: {neighbour: score}} or {document: [neighbour, ...]}, or a TREC run.
        encoder: What made it, as `quit graph build` names encoders.
    """
    from quit.qa.corpora.graph import import_graph

    documents = _open_corpus(corpus)
    with working("graph", quiet):
        built, new = import_graph(documents, file, encoder, out)
    _print_built(out, new, quiet, _graph_lines(built.facts))


@graph.command("show")
def graph_show(path: GraphArgument, as_json: options.Json = False) -> None:
    """Describe a graph: encoder, method, recall, degrees, similarities.

    Example: `quit graph show G`
    """
    from quit.qa.corpora.graph import NeighbourhoodGraph

    facts = NeighbourhoodGraph.open(path).facts
    show(facts, as_json, _graph_lines(facts))


def _open_corpus(folder: Path) -> BuiltCorpus:
    from quit.qa.indexes.built import BuiltCorpus

    return BuiltCorpus.open(folder)


def _first_stages(folders: list[Path], documents: BuiltCorpus, settings: QaSettings) -> dict[str, FirstStage]:
    """Return the first stages in some folders, by the folders' names; a second one of a name by its path."""
    from quit.qa.indexes.first_stage import open_first_stage

    stages: dict[str, FirstStage] = {}
    for folder in folders:
        name = str(folder) if folder.name in stages else folder.name
        stages[name] = open_first_stage(folder, documents, settings.first_stages)
    return stages


def _print_built(out: Path, new: bool, quiet: bool, lines: list[str]) -> None:
    if not quiet:
        for line in lines if new else [f"{out} is up to date: nothing to do.", *lines]:
            echo(line)


def _corpus_lines(manifest: CorpusManifest) -> list[str]:
    counts = manifest["counts"]
    lines = [f"{counts['documents']:,} documents of {counts['paragraphs']:,} paragraphs ({manifest['identity'][:12]})"]
    for source in manifest["sources"]:
        counts_of = source["counts"]
        lines.append(
            f"  {source['kind']} {source['file']}: {counts_of['records']:,} records, {counts_of['documents']:,} new "
            f"documents, {counts_of['questions']:,} questions, {counts_of['sub_questions']:,} sub-questions; licence: "
            f"{source['licence'] or 'not stated'}"
        )
        for name, words in (
            ("sub_questions_without_support", "sub-questions without a supporting document"),
            ("repeated_queries", "queries that came a second time"),
        ):
            if counts_of.get(name):
                lines.append(f"    {counts_of[name]:,} {words}")
        if counts_of["rejected"]:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts_of["rejected"].items())
            lines.append(f"    left out: {reasons} (rejects.parquet says which and why)")
    for name, sizes in manifest["datasets"].items():
        lines.append(f"  {name}: {sizes['queries']:,} queries, {sizes['qrels']:,} qrels")
    return lines


def _graph_lines(facts: GraphFacts) -> list[str]:
    plan, recall, statistics = facts["plan"], facts["recall"], facts["statistics"]
    if "file" in plan:
        quality = f"{plan['unknown_documents']:,} of the {plan['file_documents']:,} documents of {plan['file']} unknown"
    else:
        quality = f"recall@{recall['at']} {recall['value']:.4f} on {recall['sample']:,} documents against "
        quality += recall["against"]
    return [
        f"{facts['documents']:,} documents, {facts['k']} neighbours each at most, {facts['edges']:,} edges "
        f"({facts['identity'][:12]})",
        f"  encoder {plan['encoder']}, method {plan['method']}; {quality}",
        f"  in-degree: median {statistics['in_degree'].get('50%', 0):g}, highest "
        f"{statistics['in_degree'].get('100%', 0):g}, {statistics['never_a_neighbour']:,} documents are in no "
        "list",
    ]
