"""What to know beside the counts of a workspace."""

from pathlib import Path

import pyarrow as pa

from quit.common.ranges import WHOLE
from quit.engine.workspace import Workspace
from quit.status.notes import beyond_limits
from quit.status.summary import markdown_summary
from tests.report import tiny


def test_rows_with_a_note_are_counted_in_one_line(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    assert beyond_limits(workspace) is None and "beyond" not in markdown_summary(workspace)
    for run, table in (("rank", "ranked_hints"), ("judge", "verdicts")):
        folder, manifest = workspace.current()[run]
        tables = {name: workspace.read(name, runs=[run]) for name in manifest["tables"]}
        bare = tables[table].drop_columns(["note"])
        notes = pa.array(["not English", "answer empty", *[None] * (len(bare) - 2)], pa.string())
        workspace.discard(folder)
        workspace.write_part(folder, WHOLE, tables | {table: bare.append_column("note", notes)})
        workspace.finish(folder, list(tables), 1, {"stage": run})
    line_of_notes = beyond_limits(Workspace.open(workspace.path))
    assert (
        line_of_notes
        == "Texts beyond the limits of embedded models (column note): 2 rows of ranked_hints, 2 rows of verdicts."
    )
    assert line_of_notes in markdown_summary(Workspace.open(workspace.path))
