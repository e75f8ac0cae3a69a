"""``labels.partial = "exact"``: the labels of a full build from fewer answers, for every order and number of shards."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from quit import contracts
from quit.engine.workspace import Workspace
from tests.building import EXACT, LABELERS, asked_of, build, plan_build
from tests.comparing import files_of, tables_of

pytestmark = pytest.mark.slow
READERS = (*LABELERS, "minilm-names")
RUNS = [f"{run}:{name}" for run in ("probe", "read") for name in READERS]


def _right(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Passage -> labelers that answer correctly, in a full build."""
    rows = Workspace.open(folder).read("labels").to_pylist()
    return {(row["question_id"], row["permutation"]): row["labelers"] for row in rows}


@pytest.mark.parametrize("turn", range(3))
def test_every_order_gives_the_labels_of_a_full_build(full: Path, tmp_path: Path, turn: int) -> None:
    """... and asks a labeler about exactly the passages that no earlier one answers correctly in the full build."""
    right, order = _right(full), [*LABELERS[turn:], *LABELERS[:turn]]
    labels = Workspace.open(full).read("labels")["label"]
    names = [f"readers.{position}.name={name}" for position, name in enumerate(order)]
    pipeline, _ = build(shutil.copytree(full, tmp_path / "W"), EXACT, *names)
    workspace = pipeline.workspace
    assert workspace.read("labels")["label"].equals(labels) and len(set(labels.to_pylist())) == 2
    for place, reader in enumerate(order):
        open_passages = {passage for passage, names in right.items() if not {*names} & {*order[:place]}}
        assert asked_of(workspace, reader) == open_passages
    assert asked_of(workspace, "minilm-names") == {*right}


def test_a_row_that_was_not_asked_is_no_answer(exact: Path) -> None:
    workspace = Workspace.open(exact)
    with workspace.connect() as connection:
        unasked = "FROM answers JOIN distinct_answers USING (question_id, reader, number) WHERE NOT asked"
        rows = connection.execute(f"SELECT DISTINCT answer, raw, ended {unasked}").fetchall()
    assert rows == [("NO ANSWER", "", None)]
    passages = workspace.read("passages")
    for reader in LABELERS:
        answers = workspace.read("answers", runs=[f"read:{reader}"])
        assert answers.select(["question_id", "permutation"]).equals(passages.select(["question_id", "permutation"]))


@pytest.mark.parametrize("shards", [1, 2])
def test_neither_shards_nor_a_stop_after_every_step_change_a_row(exact: Path, tmp_path: Path, shards: int) -> None:
    """A new plan for each shard and for each stage that is finished, as after a kill. One shard: the same bytes."""
    models, steps = None, 0
    while True:
        pipeline = plan_build(tmp_path / "W", EXACT, f"run.shards={shards}", models=models)
        models = pipeline.models
        run = next((run for run in pipeline.runs if not pipeline.is_done(run)), None)
        if run is None:
            break
        if pending := pipeline.pending(run):
            pipeline.run_shard(run, pending[0])
        else:
            pipeline.finish(run)
        steps += 1
    assert steps > 2 * len(LABELERS)
    assert pipeline.workspace.state == Workspace.open(exact).state
    assert (files_of(tmp_path / "W" / "tables") == files_of(exact / "tables")) is (shards == 1)
    ours, others = tables_of(tmp_path / "W"), tables_of(exact)
    assert [name for name in contracts.TABLES if not ours[name].equals(others[name])] == []


@pytest.mark.parametrize(
    ("setting", "changed"),
    [(EXACT, {"read:minilm-late", "read:minilm-evidence"}), ("judge.threshold=0.9", {"split", "enumerate", *RUNS})],
)
def test_new_settings_run_only_what_they_change_and_going_back_runs_nothing(full, tmp_path, setting, changed) -> None:
    """With partial labelling the first labeler and the other readers are asked the same: their tables are shared."""
    folder = shutil.copytree(full, tmp_path / "W")
    before = Workspace.open(folder).state
    pipeline, ran = build(folder, setting)
    assert ran == {*changed, "judge", "label", "update", "roles"}
    same = {key for key, fingerprint in pipeline.fingerprints.items() if before[key] == fingerprint}
    assert {*before} - same == ran
    back, ran = build(folder)
    assert ran == set() and back.workspace.state == before
    again, ran = build(folder, setting)
    assert ran == set() and again.workspace.state == pipeline.fingerprints


def test_answers_are_counted_where_they_were_asked(exact: Path) -> None:
    """... in the summary, and in the agreement of readers, which leaves out labelers of later waves."""
    from quit.report.readers import agreement_figures
    from quit.status.partial import partly_asked
    from quit.status.replies import readers_table, reply_counts

    workspace = Workspace.open(exact)
    counts = {reader: len(asked_of(workspace, reader)) for reader in READERS}
    assert {name: replies.passages for name, replies in readers_table(workspace).items()} == counts
    assert {row["reader"]: row["asked"] for row in partly_asked(workspace)} == counts
    roles = [{"name": name, "role": "labeler" if name in LABELERS else "reader"} for name in counts]
    agreement = agreement_figures(roles, reply_counts(workspace, list(counts))[1])
    assert agreement["all"]["compared"] == ("minilm-vector", "minilm-names")
    assert agreement["all"]["asked"] == counts and agreement["all"]["right"] is None
    labels = workspace.read("labels")
    label_2 = np.count_nonzero(labels["label"].to_numpy() == 2)
    rights = sum(agreement["all"]["correct"][name] * counts[name] for name in LABELERS)
    assert rights == pytest.approx(label_2)  # of each passage of label 2 exactly one labeler was found right
