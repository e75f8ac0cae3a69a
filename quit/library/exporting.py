"""An export of a workspace or a release, and its publication."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quit.common.files import file_states
from quit.common.progress import note
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.errors import MissingDependency, SettingsError
from quit.models.protocols import Encoder
from quit.settings import Settings, load_card
from quit.settings.card import Card

if TYPE_CHECKING:
    from quit.dataset.dataset import Dataset
    from quit.export.push import Target
    from quit.library.results import ExportedFormat, ExportResult, Publication


def export(
    opened: Workspace | Release,
    formats: Sequence[str] | None,
    out: Path,
    *,
    card: Path | None = None,
    target: Target | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> ExportResult:
    """Write labelled tables in formats (None: :func:`quit.export.default_formats`), and publish them where there is a
    ``target``.

    ``card``: instead of that of the build's profile or of the release. ``options``: other fields of
    :class:`quit.export.formats.Options`. What cannot be is refused before the tables are read. Raises as
    :meth:`quit.library.tables.Tables.export`.
    """
    from quit.export import default_formats
    from quit.export import export as export_dataset
    from quit.export.formats import Options, card_for, check_request
    from quit.export.licences import licence_header

    named_card = load_card(card) if card else None
    if formats is not None:
        check_request(formats, Options(card=named_card or Card(), **options))
    dataset, settings, own_card = _labelled(opened)
    names = default_formats(dataset) if formats is None else formats
    about = named_card or card_for(names, own_card)
    manifests = export_dataset(
        dataset,
        names,
        out,
        overwrite=overwrite,
        renew=target is not None,
        encoder=lambda: _encoder(settings),
        card=about.model_copy(update={"repository": target.repository}) if target else about,
        **options,
    )
    result: ExportResult = {"out": str(out), "formats": [_written(out, each.format) for each in manifests]}
    if target:
        licence = licence_header(dataset.provenance, about)["license"]
        result["published"] = _published(out / "huggingface", target, licence, dry_run)
    return result


def target_of(
    opened: Workspace | Release, repository: str | None, formats: Sequence[str] | None, *, public: bool, dry_run: bool
) -> Target | None:
    """Return where an export is published; None where it is not.

    Raises ``SettingsError`` for ``public`` or ``dry_run`` without a repository, and for a repository without the format
    huggingface or, unless this is a ``dry_run``, without a token.
    """
    from quit.export.push import Target, token

    if repository is None:
        if public or dry_run:
            raise SettingsError(f"{'public' if public else 'dry-run'} goes with push: name ORG/NAME.")
        return None
    if "huggingface" not in (formats or ["huggingface"]):
        raise SettingsError("push publishes the format huggingface: name that format too.")
    target = Target(repository, public, opened.name if isinstance(opened, Release) else "")
    if not dry_run:
        token()
    return target


def _published(folder: Path, target: Target, licence: str | list[str], dry_run: bool) -> Publication:
    """Publish an export, or list its files; return what was done."""
    from quit.export.push import published_files, push

    facts: Publication = {
        "repository": target.repository,
        "visibility": "public" if target.public else "private",
        "tag": target.tag or None,
        "dry_run": dry_run,
        "files": [{"path": name, "bytes": size} for name, size in published_files(folder)],
        "licence": licence,
    }
    if not dry_run:
        published = push(folder, target)
        facts["url"], facts["visibility"] = published.url, "public" if published.public else "private"
    return facts


class _Labelled(NamedTuple):
    """Labelled tables, the settings of their encoder, and their own card."""

    dataset: Dataset
    settings: Settings
    card: Card


def _labelled(opened: Workspace | Release) -> _Labelled:
    from quit.dataset.dataset import Dataset
    from quit.dataset.workspace import dataset_of
    from quit.engine.planning import last_build

    if isinstance(opened, Release):
        return _Labelled(Dataset.of_release(opened.path), Settings(), opened.card)
    pipeline = last_build(opened)
    return _Labelled(dataset_of(pipeline), pipeline.settings, pipeline.settings.card)


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
