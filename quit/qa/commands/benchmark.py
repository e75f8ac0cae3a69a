"""``quit benchmark``: retrievers, rerankers and readers over a release; fine-tuning of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.declaring import Group
from quit.commands.options import show, working
from quit.common.terminal import echo
from quit.errors import SettingsError
from quit.qa.commands import options
from quit.qa.commands.options import load_settings, settings_for
from quit.render.table import Table
from quit.text.words import split_names

app = Group("Run QA systems over a release, and fine-tune them.")

ReleaseOption = Annotated[Path, typer.Option("-r", help="Folder of a release, such as workspace/releases/v1.")]
OutOption = Annotated[Path, typer.Option("-o", help="Folder of the results; finished work in it is not done again.")]
SplitOption = Annotated[str, typer.Option(help="Questions: train, dev, test or all. The corpus is always whole.")]
RetrieverOption = Annotated[
    list[str] | None,
    typer.Option(help="bm25, minilm, late, dense:MODEL, late:MODEL or MODULE:CLASS. Repeat for several."),
]
RerankerOption = Annotated[
    list[str] | None,
    typer.Option(
        help="late, cross-encoder:MODEL, monot5:MODEL, rankt5:MODEL, upr:MODEL, listwise:NAME or MODULE:CLASS. Repeat "
        "for several."
    ),
]
ReaderOption = Annotated[
    list[str] | None, typer.Option(help="A reader of the profile, or MODULE:CLASS. Repeat for several.")
]
QuietOption = Annotated[bool, typer.Option("-q", help="Print nothing but the table and errors.")]


@app.command()
def run(
    release: ReleaseOption,
    out: OutOption = Path("benchmark"),
    split: SplitOption = "test",
    retriever: RetrieverOption = None,
    reranker: RerankerOption = None,
    reader: ReaderOption = None,
    corpus: list[Path] | None = None,
    bounds: bool = True,
    profile: options.Profile = None,
    set_: options.Set = None,
    quiet: QuietOption = False,
    as_json: options.Json = False,
) -> None:
    """Retrieve, rerank and read over a release; write tables, TREC run files and a leaderboard page.

    Example: `quit benchmark run --release W/releases/v1 --retriever bm25 --retriever minilm --reranker late --reader
    minilm-names`

    Args:
        corpus: Corpus (of quit corpus build, or JSONL) to benchmark beside the release, its passages relabelled by
            labelers and judge. Repeat for several.
        bounds: Oracle retriever, oracle reranker and Optimal as rows too.
    """
    from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark

    systems = (tuple(retriever or ("bm25",)), tuple(reranker or ()), tuple(reader or ()))
    request = BenchmarkRequest(release, split, *systems, tuple(corpus or ()), bounds)
    with working("benchmark", quiet or as_json):
        outcome = run_benchmark(request, settings_for(release, profile, set_), out)
    _print({"results": outcome.results.to_pylist(), "seconds": outcome.seconds}, out, as_json)


@app.command()
def finetune(
    release: ReleaseOption,
    kind: str = "bi-encoder",
    base: str = "minilm",
    positives: list[str] | None = None,
    out: OutOption = Path("finetuned"),
    split: SplitOption = "test",
    retriever: list[str] | None = None,
    profile: options.Profile = None,
    set_: options.Set = None,
    quiet: QuietOption = False,
    as_json: options.Json = False,
) -> None:
    """Fine-tune a model on the train split with 1 to 200 positives per question; benchmark each beside its base.

    Example: `quit benchmark finetune --release W/releases/v1 --kind bi-encoder --positives 1 --positives 10 --set
    benchmark.granularity=subset`

    Args:
        kind: bi-encoder, two-tower (DPR), multi-vector (ColBERT), cross-encoder or monot5.
        base: Model to start from: minilm, a folder or a hub name; two-tower: also QUESTIONS,PASSAGES.
        positives: Positives (and negatives) a question, 1 to 200; several with commas. N:EPOCHS: with other epochs than
            finetune.epochs, as 1:10,5:5,50.
        retriever: Whose passages cross-encoders and MonoT5 rerank, beside the oracle's. Repeat for several.
    """
    from quit.qa.benchmark.finetune import TuningRequest, run_finetune

    numbers, epochs = _positives(positives or ["1,5,10"])
    request = TuningRequest(release, kind, base, numbers, split, tuple(retriever or ()), epochs)
    with working("finetune", quiet or as_json):
        outcome, tuned = run_finetune(request, settings_for(release, profile, set_), out)
    _print({"results": outcome.results.to_pylist(), "seconds": outcome.seconds}, out, as_json)
    if not as_json:
        for encoder in tuned:
            echo(
                f"{encoder.folder}: {encoder.positives} positives per question, {encoder.examples} examples, "
                f"{encoder.seconds:.0f} s"
            )


def _positives(texts: list[str]) -> tuple[tuple[int, ...], dict[int, float]]:
    """Return the numbers of positives in ``1:10,5``, and the epochs of those that have some."""
    parts = [part.partition(":") for text in texts for part in split_names(text)]
    try:
        numbers = tuple(int(number) for number, _, _ in parts)
        epochs = {int(number): float(count) for number, colon, count in parts if colon}
        if not 0 < len({*numbers}) == len(numbers) or any(not 0 < count < math.inf for count in epochs.values()):
            raise ValueError
        return numbers, epochs
    except ValueError:
        message = f"--positives {' '.join(texts)}: write numbers, each once, or N:EPOCHS, as 1:10,5:5,50."
        raise SettingsError(message) from None


@app.command()
def grid(
    release: ReleaseOption,
    reader: ReaderOption = None,
    out: OutOption = Path("grid"),
    split: SplitOption = "dev",
    retriever: RetrieverOption = None,
    reranker: RerankerOption = None,
    profile: options.Profile = None,
    set_: options.Set = None,
    quiet: QuietOption = False,
    as_json: options.Json = False,
) -> None:
    """Try weights alpha and beta of Union_freq (benchmark.grid): EM for each, over all systems, readers and k above 1.

    Example: `quit benchmark grid --release W/releases/v1 --retriever bm25 --reader minilm-names`
    """
    from quit.qa.benchmark.benchmark import BenchmarkRequest
    from quit.qa.benchmark.grid import means, run_grid

    systems = (tuple(retriever or ("bm25",)), tuple(reranker or ()), tuple(reader or ()))
    request = BenchmarkRequest(release, split, *systems, bounds=False)
    with working("grid", quiet or as_json):
        table = run_grid(request, settings_for(release, profile, set_), out)
    best_first = means(table)
    lines = [tuple(f"{value:.2f}" for value in (row["alpha"], row["beta"], 100 * row["EM"])) for row in best_first]
    means_table = Table("", ("alpha", "beta", "EM"), lines)
    show({"means": best_first, "rows": table.to_pylist()}, as_json, [means_table, str(out / "grid.parquet")])


@app.command("list")
def list_(as_json: options.Json = False, profile: options.NamedProfile = "embedded") -> None:
    """List the retrievers, rerankers and readers that have names, and where they come from.

    Example: `quit benchmark list`
    """
    from quit.qa.benchmark.plugins import OURS

    systems = {f"{kind}s": dict(names) for kind, names in OURS.items()}
    systems["readers"] |= {reader.name: f"profile {profile}" for reader in load_settings(profile, None).readers}
    rows = [(kind, name, origin) for kind, names in systems.items() for name, origin in names.items()]
    show(systems, as_json, [Table("", ("kind", "name", "origin"), rows, text=(1, 2))])


def _print(facts: dict[str, Any], out: Path, as_json: bool) -> None:
    show(facts, as_json, [_table(facts["results"]), str(out / "leaderboard.html")])


def _table(rows: list[dict[str, Any]]) -> Table:
    from quit.evaluate.metrics import READING
    from quit.export.baselines import with_largest_k
    from quit.qa.benchmark.leaderboard import as_text

    ranking = ("Hit@1", "Hit@10", "Recall@50", "MRR@100", "nDCG@10", "nDCG(exp)@10", "Hit(rel=2)@1")
    metrics = (*ranking, *READING)
    systems: dict[tuple, dict[str, float]] = {}
    for row in with_largest_k(rows):  # the page has every k
        key = (row["corpus"], row["retriever"], row["reranker"], row["reader"], row["strategy"], row["k"] or "")
        systems.setdefault(key, {})[row["metric"]] = row["value"]
    scored = dict.fromkeys(name for scores in systems.values() for name in scores)
    columns = [name for name in metrics if name in scored] or [*scored][:6]
    table_rows = [
        (*map(as_text, key), *(f"{100 * scores[name]:.2f}" if name in scores else "–" for name in columns))
        for key, scores in systems.items()
    ]
    heads = ("corpus", "retriever", "reranker", "reader", "context", "k", *columns)
    return Table("", heads, table_rows, text=(1, 2, 3, 4))
