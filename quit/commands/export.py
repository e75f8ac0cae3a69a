"""``quit export``: the labelled dataset as files for other tools, and on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quit.commands.options import (
    JsonOption,
    QuietOption,
    WorkspaceOption,
    complete_formats,
    local_folder,
    open_workspace,
    print_json,
    release_place,
    split_names,
)
from quit.common.terminal import echo
from quit.errors import SettingsError

if TYPE_CHECKING:
    from quit.export.push import Target


def export(
    workspace: WorkspaceOption = Path("workspace"),
    release_: Annotated[
        Path | None,
        typer.Option(
            "--release", **release_place, help="Folder or URL of a release, instead of the workspace's tables."
        ),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", "-f", help="Formats, separated by commas.", autocompletion=complete_formats)
    ] = "huggingface,release-json",
    out: Annotated[
        Path, typer.Option("--out", "-o", **local_folder, help="Folder to write into; one subfolder a format.")
    ] = Path("exports"),
    card: Annotated[
        Path | None,
        typer.Option(
            "--card",
            help="TOML file with a block [card]: name, licence, authors ... If not given: that of the build's profile, "
            "or of the release.",
        ),
    ] = None,
    benchmark: Annotated[
        Path | None,
        typer.Option("--benchmark", help="huggingface: folder of `quit benchmark run`, for baselines in the card."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            "--push", metavar="ORG/NAME", help="Publish huggingface on the hub, with the token in HF_TOKEN; private."
        ),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="--push: let everyone see it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="--push: list what would be published; needs no token.")
    ] = False,
    paper_keys: Annotated[
        bool, typer.Option("--paper-keys", help="release-json, paper-index: put answers under the paper's six names.")
    ] = False,
    positives: Annotated[
        int, typer.Option("--positives", help="tevatron, colbert, monot5: passages of label 2 a question, at most.")
    ] = 10,
    negatives: Annotated[
        int, typer.Option("--negatives", help="tevatron, colbert, monot5: negative passages a question, at most.")
    ] = 10,
    negative_kind: Annotated[
        str,
        typer.Option(
            "--negative-kind",
            help="other (label 2 of other questions: the paper's), any (of theirs), partial (label 1) or hard (mined).",
        ),
    ] = "other",
    miner: Annotated[str, typer.Option("--miner", help="What finds hard negatives: bm25 or encoder.")] = "bm25",
    seed: Annotated[str, typer.Option("--seed", help="Key of the choice of positives and negatives.")] = "export",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the labelled dataset in formats that other tools read, and publish it.

    Formats: huggingface, release-json, paper-index, csv, squad, beir, trec, pyserini, mteb, tevatron, colbert, monot5,
    hinteval.

    Examples: `quit export -w W --format huggingface,release-json --out DIR`, `quit export --release W/releases/v1 --out
    DIR --push ORG/NAME --dry-run`
    """
    from quit.commands.console import print_exports
    from quit.commands.progress import working
    from quit.export import FineTuning
    from quit.export import export as export_tables
    from quit.models.factory import Models

    chosen = FineTuning(positives, negatives, negative_kind, miner, seed)
    formats = split_names(format_)
    target = _target(push, public, dry_run, formats)
    encoding = "huggingface" in formats or (negative_kind, miner) == ("hard", "encoder")
    with working("export", quiet):
        tables, settings, about = _labelled(workspace, release_, card)
        exported = export_tables(
            tables,
            formats,
            out,
            overwrite=overwrite,
            renew=target is not None,
            paper_keys=paper_keys,
            encoder=Models(settings).encoder if encoding else None,
            fine_tuning=chosen,
            card=about.model_copy(update={"repository": target.repository}) if target else about,
            benchmark=benchmark,
        )
    if not as_json and not quiet:
        print_exports(out, exported)
    published = _published(out / "huggingface", target, dry_run, quiet or as_json) if target else None
    if as_json:
        formats_of = [{"format": manifest.format, "files": len(manifest.files)} for manifest in exported]
        facts = {"out": str(out), "formats": formats_of}
        print_json({**facts, "published": published} if published else facts)


def _target(push: str | None, public: bool, dry_run: bool, formats: list[str]) -> Target | None:
    """Return where to publish; what would stop it shows before anything is written."""
    from quit.export.push import Target, token

    if push is None:
        if public or dry_run:
            raise SettingsError(f"{'--public' if public else '--dry-run'} goes with --push ORG/NAME.")
        return None
    if "huggingface" not in formats:
        raise SettingsError("--push publishes the format huggingface: name it in --format.")
    target = Target(push, public)
    if not dry_run:
        token()
    return target


def _published(folder: Path, target: Target, dry_run: bool, quiet: bool) -> dict[str, Any]:
    """Publish an export, or list its files; return what was done."""
    from quit.export.push import published_files, push

    seen = "public" if target.public else "private"
    files = published_files(folder)
    facts = {"repository": target.repository, "visibility": seen, "dry_run": dry_run}
    if dry_run:
        lines = [f"{size:>13,}  {name}" for name, size in files]
        total = sum(size for _, size in files)
        lines.append(f"{total:>13,}  bytes in {len(files)} files would go to {target.repository} ({seen})")
    else:
        published = push(folder, target)
        seen = "public" if published.public else "private"
        facts |= {"url": published.url, "visibility": seen}
        lines = [f"{published.url} ({seen}): {len(files)} files"]
        if target.public and not published.public:
            lines.append("It existed and stays private. To make it public: Settings, Change dataset visibility there.")
    if not quiet:
        echo("\n".join(lines))
    return {**facts, "files": [{"path": name, "bytes": size} for name, size in files]}


def _labelled(workspace: Path, release: Path | None, card: Path | None) -> tuple[Any, Any, Any]:
    """Return the labelled tables of a release, or of a workspace, the settings of their models, and the card's."""
    from quit.dataset.release_tables import card_of_release, export_tables_of_release
    from quit.dataset.workspace import export_tables_of
    from quit.engine.planning import last_build
    from quit.settings import Settings, load_card

    given = load_card(card) if card else None
    if release is not None:
        return export_tables_of_release(release), Settings(), given or card_of_release(release)
    opened = open_workspace(workspace)
    pipeline = last_build(opened)
    return export_tables_of(opened, pipeline), pipeline.settings, given or pipeline.settings.card
