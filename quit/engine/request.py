"""With what a workspace is worked on: sources, profile and settings that are named, else those of its last build."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from quit.engine.last_build import check_files
from quit.engine.location import Location
from quit.engine.reading import TableReader
from quit.settings import Settings, load, plain, without

OPTIONS = {
    "questions": "collect.questions",
    "shards": "run.shards",
    "runner": "run.runner",
    "max_cost": "run.max_cost",
}
"""Options of builds that are settings of their own: they stay where others are replaced, as those of reviews do."""
GIVEN = "passages.hints=given"
"""What a build sets, over all other settings, where its sources' records have passages."""
_LASTING = (*(f"{key}=" for key in OPTIONS.values()), "review.")


class Request(NamedTuple):
    """What a build takes: sources (``KIND:PATH``), profile and settings over it."""

    sources: list[str]
    profile: str
    overrides: list[str]

    @property
    def settings(self) -> Settings:
        """The settings. Raises ``SettingsError`` for what cannot be read."""
        return load(self.profile, self.overrides).settings


def as_built(
    workspace: TableReader,
    sources: Sequence[str] = (),
    profile: str | None = None,
    overrides: Sequence[str] | None = None,
    changes: Sequence[str] = (),
    *,
    add: bool = False,
    files: Sequence[str] = ("-p", "--set", "--source"),
) -> Request:
    """Return with what a workspace is worked on: what is named, else what the last build took; the profile
    ``embedded`` where there is neither. Every command, flow and function asks here.

    ``add``: ``sources`` come after those of the last build. Of other sources, its limit of questions is not theirs.
    ``overrides`` take the place of the last build's, except of reviews and :data:`OPTIONS`; ``changes`` come over both.
    Another profile leaves those of the last build that name an entry of a list, such as ``readers.0.role``.
    Sources with passages set :data:`GIVEN`. ``files``: options whose files have to be there still. Raises as
    :func:`quit.engine.last_build.check_files`, and ``WorkspaceError`` for a workspace of a newer program.
    """
    if isinstance(workspace, Location) and workspace.exists:
        workspace.check_format()
    last = workspace.build or {"profile": "embedded", "overrides": [], "sources": []}
    of_last_build = {"-p": not profile, "--set": overrides is None, "--source": add or not sources}
    check_files(workspace, last, *(option for option in files if of_last_build[option]))
    before = list(last["sources"])
    given = GIVEN in last["overrides"]
    if sources:
        from quit.sources import has_passages, parse_source

        refs = [*map(parse_source, sources)]
        given = (add and given) or any(map(has_passages, refs))
        names = [*dict.fromkeys(f"{ref.kind}:{ref.path.resolve()}" for ref in refs)]
        before = [*before, *(name for name in names if name not in before)] if add else names
    remembered, new, changes = (plain(texts) for texts in (last["overrides"], overrides or (), changes))
    if overrides is not None:
        remembered = [text for text in remembered if text.startswith(_LASTING)]
    if profile and profile != last["profile"]:  # a number is a place in the lists of the profile it was said of
        remembered = [text for text in remembered if not re.search(r"\.\d", text.partition("=")[0])]
    if not add and {*before} != {*last["sources"]}:
        remembered = without(remembered, ["collect.questions="])
    texts = [*without(remembered, [*new, *changes]), *without(new, changes), *changes]
    texts = [*without(texts, [GIVEN]), GIVEN] if given else [text for text in texts if text != GIVEN]
    return Request(before if add or not sources else [*dict.fromkeys(sources)], profile or last["profile"], texts)


def settings_of(workspace: TableReader, changes: Sequence[str] = ()) -> Settings:
    """Return the settings of the workspace's last build (the defaults where there is none) under ``changes``.

    Its sources need not be there any more. Raises as :func:`as_built`, and ``SettingsError`` for what cannot be read.
    """
    return as_built(workspace, changes=changes, files=["-p"]).settings
