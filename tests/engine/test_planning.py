"""What a plan refuses before anything runs, and what its fingerprints leave out."""

import json
import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.common.arithmetic import ARITHMETIC, OWN
from quit.common.progress import listening
from quit.common.ranges import WHOLE
from quit.engine.pipeline import Pipeline
from quit.engine.planning import check_buildable, last_build, locked_build, locked_last_build
from quit.engine.request import as_built
from quit.engine.usage import record
from quit.engine.workspace import Workspace
from quit.errors import SettingsError, WorkspaceError
from quit.models.generation.meter import Count
from quit.review.store import ReviewStore
from quit.settings import load
from quit.sources import parse_source
from quit.stages.labelling.answers import number_answers
from tests.building import carry_out
from tests.conftest import Notes
from tests.paths import FEW, STARTER, starter_file, starter_lines
from tests.release import small
from tests.stages.labelling.test_verdicts import said

COMMIT = "models.bem_revision=" + "0123456789abcdef" * 2 + "01234567"


def _pipeline(folder: Path, *overrides: str) -> Pipeline:
    return Pipeline(Workspace(folder / "W"), load("embedded", overrides).settings, [parse_source(f"jsonl:{STARTER}")])


@pytest.mark.parametrize("revision", ["main", "", "v1.0", "0123456"])
def test_the_papers_profile_refuses_a_revision_that_may_move(revision: str, tmp_path: Path) -> None:
    corpus = f"difficulty.corpus={tmp_path / 'c.jsonl'}"
    with pytest.raises(SettingsError, match=r"needs a commit .* models\.bem_revision=COMMIT"):
        check_buildable(load("paper", [corpus, f"models.bem_revision={json.dumps(revision)}"]).settings)
    check_buildable(load("paper", [corpus, COMMIT]).settings)
    check_buildable(load("paper", [corpus, f"models.bem_checkpoint={tmp_path}"]).settings)  # known by its content
    check_buildable(load("embedded", [f"models.bem_revision={json.dumps(revision)}"]).settings)
    with pytest.raises(SettingsError, match=r"difficulty\.corpus=FILE"):
        check_buildable(load("paper", [COMMIT]).settings)
    check_buildable(load("paper", [COMMIT, "difficulty.counts=nearness"]).settings)


@pytest.mark.parametrize(
    ("setting", "same", "other"),
    [
        ("collect.questions=3", set(), {"collect"}),
        ("leakage.method=bem", {"collect"}, {"filter"}),
        ("judge.threshold=0.9", {"collect", "filter", "rank", "describe"}, {"probe:minilm-late", "judge", "label"}),
    ],
)
def test_a_setting_changes_the_fingerprints_of_what_depends_on_it(tmp_path, setting, same, other) -> None:
    before, after = _pipeline(tmp_path).fingerprints, _pipeline(tmp_path, setting).fingerprints
    kept = {run for run in before if before[run] == after[run]}
    assert same <= kept and other <= {*before} - kept


def test_what_the_card_says_leads_to_no_other_fingerprint(tmp_path: Path) -> None:
    card = ['card.name="Rivers"', "card.licence=cc0-1.0", "card.repository=org/rivers", 'card.authors=["Ada"]']
    assert _pipeline(tmp_path, *card).fingerprints == _pipeline(tmp_path).fingerprints


def test_pins_count_by_what_they_say_not_by_where_they_lie(tmp_path: Path) -> None:
    other = small.rows()
    other["splits"][1]["split"] = "test"
    pinned = [_pipeline(tmp_path).fingerprints]
    for name, rows in (("a", small.rows()), ("b", small.rows()), ("c", other)):
        small.freeze(tmp_path / name, rows)
        pinned.append(_pipeline(tmp_path, f"split.pinned={tmp_path / name}").fingerprints)
    free, a, b, c = pinned
    assert a == b and a["describe"] == c["describe"] == free["describe"]
    assert len({free["split"], a["split"], c["split"]}) == 3


def test_files_of_a_build_and_of_a_review_are_the_same_from_every_working_folder(tmp_path, monkeypatch) -> None:
    rows = small.rows()
    for name, split in (("here", "test"), ("there", "dev")):
        rows["splits"][1]["split"] = split
        small.freeze(tmp_path / name / "v1", rows)
        monkeypatch.chdir(tmp_path / name)
        if name == "here":
            with locked_build(tmp_path / "W", [f"jsonl:{STARTER}"], "embedded", ["split.pinned=v1"]) as build:
                build.begin()
            with locked_last_build(tmp_path / "W", ["review.people=people.jsonl"]):
                pass
    later = last_build(Workspace(tmp_path / "W"))
    assert later.fingerprints == build.fingerprints and later.settings.review.people == f"{tmp_path}/here/people.jsonl"


def _collected(folder: Path, *sources: Path, **how: bool) -> tuple[list[str], list[str]]:
    """Plan a build and collect its questions: what was said, and the sources that the workspace then remembers."""
    heard: list[str] = []
    texts = [f"jsonl:{path}" for path in sources]
    with listening(Notes(heard.append)), locked_build(folder / "W", texts, "embedded", [], **how) as build:
        carry_out(build, "collect")
    return heard, [text.rpartition("/")[2] for text in build.workspace.build["sources"]]


def _questions(folder: Path) -> list[str]:
    return Workspace.open(folder / "W").read("questions")["question_id"].to_pylist()


@pytest.fixture
def reviewed(tmp_path: Path) -> Path:
    """A folder with a workspace of three questions, two of which people reviewed, one of those withdrawn again; and
    sources: ``three`` (its own), ``two`` (without the reviewed one), ``other``, ``typo`` (another text of it)."""
    lines = starter_lines()
    first = json.loads(lines[0])
    typo = json.dumps({**first, "question": f"{first['question']} Really?"})
    for name, some in (("three", lines[:3]), ("two", lines[1:3]), ("other", lines[5:7]), ("typo", [typo, *lines[1:3]])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(some) + "\n", encoding="utf-8")
    _collected(tmp_path, tmp_path / "three.jsonl")
    one, two, _ = (f"jsonl-{json.loads(line)['id']}" for line in lines[:3])
    rows = [*said("ada", 1, question=one, x=True), *said("ada", 2, 1, "withdrawn", question=two, x=True)]
    ReviewStore(Workspace.open(tmp_path / "W")).append(rows)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "leave", "come", "count"),
    [
        ("two", "1 question leaves", "0 come", 2),
        ("other", "3 questions leave", "2 come", 2),
        ("typo", "1 question leaves", "1 comes", 3),
    ],
)
def test_reviewed_questions_leave_only_where_that_is_asked_for(reviewed, source, leave, come, count) -> None:
    workspace, before = Workspace.open(reviewed / "W"), _questions(reviewed)
    state, build = workspace.state, workspace.build
    with pytest.raises(WorkspaceError, match=r"1 reviewed question would .*--add.*--replace") as error:
        _collected(reviewed, reviewed / f"{source}.jsonl")
    assert before[0] in str(error.value) and before[1] not in str(error.value)
    assert (workspace.state, workspace.build) == (state, build) and _questions(reviewed) == before
    [heard] = _collected(reviewed, reviewed / f"{source}.jsonl", replace=True)[0]
    assert heard.startswith(f"{leave}, {come}.")
    assert len(_questions(reviewed)) == count


@pytest.mark.parametrize("ground", ["release", "replies"])
def test_questions_of_a_source_that_is_no_longer_named_stay_where_something_rests_on_them(
    reviewed: Path, ground: str
) -> None:
    """A release, or replies of language models; a source that lost a record is still named."""
    workspace = Workspace.open(reviewed / "W")
    shutil.rmtree(workspace.path / "reviews")
    if ground == "release":
        (workspace.path / "releases/v1/tables").mkdir(parents=True)
        pq.write_table(workspace.read("questions"), workspace.path / "releases/v1/tables/questions.parquet")
    else:
        record(workspace.path, "read:llm", {}, {"llm": Count(requests=7)}, load().settings)
        _collected(reviewed, reviewed / "other.jsonl", add=True)  # nobody was asked about these
        assert len(_collected(reviewed, reviewed / "three.jsonl")[0]) == 1
        folder = workspace.folder("read:llm", 8, "0" * 16)
        keys = {"permutation": "0", "reader": "llm", "answer": "Nile", "raw": "Nile", "ended": "stop", "asked": True}
        rows = [{"question_id": question_id, **keys} for question_id in _questions(reviewed)]
        workspace.write_part(folder, WHOLE, number_answers(pa.Table.from_pylist(rows)))
        workspace.finish(folder, ["answers", "distinct_answers"], 1, {"stage": "read", "models": []})
        workspace.set_current(workspace.state | {"read:llm": "0" * 16})
    before = _questions(reviewed)
    with pytest.raises(WorkspaceError, match=r"jsonl:three.jsonl with 3 questions would leave.*--add.*--replace"):
        _collected(reviewed, reviewed / "other.jsonl")
    assert _questions(reviewed) == before
    whole = (reviewed / "three.jsonl").read_bytes()
    (reviewed / "three.jsonl").write_bytes((reviewed / "two.jsonl").read_bytes())
    assert _collected(reviewed, reviewed / "three.jsonl")[0] == ["1 question leaves, 0 come."]
    (reviewed / "moved.jsonl").write_bytes(whole)
    (reviewed / "three.jsonl").write_bytes(whole)
    _collected(reviewed, reviewed / "three.jsonl")
    assert _collected(reviewed, reviewed / "moved.jsonl")[0] == [], "a file with another name and the same content"
    assert len(_collected(reviewed, reviewed / "other.jsonl", replace=True)[0]) == 1 and len(_questions(reviewed)) == 2


def test_a_source_that_is_added_leaves_what_there_is(reviewed: Path) -> None:
    before = _questions(reviewed)
    heard, sources = _collected(reviewed, reviewed / "other.jsonl", add=True)
    assert heard == ["0 questions leave, 2 come."]
    assert sources == ["three.jsonl", "other.jsonl"] and set(_questions(reviewed)) > set(before)
    again = _collected(reviewed, reviewed / "other.jsonl", add=True)  # it is there already
    assert again == ([], sources) == _collected(reviewed)  # none named: those of the last build
    assert _collected(reviewed, reviewed / "other.jsonl", reviewed / "three.jsonl")[0] == []


def test_a_workspace_without_reviews_is_told_what_leaves_and_a_new_one_nothing(reviewed: Path) -> None:
    shutil.rmtree(reviewed / "W" / "reviews")
    heard = "3 questions leave, 2 come. No longer named: jsonl:three.jsonl with 3 questions; --add keeps sources."
    assert _collected(reviewed, reviewed / "other.jsonl") == ([heard], ["other.jsonl"])
    shutil.rmtree(reviewed / "W")
    assert _collected(reviewed, reviewed / "other.jsonl", add=True) == ([], ["other.jsonl"])


def test_tables_of_another_kind_of_machine_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = starter_file(tmp_path / "one.jsonl", 1)
    with locked_build(tmp_path / "W", [f"jsonl:{source}"], "embedded", []) as build:
        carry_out(build, "collect")
        carry_out(build, "filter")
    assert _collected(tmp_path, source)[0] == []
    monkeypatch.setenv(OWN, "mine")
    [line] = _collected(tmp_path, source)[0]
    assert f"another kind of machine ({ARITHMETIC}; here: {ARITHMETIC}-mine)" in line


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("run.max_cost=5",), "prices of gemma-3-1b: set its price_prompt and price_completion"),
        (("run.max_cost=5", "readers.0.price_prompt=2"), "prices of gemma-3-1b: set its price_completion in"),
        (("run.max_tokens=5", "readers.1.extra.max_tokens=9"), "the longest reply of .*: take max_tokens out of its"),
        (("run.max_tokens=5", "judge.extra.n=2"), "the longest reply of .*: take n out of its extra"),
    ],
)
def test_settings_of_asking_that_cannot_hold_are_refused(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_buildable(load("server", overrides).settings)


_BUILT = {"profile": "embedded", "overrides": ["judge.threshold=0.25"], "sources": [f"jsonl:{STARTER}"]}


@pytest.mark.parametrize(
    ("profile", "overrides", "differences"),
    [
        (None, None, []),
        ("embedded", None, []),
        (None, ["judge.threshold=0.25", "run.workers=3", "release.examples=2"], []),
        (None, ["run.workers=3"], ["judge.threshold was 0.25, is 0.5."]),
        (
            None,
            ["judge.threshold=0.5", "labels.sentences=judge"],
            ["judge.threshold", "labels.sentences was drop, is judge"],
        ),
        (None, ["judge.extra.depth=3"], ["judge.extra.depth was not set, is 3"]),
        (str(FEW), None, ["passages.hints was 5, is 2", "is ['minilm-vector', 'minilm-late']."]),
    ],
)
def test_a_build_that_keeps_labels_refuses_settings_that_would_replace_them(profile, overrides, differences, tmp_path):
    """What is named is compared with what the last build took, where there are labels."""
    workspace = Workspace.create(tmp_path / "W")
    workspace.set_build(_BUILT)
    for state in ({}, {"label": "x"}):
        workspace.set_current(state)
        before = workspace.build
        try:
            with locked_build(workspace, [], profile, overrides, keep_labels=True) as pipeline:
                assert not (differences and state), "it is not refused"
                assert pipeline.settings == as_built(workspace, (), profile, overrides).settings
        except WorkspaceError as error:
            assert differences and state
            assert all(each in str(error) for each in differences) and "run.workers" not in str(error)
        assert workspace.build == before
        with locked_build(workspace, [], profile, overrides):
            pass


def test_a_build_that_waits_takes_what_the_build_before_it_took(tmp_path: Path) -> None:
    """Not what was in force when it began to wait."""
    workspace = Workspace.create(tmp_path / "W")
    workspace.set_build(_BUILT)
    waits = threading.Event()

    def other() -> None:
        with locked_build(tmp_path / "W", [], None, ["judge.threshold=0.75"]) as pipeline:
            ready.set()
            waits.wait(60)
            pipeline.begin()

    ready, thread = threading.Event(), threading.Thread(target=other)
    thread.start()
    ready.wait(60)
    with (
        listening(Notes(lambda _: waits.set())),
        locked_build(tmp_path / "W", [], None, None, keep_labels=True) as pipeline,
    ):
        assert pipeline.settings.judge.threshold == 0.75
    thread.join()
