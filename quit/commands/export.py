"""``quit export``: the labelled dataset as files for other tools, and on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from quit.commands import options
from quit.commands.options import complete_formats, show
from quit.text.words import split_names

if TYPE_CHECKING:
    from quit.library.arguments import Format
    from quit.library.results import ExportResult


def export(
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    format_: Annotated[str | None, typer.Option("-f", autocompletion=complete_formats)] = None,
    out: Annotated[Path, typer.Option("-o")] = Path("exports"),
    card: options.Card = None,
    benchmark: Path | None = None,
    evaluation: Annotated[bool, typer.Option("--eval")] = False,
    push: Annotated[str | None, typer.Option(metavar="ORG/NAME")] = None,
    public: bool = False,
    dry_run: bool = False,
    paper_keys: bool = False,
    positives: int = 10,
    negatives: int = 10,
    negative_kind: str = "other",
    seed: str = "export",
    overwrite: bool = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write the labelled dataset in formats that other tools read, and publish it.

    Formats: huggingface, release-json, paper-index, csv, beir, trec, pyserini, mteb, tevatron, colbert, monot5.

    Examples: `quit export --format huggingface,release-json --out DIR`, `quit export -w workspace/releases/v1
    --out DIR --push ORG/NAME --dry-run`

    Args:
        format_: Formats, separated by commas. If not given: huggingface, and release-json where it can have the
            passages.
        out: Folder to write into; one subfolder per format.
        benchmark: huggingface: folder of `quit benchmark run`, for baselines in the card.
        evaluation: huggingface: write tasks for Inspect, lm-evaluation-harness and MTEB beside the data.
        push: Publish huggingface on the hub, with the token in HF_TOKEN; private.
        public: --push: let everyone see it.
        dry_run: --push: list what would be published; needs no token.
        paper_keys: release-json, paper-index: the paper's names of readers and subsets, ids in three parts; tevatron:
            the question's id as title.
        positives: tevatron, colbert, monot5: passages of label 2 per question, at most.
        negatives: tevatron, colbert, monot5: negative passages per question, at most.
        negative_kind: other (label 2 of other questions: the paper's), or any (of theirs).
        seed: Key of the choice of positives and negatives, and of the passages of --eval.
        overwrite: Replace an earlier export.
    """
    from quit.library.tables import open_tables

    facts = open_tables(workspace).export(
        None if format_ is None else cast("list[Format]", split_names(format_)),  # checked there
        out,
        card=card,
        benchmark=benchmark,
        paper_keys=paper_keys,
        evaluation=evaluation,
        push=push,
        public=public,
        dry_run=dry_run,
        overwrite=overwrite,
        progress=not quiet,
        positives=positives,
        negatives=negatives,
        negative_kind=negative_kind,
        seed=seed,
    )
    show(facts, as_json, [] if quiet else _lines(out, facts, public))


def _lines(out: Path, facts: ExportResult, public: bool) -> list[str]:
    lines = [f"{out / row['format']}: {row['files']} files, {row['bytes'] / 1e6:,.1f} MB" for row in facts["formats"]]
    if push := facts.get("published"):
        files, tag = push["files"], f", tag {push['tag']}" if push["tag"] else ""
        to = f"{push['repository']} ({push['visibility']}){tag}"
        if push["dry_run"]:
            lines += [f"{file['bytes']:>13,}  {file['path']}" for file in files]
            total = sum(file["bytes"] for file in files)
            lines.append(f"{total:>13,}  bytes in {len(files)} files would go to {to}")
        else:
            lines.append(f"{push['url']} ({push['visibility']}): {len(files)} files{tag}")
            if public and push["visibility"] == "private":
                lines.append(
                    "It existed and stays private. To make it public: Settings, Change dataset visibility there."
                )
        if "unknown" in push["licence"]:
            lines.append("The licence is unknown: set licence in a [card] block (--card FILE, or the profile).")
    return lines
