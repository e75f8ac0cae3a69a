"""What a workspace left out."""

import json
from pathlib import Path

import pytest

from quit.common.ids import content_hash
from quit.engine.workspace import Workspace
from quit.status.losses import funnel, leakage_losses
from quit.status.summary import markdown_summary
from tests.report import tiny


@pytest.mark.parametrize(
    ("method", "model", "says"),
    [
        ("full", "embedded-2@x", "by method full with the embedded equivalence model."),
        ("bem", "embedded-2@x", "by method bem with the embedded equivalence model in BEM's place."),
        ("full", "bem-1:org/bem@abc", "by method full with BEM."),
        ("bem", "bem-1:org/bem@abc", "by method bem with BEM; the paper: 2.5%."),
    ],
)
def test_the_papers_losses_stand_beside_those_of_bem_by_its_method_alone(tmp_path, method, model, says) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    folder, manifest = workspace.current()["filter"]
    settings = {"leakage": {"method": method}}
    facts = manifest | {"settings": settings, "models": ["rules", model, "encoder"]}
    facts["checksum"] = content_hash(facts)
    (folder / "manifest.json").write_text(json.dumps(facts))
    questions = len(workspace.read("questions"))
    lost = sum(row["kind"] == "question" and row["stage"] == "filter" for row in workspace.read("rejects").to_pylist())
    losses = leakage_losses(Workspace.open(workspace.path))
    assert losses == f"Answer leakage: {lost} of {questions} questions left out ({lost / questions:.1%}), {says}"
    assert losses in markdown_summary(Workspace.open(workspace.path))


def test_the_funnel_names_each_reason_and_counts_the_limit_of_questions_last(tmp_path: Path) -> None:
    rows = tiny.rows()
    rows["rejects"] += [
        {"stage": "split", "kind": "question", "reason": "not_sampled", "detail": "", "question_id": "q5"},
        {"stage": "collect", "kind": "question", "reason": "beyond_questions", "detail": "", "question_id": "q6"},
    ]
    assert funnel(tiny.workspace(tmp_path / "W", rows)) == [
        ("in the sources", 6), ("after collect (too few hints)", 5), ("after collect (beyond questions)", 4),
        ("after filter (answer leak)", 3), ("after split (not sampled)", 2),
        ("in train", 1), ("in dev", 1), ("in test", 1),
    ]  # fmt: skip
