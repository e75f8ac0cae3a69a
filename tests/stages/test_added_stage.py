"""A stage takes the edits that docs/add-a-stage.md shows, and no others."""

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.paths import ROOT, starter_lines
from tests.running import QUIT, Result, run_process

pytestmark = pytest.mark.slow
LEFT_OUT = {"jsonl-num-002", "jsonl-num-003", "jsonl-num-011"}
"""Stems that two hints share: day, year (of 16); five, divide (of 13); digit, middle (of 9). All others share less."""


def test_the_stage_of_the_docs_is_built_counted_and_released(tmp_path: Path) -> None:
    for name in ("quit", "flows", "annotation", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    edits = {block.kind: block.text for block in blocks(ROOT / "docs" / "add-a-stage.md")}
    (tmp_path / "quit" / "stages" / "overlap.py").write_text(edits["python"], encoding="utf-8")
    run_process("git", "apply", "-", stdin=edits["diff"], cwd=tmp_path)
    lines = [line for line in starter_lines() if '"num-' in line]
    (tmp_path / "numbers.jsonl").write_text("\n".join(lines), encoding="utf-8")

    def run(*arguments: str) -> Result:
        return run_process(*QUIT, *arguments, "-w", "W", cwd=tmp_path, PYTHONPATH=str(tmp_path))

    run("build", "--source", "jsonl:numbers.jsonl", "--set", "overlap.share=0.12")
    rows = run("status", "--json", "--left-out").json()
    assert {row["question_id"] for row in rows if row["stage"] == "overlap"} == LEFT_OUT
    steps = list(run("status", "--json").json()["funnel"].items())
    at = [name for name, _ in steps].index("after overlap (shared words)")
    assert steps[at - 1][1] - steps[at][1] == 3 and steps[at][1] == sum(count for _, count in steps[at + 1 :])
    run("release", "create", "--name", "v1")
    content = json.loads((tmp_path / "W" / "releases" / "v1" / "release.json").read_text())["content"]
    assert content["settings"]["overlap"] == {"share": 0.12}
    assert content["tables"]["overlaps"]["rows"] == content["tables"]["splits"]["rows"] == steps[at][1]
