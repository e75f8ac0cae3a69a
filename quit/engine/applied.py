"""The reviews that a build's labels rest on, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from quit.engine.logs import Log, applied_reviews
from quit.engine.questions import fitting_rows
from quit.engine.workspace import Workspace
from quit.settings import Review
from quit.stages.labelling.verdicts import decide, decisions_hash, live_reviews


class AppliedReviews:
    """The applied reviews of a workspace under some settings, read once.

    ``parts``: of the log of reviews; those that ``quit review apply`` wrote down if not given.
    """

    def __init__(self, workspace: Workspace, settings: Review, parts: Sequence[Path] | None = None) -> None:
        self._workspace = workspace
        self._settings = settings
        self.parts = applied_reviews(workspace) if parts is None else parts

    @cached_property
    def rows(self) -> pa.Table:
        """Those that count (columns of ``reviews``)."""
        return live_reviews(Log(self._workspace, "reviews").read(self.parts))

    @cached_property
    def decisions(self) -> pa.Table:
        """What they come to (schema ``quit.stages.labelling.verdicts.DECISIONS``)."""
        return decide(self.rows, self._settings)

    @cached_property
    def hash(self) -> str:
        """Hash of the settled decisions and the reviews they rest on."""
        return decisions_hash(self.decisions)

    @cached_property
    def rejected(self) -> frozenset[tuple[str, str, str]]:
        """(question id, content, answer's key) of the answers that they reject."""
        rows = self.decisions.filter(pc.equal(self.decisions.column("decision"), False)).to_pylist()
        return frozenset((row["question_id"], row["content"], row["key"]) for row in rows if row["kind"] == "answer")

    @cached_property
    def fitting_rows(self) -> pa.Table:
        """Those that count, of questions that are as people saw them."""
        return fitting_rows(self._workspace, self.rows)

    @cached_property
    def fitting_decisions(self) -> pa.Table:
        """What they come to, on questions that are as people saw them."""
        return fitting_rows(self._workspace, self.decisions)
