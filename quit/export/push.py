"""Publish a Hugging Face export on the hub, or on the server that ``HF_ENDPOINT`` names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from quit.common.secrets import sends, shown
from quit.errors import QuitError, ServerError, SettingsError
from quit.export.files import MANIFEST, verify
from quit.export.huggingface import CONFIGS
from quit.settings.card import Card

TOKEN = "HF_TOKEN"
_REFUSED = {
    401: f"it refused the token in {TOKEN}. Make one with write access (on the hub: Settings, Access Tokens)",
    403: f"the token in {TOKEN} may not write there. Use one with write access to that account or organisation",
    404: "there is no such account or organisation, or the token may not see it",
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where to publish: ``repository`` is ``ORG/NAME``; ``public``: whether everyone may see it.

    Raises ``SettingsError`` for a repository without owner and name.
    """

    repository: str
    public: bool = False

    def __post_init__(self) -> None:
        try:
            Card(repository=self.repository)
        except ValidationError:
            raise SettingsError(
                f"--push {self.repository!r}: write ORG/NAME, each of letters, digits, dots, dashes and underscores."
            ) from None


def token() -> str:
    """Return the token of the environment. Raises ``SettingsError`` where there is none."""
    value = os.environ.get(TOKEN, "").strip()
    if not value:
        raise SettingsError(
            f"{TOKEN} is not set. Export a token with write access (on the hub: Settings, Access Tokens); "
            "--dry-run needs none."
        )
    sends(value, TOKEN)
    return value


def published_files(folder: Path) -> list[tuple[str, int]]:
    """Return the files that would be published, with their sizes in bytes, after comparing their checksums.

    Raises ``InputError`` for a folder that is no whole export.
    """
    entries = [(entry.path, entry.bytes) for entry in verify(folder).files]
    return sorted([*entries, (MANIFEST, (folder / MANIFEST).stat().st_size)])


def push(folder: Path, target: Target) -> str:
    """Upload an export in one commit and return its address. The repository is made where there is none, private unless
    the target is public; shards of an earlier upload that this one lacks are deleted.

    Raises ``SettingsError`` for a token that is missing or refused and for a repository that is public although the
    target is not; ``ServerError`` where the server does not answer or has a fault; ``InputError`` as
    :func:`published_files`.
    """
    from huggingface_hub import HfApi

    files = [name for name, _ in published_files(folder)]
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token())
    with _refusals(api.endpoint, target):
        url = api.create_repo(target.repository, repo_type="dataset", private=not target.public, exist_ok=True)
        if not target.public and not api.dataset_info(target.repository).private:
            raise SettingsError(
                f"{target.repository} exists and is public: pass --public to publish there, or name another."
            )
        api.upload_folder(
            repo_id=target.repository,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=files,
            delete_patterns=[f"{config}/*.parquet" for config in CONFIGS],
            commit_message="Dataset by QUIT builder",
        )
    return str(url)


@contextmanager
def _refusals(endpoint: str, target: Target) -> Iterator[None]:
    """Turn what the hub's client raises into errors that say what to do."""
    from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        told = f"{endpoint} did not take {target.repository} ({status})"
        if status in _REFUSED:
            raise SettingsError(f"{told}: {_REFUSED[status]}.") from None
        kind = ServerError if status == 429 or status >= 500 else QuitError
        raise kind(f"{told}: {shown(str(error))}. What was there before is unchanged; run it again.") from None
    except OfflineModeIsEnabled:
        raise SettingsError("HF_HUB_OFFLINE is set, so nothing can be published: unset it.") from None
    except (HTTPError, OSError) as error:
        raise ServerError(
            f"{endpoint} could not be reached ({shown(str(error)) or type(error).__name__}). "
            "Nothing was published; run it again."
        ) from None
