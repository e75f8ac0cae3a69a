"""Estimated labels on 18 questions of the starter collection, with the embedded models (270 passages)."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from quit.common.ids import draw
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.review.apply import plan_update
from quit.review.store import ReviewStore
from tests.building import LABELERS, build, carry_out
from tests.stages.labelling.test_verdicts import said

pytestmark = pytest.mark.slow
AUDIT = 60
ESTIMATED = ("labels.partial=estimated", "labels.exact_splits=[]", f"labels.audit={AUDIT}", "labels.error=0.3")


@pytest.fixture(scope="module")
def estimated(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return build(tmp_path_factory.mktemp("estimated") / "W", *ESTIMATED)[0].workspace


def _labels(workspace: Workspace) -> np.ndarray:
    return workspace.read("labels", runs=["label"]).column("label").to_numpy()


def test_what_is_asked_has_the_full_runs_label_and_the_rest_is_predicted(full: Path, estimated: Workspace) -> None:
    selection = estimated.read("selection")
    for name in ("question_id", "permutation"):
        assert selection[name].equals(estimated.read("passages")[name])
    labelled_mask = selection.column("reason").is_valid().to_numpy()
    probability = selection.column("probability").to_numpy()
    assert (np.isnan(probability) == labelled_mask).all() and 0 < labelled_mask.sum() < len(labelled_mask)
    labels, truth = _labels(estimated), _labels(Workspace.open(full))
    assert (labels[labelled_mask] == truth[labelled_mask]).all()
    assert (labels[~labelled_mask] == np.where(probability[~labelled_mask] >= 0.5, 2, 1)).all()
    last = estimated.read("selection_rounds").to_pylist()[-1]  # its bounds hold
    assert last["missed_bound"] + last["false_bound"] <= 0.3
    assert ((labels == 1) & (truth == 2)).mean() <= last["missed_bound"]
    assert ((labels == 2) & (truth == 1)).mean() <= last["false_bound"]


def test_the_audit_is_drawn_by_a_hash_of_each_passage(estimated: Workspace) -> None:
    rows = estimated.read("selection").to_pylist()
    ordered = sorted(rows, key=lambda row: draw(f"{row['question_id']}/{row['permutation']}", "quit/audit"))
    assert {row["reason"] for row in ordered[:AUDIT]} == {"audit"}
    assert "audit" not in {row["reason"] for row in ordered[AUDIT:]}


def test_labelers_are_asked_in_waves_about_chosen_passages_only(full: Path, estimated: Workspace) -> None:
    """By the full run's answers: a passage stays open until a labeler is right."""
    unsolved_passages = estimated.read("selection").column("reason").is_valid().to_numpy()
    labelers = Workspace.open(full).read("labels", runs=["label"]).column("labelers").to_pylist()
    for labeler in LABELERS:
        labelled_mask = estimated.read("answers", runs=[f"read:{labeler}"]).column("asked").to_numpy()
        assert (labelled_mask == unsolved_passages).all()
        unsolved_passages = unsolved_passages & np.array([labeler not in names for names in labelers])
    others = estimated.read("answers", runs=["read:minilm-names"])
    assert others.column("asked").to_numpy().all()


def test_a_review_leaves_the_selection_and_other_questions_as_they_are(estimated: Workspace, tmp_path: Path) -> None:
    workspace = Workspace.open(shutil.copytree(estimated.path, tmp_path / "W"))
    splits = {row["question_id"]: row["split"] for row in workspace.read("splits").to_pylist()}
    verdicts = [row for row in workspace.read("verdicts").to_pylist() if splits[row["question_id"]] != "train"]
    rejected = next(row for row in verdicts if row["correct"] and row["passages"] > 3)
    said_of = {rejected["answer_key"]: False, "typed_a substitute": True}
    ReviewStore(workspace).append(said("ada", 1, question=rejected["question_id"], **said_of))
    updated = plan_update(last_build(workspace))
    carry_out(updated)
    assert updated.reviews_applied and workspace.read("changes").num_rows
    assert workspace.read("selection").equals(estimated.read("selection"))
    before, after = (place.read("labels").to_pandas() for place in (estimated, workspace))
    others = before["question_id"] != rejected["question_id"]
    assert after[others].equals(before[others]) and not after[~others].equals(before[~others])


def test_shards_change_nothing(estimated: Workspace, tmp_path: Path) -> None:
    other = build(tmp_path / "W", *ESTIMATED, "run.shards=4")[0].workspace
    for name in ("selection", "selection_rounds", "answers", "distinct_answers", "verdicts", "labels", "valid_answers"):
        assert other.read(name).equals(estimated.read(name)), name
