"""Applying reviews to a built workspace: the same bytes twice, back again, through kills, rebuilds and exports."""

import json
import shutil
from pathlib import Path

import pytest

from quit.engine.planning import locked_build, locked_last_build
from quit.engine.request import settings_of
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError
from quit.library import reviewing
from quit.release.view import open_to_read
from quit.report.data import gather
from quit.review.apply import ApplyReport
from quit.review.audit import draw_audit
from quit.review.items import ReviewItem, review_items
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.stages.update import update_stage
from quit.status.story import story
from tests.answers import answers_in
from tests.comparing import files_of
from tests.running import call_quit, killed_at
from tests.stages.labelling.test_verdicts import said

pytestmark = pytest.mark.slow
UPDATE = "11_update/*/**/*"
BASE = {"labels": "label", "valid_answers": "label", "verdicts": "judge", "splits": "split"}


def apply_reviews(workspace: Workspace, withdraw: bool = False) -> ApplyReport:
    return reviewing.label_update(str(workspace.path), withdraw=withdraw).result["update"]


def _items(workspace: Workspace) -> list[ReviewItem]:
    return review_items(workspace, Review(), 0.5)


def _say(number: int, item: ReviewItem, flipped: str = "", version: int = 1, state: str = "submitted") -> list[dict]:
    """One person's annotation of a question: the judge's verdicts, but for one answer."""
    answers = {answer.key: bool(answer.verdict) is not (answer.key == flipped) for answer in item.answers}
    rows = said("ada", number, version, state, item.question_id, **(answers if state == "submitted" else {}))
    forms = {answer.key: answer.forms[0] for answer in item.answers}
    return [{**row, "answer": forms[row["answer_key"]]} if row["kind"] == "answer" else row for row in rows]


def _wrong(item: ReviewItem) -> str:
    return max((answer for answer in item.answers if not answer.verdict), key=lambda answer: answer.passages).key


def _is_base(workspace: Workspace) -> bool:
    return all(workspace.read(name).equals(workspace.read(name, runs=[run])) for name, run in BASE.items())


def test_what_is_reviewed_is_dev_and_test_with_every_distinct_answer(workspace: Workspace) -> None:
    items = _items(workspace)
    wanted = {row["question_id"] for row in workspace.read("splits").to_pylist() if row["split"] != "train"}
    assert {item.question_id for item in items} == wanted
    stakes = [item.stake for item in items]
    assert stakes == sorted(stakes, reverse=True) and stakes[0] > stakes[-1]
    rows = [row for row in answers_in(workspace) if row["question_id"] == items[0].question_id]
    for answer in items[0].answers:
        passages = {row["permutation"] for row in rows if row["answer"] in answer.forms}
        assert len(passages) == answer.passages
        assert {row["reader"] for row in rows if row["answer"] in answer.forms} == set(answer.readers)


def test_apply_twice_withdraw_and_apply_again(workspace: Workspace) -> None:
    store, items = ReviewStore(workspace), _items(workspace)
    assert apply_reviews(workspace).applied == 0 and _is_base(workspace)
    store.append([*_say(1, items[0], _wrong(items[0])), *_say(2, items[1])])
    first = apply_reviews(workspace)
    assert first.ran and first.questions == 1 and (first.labels_up or first.questions_removed)
    before, state = files_of(workspace.path / "tables", UPDATE), workspace.state
    again = apply_reviews(workspace)
    assert not again.ran and again.fingerprint == first.fingerprint
    assert files_of(workspace.path / "tables", UPDATE) == before and workspace.state == state
    store.append(_say(3, items[1], _wrong(items[1])))
    assert apply_reviews(workspace).fingerprint != first.fingerprint
    store.append(_say(3, items[1], version=2, state="withdrawn"))
    assert apply_reviews(workspace).fingerprint == first.fingerprint
    store.append(_say(1, items[0], version=2, state="withdrawn"))
    assert apply_reviews(workspace).questions == 0
    for name in ("labels", "valid_answers", "splits"):
        assert workspace.read(name).equals(workspace.read(name, runs=[BASE[name]]))
    apply_reviews(workspace, withdraw=True)
    assert _is_base(workspace)


def test_an_audit_stays_as_drawn_through_apply_and_build_and_a_release_has_its_figures(workspace, tmp_path) -> None:
    settings = settings_of(workspace)
    settings = settings.model_copy(update={"review": Review(audit=12)})
    needed = draw_audit(workspace, settings)
    drawn = (workspace.path / "reviews/audit.json").read_bytes()
    items = review_items(workspace, settings.review, 0.5, audit=needed)
    store = ReviewStore(workspace)
    store.append([row for number, item in enumerate(items) if item.audited for row in _say(number, item, _wrong(item))])
    assert apply_reviews(workspace).ran
    call_quit("build", "-q", "-w", workspace.path, "--set", "review.audit=12")
    assert draw_audit(workspace, settings) == needed
    assert (workspace.path / "reviews/audit.json").read_bytes() == drawn
    status = call_quit("review", "status", "-w", workspace.path, "--json").json()["audit"]
    assert (status["drawn"], status["judged"], status["stale"]) == (12, 12, False)
    call_quit("release", "create", "-w", workspace.path, "--name", "v1", "--waive", "human-coverage=test")
    release = json.loads((workspace.path / "releases/v1/release.json").read_text())
    assert release["verification"]["audit"] == status
    report = gather(open_to_read(workspace.path / "releases/v1"), settings)
    assert report["audit"] == status


def test_apply_says_what_this_call_changed_and_what_the_reviews_changed_since_the_build(workspace: Workspace) -> None:
    store, items = ReviewStore(workspace), _items(workspace)
    pulls = ((1, items[0], _wrong(items[0])), (2, items[1], ""), None)
    for number, pull in enumerate(pulls):
        store.append(_say(*pull) if pull else [])
        report = call_quit("review", "apply", "-q", "-w", workspace.path, "--json").json()
        sums = {name: report[name] for name in report["now"]}
        sums["questions_removed"] = sum(sums["questions_removed"].values())
        assert any(sums.values()) and report["now"] == (sums if number == 0 else dict.fromkeys(sums, 0))
    first, second, *_ = call_quit("review", "apply", "-w", workspace.path).out.splitlines()
    assert first == "Nothing new since the last apply: the labels already use these reviews."
    assert second == "Since the build:"


def test_a_build_keeps_what_people_said_and_exports_use_it(workspace, tmp_path) -> None:
    store, items = ReviewStore(workspace), _items(workspace)
    flagged = said("ada", 2, question=items[1].question_id, flag_leak=True)
    store.append([*_say(1, items[0], _wrong(items[0])), *flagged])
    report = apply_reviews(workspace)
    assert report.questions_removed["flagged_leak"] == 1
    result = call_quit("build", "-w", str(workspace.path))
    assert "up to date" in result.err
    # Another label stage below it: the verdicts are applied again, to its labels.
    call_quit("build", "-q", "-w", str(workspace.path), "--set", "judge.threshold=0.9")
    assert "update" in workspace.state and workspace.state["update"] != report.fingerprint
    removed = items[1].question_id
    assert removed not in workspace.read("splits").column("question_id").to_pylist()
    assert workspace.read("question_roles")["question_id"].equals(workspace.read("splits")["question_id"])
    life = story(workspace, removed)
    assert [row["reason"] for row in life["rejects"]] == ["flagged_leak"] and life["reviews"] and life["changes"]
    # An export recomputes every label from answers and valid answers.
    call_quit("export", "-w", workspace.path, "-f", "release-json", "-o", tmp_path / "x")
    files = [tmp_path / "x" / "release-json" / f"{split}.json" for split in ("train", "dev", "test")]
    exported = {record["id"] for file in files for record in json.loads(file.read_text())}
    assert exported == set(workspace.read("splits")["question_id"].to_pylist())
    status = call_quit("status", "-w", workspace.path, "--json").json()
    assert status["stages"][-1]["run"] == "roles" and status["stages"][-1]["state"] == "complete"


def test_a_killed_apply_is_finished_by_the_next_with_the_same_bytes(workspace: Workspace, tmp_path: Path) -> None:
    store, items = ReviewStore(workspace), _items(workspace)
    store.append([row for number, item in enumerate(items) for row in _say(number, item, _wrong(item))])
    other = Workspace.open(shutil.copytree(workspace.path, tmp_path / "other"))
    apply_reviews(other)
    with killed_at("quit.stages.update", "update_labels", tmp_path, "review", "apply", "-w", workspace.path):
        pass
    assert _is_base(workspace)  # half an update is none
    apply_reviews(workspace)
    assert files_of(workspace.path / "tables", UPDATE) == files_of(other.path / "tables", UPDATE) != {}


def test_an_update_in_three_shards_has_the_rows_of_one_in_one(workspace: Workspace, tmp_path: Path) -> None:
    store, items = ReviewStore(workspace), _items(workspace)
    store.append([row for number, item in enumerate(items) for row in _say(number, item, _wrong(item))])
    other = Workspace.open(shutil.copytree(workspace.path, tmp_path / "other"))
    assert other.build is not None
    other.set_build({**other.build, "overrides": [*other.build["overrides"], "run.shards=3"]})
    for each in (workspace, other):
        apply_reviews(each)
    parts = [len([*each.path.glob("tables/11_update/*/labels/*-of-00003.parquet")]) for each in (workspace, other)]
    assert parts == [0, 3]
    assert all(other.read(name).equals(workspace.read(name)) for name in update_stage.outputs)


def test_apply_needs_labels_takes_review_settings_only_and_a_build_keeps_them(workspace: Workspace) -> None:
    refused = {"judge.threshold=0.1": "only review settings", "review.adjudication=adjudicator": "needs the e-mail"}
    for setting, message in refused.items():
        with pytest.raises(SettingsError, match=message), locked_last_build(workspace.path, [setting]):
            pass
    build = workspace.build
    assert not any("review" in text for text in build["overrides"])
    reviewing.label_update(str(workspace.path), settings=["review.minimum=2"])
    for overrides, minimum in ((["run.shards=1"], 2), (["review.minimum=1"], 1)):
        with locked_build(workspace.path, build["sources"], "embedded", overrides) as pipeline:
            assert pipeline.settings.review.minimum == minimum
            pipeline.begin()
    workspace.set_current({key: value for key, value in workspace.state.items() if key != "label"})
    with pytest.raises(InputError, match="'label' .* not up to date"):
        apply_reviews(workspace)
