"""What is wrong with the files of a workspace, found by reading all of them, through links."""

from __future__ import annotations

from collections.abc import Iterator

from quit import contracts
from quit.dataset.check import UNJUDGED, faults
from quit.dataset.files import current_files, names_of
from quit.dataset.release import DESCRIPTION, FOLDER, ReaderInfo
from quit.engine.logs import Log, applied_reviews
from quit.engine.parts import log_number, read_log_part
from quit.engine.request import settings_of
from quit.engine.workspace import Workspace
from quit.errors import QuitError
from quit.release.verify import verify_tables


def faults_of(workspace: Workspace) -> Iterator[str]:
    """Yield the faults of a workspace's files: of parts of stages and logs, of releases, and links to nothing."""
    folder = workspace.path
    yield from (f"{path} is a link to nothing" for path in folder.iterdir() if path.is_symlink() and not path.exists())
    if not workspace.state and any(folder.glob("tables/*/*/manifest.json")):
        yield f"{folder / 'state.json'} is missing, or names no tables"
    complete = workspace.current()
    for run in workspace.state.keys() - complete:
        yield f"{folder}/tables/*_{run.replace(':', '_')}/{workspace.state[run]}/manifest.json is missing"
    damaged = workspace.damaged()
    yield from (f"{part} is missing or was changed" for part in damaged)
    if not damaged and workspace.build:
        yield from _wrong_rows(workspace)
    for name in (name for name, contract in contracts.TABLES.items() if contract.log):
        parts, numbers = [*Log(workspace, name).files], set()
        for part in parts:
            try:
                numbers.add(log_number(part))
                read_log_part(name, part)
            except QuitError as error:
                yield str(error)
        lost = {folder / name / f"part-{number:05d}.parquet" for number in range(1, max(numbers, default=0))}
        if name == "reviews":
            lost |= {*applied_reviews(workspace)}
        yield from (f"{part} is missing" for part in sorted(lost - {*parts}))
    entries = sorted((folder / FOLDER).glob("[!.]*"))
    for release in (path for path in entries if path.is_dir() or path.is_symlink()):
        try:
            verify_tables(release)
        except QuitError as error:
            yield str(error) if (release / DESCRIPTION).exists() else f"{release / DESCRIPTION} is missing"


def _wrong_rows(workspace: Workspace) -> Iterator[str]:
    """Yield the rows of finished tables that are not what their contracts say."""
    settings = settings_of(workspace)
    readers = [ReaderInfo(reader.name, reader.role, "", reader.kind) for reader in settings.readers]
    files = current_files(workspace, [reader.name for reader in readers])
    if {*names_of(reader.name for reader in readers)} <= files.parts.keys():
        rows = faults(files, readers, settings)
        yield from (str(fault) for fault in rows if fault.gate != UNJUDGED)  # a release may waive that
