"""The job of an export: the method ``export`` of :class:`quit.library.tables.Tables`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from quit.common.files import file_states
from quit.common.progress import note
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.errors import MissingDependency, SettingsError
from quit.library.arguments import Format, as_list
from quit.models.protocols import Encoder
from quit.settings import Settings, load_card
from quit.settings.card import Card

if TYPE_CHECKING:
    from quit.dataset.dataset import Dataset
    from quit.library.results import ExportedFormat, ExportResult, Publication


class Opened(Protocol):
    """:class:`quit.library.tables.Tables`, of which this is a method."""

    _opened: Workspace | Release


def export(
    tables: Opened,
    formats: Format | Sequence[Format] | None = None,
    out: str | Path = "exports",
    *,
    card: str | Path | None = None,
    benchmark: str | Path | None = None,
    paper_keys: bool = False,
    evaluation: bool = False,
    push: str | None = None,
    public: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
    positives: int = 10,
    negatives: int = 10,
    negative_kind: str = "other",
    seed: str = "export",
    progress: bool = True,
) -> ExportResult:
    """Write the labelled dataset in formats that other tools read, and publish it.

    Args:
        formats: One format, such as ``"huggingface"``, or several; a wrong name's error lists them all. If not
            given: ``huggingface``, and ``release-json`` where it can have the passages.
        out: Folder to write into; one subfolder per format.
        card: TOML file with a block ``[card]``; that of the build's profile or of the release if not given.
        benchmark: Folder of ``quit benchmark run``, for baselines in the card.
        paper_keys: The paper's names of readers and subsets, and ids in three parts (release-json, paper-index);
            the question's id as title (tevatron).
        evaluation: Write tasks for Inspect, lm-evaluation-harness and MTEB beside the data (huggingface).
        push: ``ORG/NAME``: publish huggingface on the hub, with the token in ``HF_TOKEN``; private. The name
            of a release becomes a tag there.
        public: Let everyone see what is pushed.
        dry_run: List what would be pushed; needs no token.
        overwrite: Replace an earlier export.
        positives: Passages of label 2 per question, at most (tevatron, colbert, monot5, as the next three).
        negatives: Negative passages per question, at most.
        negative_kind: ``other`` (label 2 of other questions: the paper's), or ``any`` (of theirs).
        seed: Key of the choice of positives and negatives, and of the passages of ``evaluation``.
        progress: Show how far it is.

    Returns:
        A dictionary of the type ``quit.ExportResult``: ``formats``, and with ``push`` also ``published``.

    Raises:
        InputError: A format needs answers or labels that are missing.
        SettingsError: A format or option is wrong, or the folder holds another export.
        ServerError: The hub does not answer or refuses.
        WorkspaceError: The build is not finished, or the disk refuses.
    """
    from quit.export import FineTuning, default_formats
    from quit.export import export as export_dataset
    from quit.export.licences import licence_header
    from quit.export.push import Target, publish, token
    from quit.library.progress import working

    choices = FineTuning(positives, negatives, negative_kind, seed)
    names: list[str] | None = None if formats is None else as_list(formats)
    if push is None and (public or dry_run):
        raise SettingsError(f"{'public' if public else 'dry-run'} goes with push: name ORG/NAME.")
    if push is not None and "huggingface" not in (names or ["huggingface"]):
        raise SettingsError("push publishes the format huggingface: name that format too.")
    tag = tables._opened.name if isinstance(tables._opened, Release) else ""
    target = Target(push, public, tag) if push is not None else None
    if target and not dry_run:
        token()
    with working("export", not progress):
        labelled = _labelled(tables._opened, Path(card) if card else None)
        names = default_formats(labelled.dataset) if names is None else names
        about = labelled.card if card or {"huggingface", "mteb"} & {*names} else Card()  # the profile's: none reads it
        manifests = export_dataset(
            labelled.dataset,
            names,
            Path(out),
            overwrite=overwrite,
            renew=target is not None,
            paper_keys=paper_keys,
            encoder=_encoder(labelled.settings) if "huggingface" in names else None,
            fine_tuning=choices,
            card=about.model_copy(update={"repository": target.repository}) if target else about,
            benchmark=Path(benchmark) if benchmark else None,
            evaluation=evaluation,
        )
    result: ExportResult = {"out": str(out), "formats": [_written(Path(out), each.format) for each in manifests]}
    if target:
        published = publish(Path(out, "huggingface"), target, dry_run)
        published["licence"] = licence_header(labelled.dataset.provenance, about)["license"]
        result["published"] = cast("Publication", published)
    return result


class _Labelled(NamedTuple):
    """Labelled tables, the settings of their models, and the card's."""

    dataset: Dataset
    settings: Settings
    card: Card


def _labelled(opened: Workspace | Release, card: Path | None) -> _Labelled:
    from quit.dataset.dataset import Dataset
    from quit.dataset.workspace import dataset_of
    from quit.engine.planning import last_build

    about = load_card(card) if card else None
    if isinstance(opened, Release):
        return _Labelled(Dataset.of_release(opened.path), Settings(), about or opened.card)
    pipeline = last_build(opened)
    return _Labelled(dataset_of(pipeline), pipeline.settings, about or pipeline.settings.card)


def _encoder(settings: Settings) -> Encoder | None:
    """Return the profile's encoder. None, with a note, without the extra ``models``."""
    from quit.models.factory import Models

    try:
        return Models(settings).encoder
    except MissingDependency as error:
        note(f"The card does not say how similar questions and passages are. {error}", loud=True)
        return None


def _written(out: Path, name: str) -> ExportedFormat:
    sizes = [state.st_size for state in file_states(out / name)]
    return {"format": name, "files": len(sizes), "bytes": sum(sizes)}
