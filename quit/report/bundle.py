"""``quit browse --bundle``: the browser's pages as a folder that needs no server.

Every question has the server's page, compressed: its passages and answers repeat so much that a fortieth is left. The
search is a small index and the rows of all results; ``bundle.js`` picks from them.
"""

from __future__ import annotations

import json
import sys
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams

from quit.common.ids import content_hash
from quit.common.progress import advance
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.export.files import ExportFolder, Manifest, Publication
from quit.render.html import environment, template_text
from quit.report.browse import Pages
from quit.report.people import numbered_people
from quit.settings import Settings
from quit.status.story import stories

_LINKS = {"home": "index.html", "question": "question.html?id=", "report": "report.html", "style": "style.css",
          "script": "bundle.js"}  # fmt: skip
_BATCH = 64  # questions read at once


def write_bundle(
    workspace: Workspace | Release, settings: Settings, target: Path, first: int | None = None, overwrite: bool = False
) -> Manifest:
    """Write the pages of the ``first`` questions by id, or of all, and the report; return the folder's manifest.

    People who reviewed or overruled are numbered, not named. ``target`` appears whole or not at all. Raises
    ``SettingsError`` where it exists, except as an earlier bundle to ``overwrite``, ``WorkspaceError`` when the disk
    refuses, ``MissingDependency`` without matplotlib.
    """
    target, pages = target.absolute(), Pages(workspace, settings, _LINKS, first)
    embedded = any(reader.kind == "embedded" for reader in pages.readers)
    publication = Publication(target.parent, content_hash(pages.lookup.version(), first), embedded, overwrite)
    publication.check([target.name])
    return publication.write([target.name], lambda _, folder: _write(workspace, pages, folder), {target.name: 1})[0]


def _write(workspace: Workspace | Release, pages: Pages, folder: ExportFolder) -> dict[str, int]:
    def save(name: str, text: str) -> None:
        folder.path(name).write_text(text, encoding="utf-8", newline="\n")
        folder.record(name, 1)

    def pack(name: str | int, text: str) -> None:
        save(f"data/{name}.js", f'packed = "{b64encode(zlib.compress(text.encode(), 9)).decode()}"\n')

    results, index = pages.lookup.search(size=sys.maxsize), pages.lookup.index()
    ids = [row["question_id"] for row in results.rows]
    parts: Any = environment().get_template("parts.html").module
    lines = [parts.result(row, results.columns, _LINKS["question"], "").strip() for row in results.rows]
    pack("words", json.dumps(index.pop("words")))
    pack("index", json.dumps({"ids": ids, "html": lines, **index}))
    save("index.html", pages.results(QueryParams()))
    save("question.html", pages.html("said.html", title="Question", text="A script shows it from files beside this."))
    save("report.html", pages.summary())
    save("style.css", template_text("style.css"))
    save("bundle.js", template_text("browse.js") + template_text("bundle.js"))
    people, releases = numbered_people(workspace), pages.lookup.releases(ids)
    for start in range(0, len(ids), _BATCH):
        for place, story in enumerate(stories(workspace, ids[start : start + _BATCH]), start):
            story["reviews"] = [{**row, "annotator": people[row["annotator"]]} for row in story["reviews"]]
            story["overrides"] = [{**row, "by": people[row["by"]]} for row in story["overrides"]]
            pack(place, pages.life(story, releases, row=results.rows[place], query="", before=None, after=None))
            advance("question pages", total=len(ids))
    return {"questions": len(ids)}
