"""What counts as reviewed, settled and open: the same figures wherever they are asked for."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from quit.dataset.files import current_files
from quit.engine.applied import AppliedReviews
from quit.engine.logs import Log
from quit.engine.questions import counting_reviews
from quit.engine.workspace import Workspace
from quit.release import create, gates
from quit.report.data import gather
from quit.report.lookup import Lookup
from quit.review.apply import report
from quit.review.report import pieces
from quit.review.status import review_status
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.stages.labelling.rulings import settled_decisions, with_rulings
from quit.status.story import story
from tests.report import tiny
from tests.stages.labelling.test_verdicts import said

SAID = {"picasso": True, "wrong": False}
"""A verdict on each answer of q2, the one question of dev; q3 is that of test, q1 of train."""
STATES: dict[str, tuple[list[dict], dict[str, Any], tuple[int, int, int, int], set[str]]] = {
    # reviews, settings; settled, open, answers judged, questions reviewed (of dev and test); questions with reviews
    "no review": ([], {}, (0, 0, 0, 0), set()),
    "done": (said("ada", 1, question="q2", **SAID), {}, (2, 0, 2, 1), {"q2"}),
    "partly": (said("ada", 1, question="q2", picasso=True), {}, (1, 0, 1, 0), {"q2"}),
    "unclear": (said("ada", 1, question="q2", picasso=True, wrong=None), {}, (1, 0, 1, 0), {"q2"}),
    "too few": (said("ada", 1, question="q2", **SAID), {"minimum": 2, "overlap": 2}, (0, 2, 0, 0), {"q2"}),
    "conflicting": (
        said("ada", 1, question="q2", **SAID) + said("bob", 2, question="q2", picasso=True, wrong=True),
        {}, (1, 1, 1, 0), {"q2"},
    ),
    "overruled": (
        said("ada", 1, question="q2", **SAID) + said("bob", 2, question="q2", picasso=True, wrong=True),
        {"adjudication": "adjudicator", "adjudicator": "Bob"}, (2, 0, 2, 1), {"q2"},
    ),
    "withdrawn": (
        said("ada", 1, question="q2", **SAID) + said("ada", 1, 2, "withdrawn", question="q2"), {}, (0, 0, 0, 0), set(),
    ),
    "stale": (
        [{**row, "content": "another text"} for row in said("ada", 1, question="q2", **SAID)], {}, (0, 0, 0, 0), set(),
    ),
    "outside the splits under review": (said("ada", 1, question="q1", nile=True), {}, (0, 0, 0, 0), {"q1"}),
    "added and flagged": (
        said("ada", 1, question="q3", lima=True, wrong=False, typed_callao=True, flag_ambiguous=True),
        {}, (4, 0, 2, 1), {"q3"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return tiny.workspace(tmp_path_factory.mktemp("finished") / "W", people=False)


def _copy(finished: Workspace, folder: Path, rows: list[dict]) -> Workspace:
    workspace = Workspace.open(shutil.copytree(finished.path, folder))
    ReviewStore(workspace).append(rows)
    return workspace


def _applied(workspace: Workspace, review: Review) -> Any:
    """What a build plans from all reviews, and the tables that its label update gives."""
    reviews = AppliedReviews(workspace, review, Log(workspace, "reviews").files)
    verdicts = workspace.read("verdicts", runs=["judge"])
    by_people = with_rulings(verdicts, settled_decisions(reviews.fitting_decisions, workspace.read("splits"), review))
    folder = workspace.path / "ruled"
    folder.mkdir()
    parquet.write_table(by_people, folder / "verdicts.parquet")
    files = current_files(workspace, ["one", "two"])
    files.parts["verdicts"] = [folder / "verdicts.parquet"]
    return files, SimpleNamespace(
        workspace=workspace,
        settings=SimpleNamespace(review=review),
        reviews=reviews,
        fingerprints={"update": "f0"},
    )


@pytest.mark.parametrize("state", STATES)
def test_every_entrance_gives_the_same_figures(finished: Workspace, tmp_path: Path, state: str) -> None:
    rows, options, (settled, undecided, judged, reviewed), question_ids = STATES[state]
    workspace, review = _copy(finished, tmp_path / "W", rows), Review(**options)
    files, planned = _applied(workspace, review)
    status = review_status(workspace, review)
    applied, frozen = report(planned, ran=True), create._reviews(planned, files)
    facts = gather(workspace, tiny.settings().model_copy(update={"review": review}))
    assert (status["decided"], status["open"]) == (settled, undecided)
    assert (applied.decided, applied.open) == (settled, undecided)
    assert (frozen["settled"], frozen["open"]) == (settled, undecided)
    for coverage in (gates.coverage(files, ["dev", "test"]), frozen["coverage"]):
        assert (coverage["answers"], coverage["judged"], coverage["reviewed"]) == (4, judged, reviewed)
    for by_split in (status["coverage"], (facts["review"] or status)["coverage"]):
        assert [sum(row[name] for row in by_split.values()) for name in ("judged", "reviewed")] == [judged, reviewed]
    sentences = [piece for piece in pieces(status) if isinstance(piece, str)]
    numbers = [int("q2" in question_ids and reviewed), int("q3" in question_ids and reviewed)]
    assert any(f"dev {numbers[0]} of 1, test {numbers[1]} of 1" in sentence for sentence in sentences)
    # Questions with reviews that count: what a build keeps, what people see.
    assert {*counting_reviews(workspace)["question_id"].to_pylist()} == question_ids
    assert status["reviews"]["questions"] == len(question_ids)
    for name in ("q1", "q2", "q3"):
        counts = [row["counts"] for row in story(workspace, name)["reviews"] if row["kind"] == "annotation"]
        assert any(counts) == (name in question_ids)
        assert bool(Lookup(workspace).row(name)["reviewers"]) == (name in question_ids)
