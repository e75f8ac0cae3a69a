"""Publish a Hugging Face export on the hub, or on the server that ``HF_ENDPOINT`` names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from quit.common.endpoints import secret_of
from quit.common.files import refuse_links
from quit.errors import QuitError, ServerError, SettingsError
from quit.export import evaluation
from quit.export.files import MADE_BY, MANIFEST, Manifest, read_manifest, verify
from quit.export.huggingface import CONFIGS
from quit.settings.card import Card
from quit.text.secrets import shown

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TOKEN = "HF_TOKEN"
_LARGEST = 1 << 24
"""Bytes at most of a manifest that is read from the hub."""
_REFUSED = {
    401: f"it refused the token in {TOKEN}. Make one with write access (on the hub: Settings, Access Tokens)",
    403: f"the token in {TOKEN} may not write there. Use one with write access to that account or organisation",
    404: "there is no such account or organisation, or the token may not see it",
    412: "another push came in between. Run it again",
}


@dataclass(frozen=True, slots=True)
class Published:
    """A dataset on the hub: its address, and whether everyone may see it."""

    url: str
    public: bool


@dataclass(frozen=True, slots=True)
class Target:
    """Where to publish: ``repository`` is ``ORG/NAME``; ``public``: whether everyone may see it; ``tag``: name of the
    release, which becomes a tag there ("": none).

    Raises ``SettingsError`` for a repository without owner and name.
    """

    repository: str
    public: bool = False
    tag: str = ""

    def __post_init__(self) -> None:
        try:
            Card(repository=self.repository)
        except ValidationError:
            raise SettingsError(
                f"Repository {self.repository!r}: write ORG/NAME, each of letters, digits, dots, dashes, underscores."
            ) from None


def token() -> str:
    """Return the token of the environment. Raises ``SettingsError`` where there is none, or one that cannot be sent."""
    value = secret_of(TOKEN)
    if not value:
        raise SettingsError(
            f"{TOKEN} is not set. Export a token with write access (on the hub: Settings, Access Tokens). "
            "A dry run needs none."
        )
    return value


def published_files(folder: Path) -> list[tuple[str, int]]:
    """Return the files that would be published, with their sizes in bytes, after comparing their checksums.

    Raises ``InputError`` for a folder that is no whole export.
    """
    refuse_links(folder, "files outside the export would be published")
    entries = [(entry.path, entry.bytes) for entry in verify(folder).files]
    return sorted([*entries, (MANIFEST, (folder / MANIFEST).stat().st_size)])


def push(folder: Path, target: Target) -> Published:
    """Upload an export. The repository is made where there is none, private unless the target is public; one that
    exists stays as visible as it is. Where it has no files, the manifest goes first: a run after one that was cut off
    knows by it whose files are there. Files of an earlier upload that this one lacks are deleted. The last commit gets
    the target's tag; a tag of the same data stays where it is.

    Raises ``SettingsError`` for a token that is missing or refused, for a repository that is public although the
    target is not, for one with files but no manifest of ours, and for a tag of other data; ``ServerError`` where the
    server does not answer or has a fault; ``InputError`` as :func:`published_files`.
    """
    from huggingface_hub import HfApi

    refuse_links(folder, "files outside the export would be published")
    manifest = verify(folder)
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token())
    with _refusals(api.endpoint, target, "What was there before is unchanged"):
        url = api.create_repo(target.repository, repo_type="dataset", private=not target.public, exist_ok=True)
        there = api.dataset_info(target.repository)
        public, head = not there.private, there.sha
        if public and not target.public:
            raise SettingsError(
                f"{target.repository} exists and is public: pass public (--public) to publish there, or name another."
            )
        is_new = _manifest_there(api, target.repository) is None
        has_tag = not target.tag or _is_tagged(api, target, manifest)
    without_tag = ", without the tag" if target.tag else ""
    with _refusals(api.endpoint, target, f"The new files may be there{without_tag}"):
        if is_new:
            head = api.upload_file(
                repo_id=target.repository,
                repo_type="dataset",
                path_or_fileobj=folder / MANIFEST,
                path_in_repo=MANIFEST,
                commit_message="Manifest of the dataset by QUIT builder",
            ).oid
        commit = api.upload_folder(
            repo_id=target.repository,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=[MANIFEST, *(entry.path for entry in manifest.files)],
            delete_patterns=[*(f"{config}/*.parquet" for config in CONFIGS), *evaluation.FILES],
            commit_message=f"Dataset by QUIT builder{target.tag and f', release {target.tag}'}",
            parent_commit=head,  # another push in between is refused: its files would stay
        )
        if not has_tag:
            api.create_tag(target.repository, tag=target.tag, revision=commit.oid, repo_type="dataset")
    return Published(str(url), public)


def _manifest_there(api: HfApi, repository: str, revision: str = "main") -> Manifest | None:
    """Return the manifest of a repository, None for one without files. Raises ``SettingsError`` for one that has files
    and no manifest of an export of ours."""
    tree = api.list_repo_tree(repository, revision=revision, repo_type="dataset")
    entries = {entry.path: entry for entry in tree}
    if not entries.keys() - {".gitattributes"}:
        return None
    if MANIFEST in entries and getattr(entries[MANIFEST], "size", _LARGEST) < _LARGEST:
        with tempfile.TemporaryDirectory() as folder:
            api.hf_hub_download(repository, MANIFEST, revision=revision, repo_type="dataset", local_dir=folder)
            if (manifest := read_manifest(Path(folder))) is not None:
                return manifest
    raise SettingsError(
        f"{repository} exists and has files, but no {MANIFEST} of {MADE_BY}: they would be overwritten or deleted. "
        "Choose another name, or delete the files there."
    )


def _is_tagged(api: HfApi, target: Target, manifest: Manifest) -> bool:
    """Whether the tag is there, with our Parquet files (the card may differ). Raises ``SettingsError`` where it has
    others."""
    if target.tag not in {ref.name for ref in api.list_repo_refs(target.repository, repo_type="dataset").tags}:
        return False
    theirs = _manifest_there(api, target.repository, target.tag)
    if theirs is None or _data(theirs) != _data(manifest):
        raise SettingsError(
            f"{target.repository} has a tag {target.tag} of other data, so nothing was published. Create the release "
            "under another name, or delete the tag: "
            f"hf repos tag delete {target.repository} {target.tag} --repo-type dataset"
        )
    return True


def _data(manifest: Manifest) -> set[tuple[str, str]]:
    """Return the data files with their checksums; ``--eval`` selects from them, and may come later."""
    entries = [entry for entry in manifest.files if not entry.path.startswith(f"{evaluation.CONFIG}/")]
    return {(entry.path, entry.sha256) for entry in entries if entry.path.endswith(".parquet")}


@contextmanager
def _refusals(endpoint: str, target: Target, outcome: str) -> Iterator[None]:
    """Turn what the hub's client raises into errors that say what to do; ``outcome``: what is there then."""
    from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        refusal = f"{endpoint} did not take {target.repository} ({status})"
        if status in _REFUSED:
            raise SettingsError(f"{refusal}: {_REFUSED[status]}.") from None
        kind = ServerError if status == 429 or status >= 500 else QuitError
        raise kind(f"{refusal}: {shown(str(error))}. {outcome}; run it again.") from None
    except OfflineModeIsEnabled:
        raise SettingsError("HF_HUB_OFFLINE is set, so nothing can be published: unset it.") from None
    except JSONDecodeError:
        raise SettingsError(
            f"{endpoint} answered with a page instead of data. Check HF_ENDPOINT, or sign in to the network. {outcome}."
        ) from None
    except (HTTPError, OSError) as error:
        raise ServerError(
            f"{endpoint} could not be reached ({shown(str(error)) or type(error).__name__}). {outcome}; run it again."
        ) from None
