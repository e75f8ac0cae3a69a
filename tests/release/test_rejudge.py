"""Another judge's verdicts beside a release, asked of a scripted server: what is asked, kept, refused and said."""

import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quit.common.folders import locked
from quit.dataset.release import verify
from tests.release import small
from tests.running import call_quit, start_quit
from tests.servers.batches import batch_server
from tests.servers.builds import served, write_profile
from tests.servers.rude import HANGS, RudeServer

NAMES = ("a", "b", "c")
READERS = tuple(small.ReaderInfo(name, "labeler", f"{name}@1", "embedded") for name in NAMES)
WORDS = ("Nile", "Amazon", "Volga", "Rhine", "Danube", "NO ANSWER")


def world(seed: int = 3) -> small.Rows:
    """Return a release's tables: three labelers, whose answers are drawn. The judge accepts Amazon, and people Volga
    for q1."""
    dice = np.random.default_rng(seed)
    data = {name: rows for name, rows in small.rows().items() if "/" not in name}
    data |= {f"answers/{name}": [] for name in NAMES} | {"verdicts": []}
    for one in small.SPLIT:
        key = {"question_id": one}
        for word in dict.fromkeys((*WORDS, small.GOLD[one])):
            basis = {small.GOLD[one]: "exact", "NO ANSWER": "no_answer"}.get(word, "model")
            reviewed = (one, word) == ("q1", "Volga")
            verdict = {"answer": word, "answer_key": word.lower(), "basis": "review" if reviewed else basis}
            correct = word == small.GOLD[one] or word == "Amazon" or reviewed
            data["verdicts"].append({**key, **verdict, "correct": correct, "judge": "review" if reviewed else "rules"})
    accepted = {(row["question_id"], row["answer"]) for row in data["verdicts"] if row["correct"]}
    for row in data["labels"]:
        passage = {name: row[name] for name in ("question_id", "permutation")}
        replies = {name: str(dice.choice(WORDS)) for name in NAMES}
        row["labelers"] = [name for name in NAMES if (row["question_id"], replies[name]) in accepted]
        row["label"] = 2 if row["labelers"] else 1
        for name, answer in replies.items():
            data[f"answers/{name}"].append(
                {**passage, "reader": name, "answer": answer, "raw": answer, "producer": "x"}
            )
    return data


ASKED = {(one, word) for one in small.SPLIT for word in WORDS[:-1] if word != small.GOLD[one]}
"""What no rule decides: what a judge is asked, people's answers among them."""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "v1"
    folder.mkdir()
    readers = [{"name": info.name, "role": info.role, "identity": info.identity, "kind": info.kind} for info in READERS]
    small.freeze(folder, world(), readers=readers)
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))


def profile(path: Path, url: str, name: str = "new", **judge: Any) -> Path:
    section = {"name": name, "kind": "server", "server": "s", "model": "m", "attempts": 1, **judge}
    sections = served(
        url, "one", server={"concurrency": 1, "patience_seconds": 1, "timeout_seconds": 30}, judge=section
    )
    return write_profile(path, sections)


def asked(payload: Any) -> tuple[str, str]:
    """Return the question and answer that a request is about."""
    fields = dict(line.split(": ", 1) for line in payload["messages"][-1]["content"].splitlines() if ": " in line)
    return next(one for one, text in small.QUESTIONS.items() if text == fields["Question"]), fields["Candidate"]


def accepts(*words: str) -> Any:
    return lambda payload: "Yes" if asked(payload)[1] in words else "No"


def test_distinct_answers_are_asked_once_and_the_release_stays(release: Path, tmp_path: Path) -> None:
    with RudeServer(reply=accepts("Rhine")) as server:
        options = (release, "--judge", "new", "-p", profile(tmp_path / "p.toml", server.base_url), "--json")
        facts = call_quit("release", "rejudge", *options).json()
        assert Counter(map(asked, server.answered)) == dict.fromkeys(ASKED, 1)
        assert not call_quit("release", "rejudge", *options).json()["new"] and len(server.answered) == len(ASKED)
    verify(release)
    assert facts["new"] and facts["answers"] == 20 and facts["by_the_judge"] == len(ASKED) and facts["unread"] == 0
    folder = tmp_path / "v1.judges" / "new"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["content_id"] == verify(release).content_id and Path(facts["path"]) == folder
    assert facts["prompt"]["name"] == "judge" and "server" not in facts["settings"]["judge"]


def test_labels_that_flip_are_counted_and_people_stay(release: Path, tmp_path: Path) -> None:
    with RudeServer(reply=accepts("Rhine")) as server:
        options = (release, "--judge", "new", "-p", profile(tmp_path / "p.toml", server.base_url))
        shift = call_quit("release", "rejudge", *options, "--json").json()["labels"]
        words = call_quit("release", "rejudge", *options).out
    data = world()
    replies: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for name in NAMES:
        for row in data[f"answers/{name}"]:
            replies.setdefault((row["question_id"], row["permutation"]), set()).add((row["question_id"], row["answer"]))
    fixed = {("q1", "Volga"), *small.GOLD.items()}
    labels = [
        (bool(answers & (fixed | {(one, "Amazon")})), bool(answers & (fixed | {(one, "Rhine")})))
        for (one, _), answers in replies.items()
    ]
    to_1, to_2 = labels.count((True, False)), labels.count((False, True))
    counts = {"passages": len(labels), "label_2": to_1 + labels.count((True, True)), "to_1": to_1, "to_2": to_2}
    assert shift == {**counts, "lose_all": []} and to_1 and to_2
    assert f"{to_1} would change to 1 and {to_2} to 2; 0 questions would lose all." in " ".join(words.split())


def test_what_belongs_to_other_content_or_another_judge_is_refused(release: Path, tmp_path: Path) -> None:
    with RudeServer(reply=accepts()) as server:
        first = profile(tmp_path / "p.toml", server.base_url)
        call_quit("release", "rejudge", release, "--judge", "new", "-p", first)
        other = profile(tmp_path / "q.toml", server.base_url, model="other")
        refused = call_quit("release", "rejudge", release, "--judge", "new", "-p", other, code=4)
        assert "Another judge has the name 'new' here" in refused.err
        own = profile(tmp_path / "r.toml", server.base_url, name="rules")
        assert (
            "has the name 'rules'"
            in call_quit("release", "rejudge", release, "--judge", "rules", "-p", own, code=4).err
        )
        absent = call_quit("release", "rejudge", release, "--judge", "gone", "-p", first, code=4)
        assert "'gone' is no judge of this profile, whose judge is 'new'" in absent.err
    manifest = tmp_path / "v1.judges" / "new" / "manifest.json"
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**facts, "content_id": "0" * 32}))
    assert not len(verify(release).read("second_verdicts"))
    manifest.write_text(json.dumps({**facts, "file": {**facts["file"], "sha256": "0" * 64}}))
    assert "was changed" in call_quit("evaluate", "judges", "-w", release, code=3).err


def test_the_cap_holds_and_a_higher_one_goes_on(release: Path, tmp_path: Path) -> None:
    prices = {"price_prompt": 1e6, "price_completion": 0.0}
    with RudeServer(reply=accepts()) as server:
        path = profile(tmp_path / "p.toml", server.base_url, **prices)
        options = ("release", "rejudge", release, "--judge", "new", "-p", path)
        assert "run.max_cost" in call_quit(*options, "--set", "run.max_cost=430", code=9).err
        by_tokens = call_quit(*options, "--set", "run.max_tokens=1", code=9).err
        assert "go on: --set run.max_tokens." in by_tokens and "max_cost" not in by_tokens
        assert 0 < len(server.answered) < len(ASKED)
        call_quit(*options)
        assert Counter(map(asked, server.answered)) == dict.fromkeys(ASKED, 1)


def test_two_commands_do_not_pay_for_the_same_replies(release: Path, tmp_path: Path) -> None:
    with RudeServer(reply=accepts()) as server:
        options = ("release", "rejudge", release, "--judge", "new", "-p", profile(tmp_path / "p.toml", server.base_url))
        (folder := tmp_path / "v1.judges" / "new").mkdir(parents=True)
        with locked(folder):
            assert "Another command asks new" in call_quit(*options, code=7).err
        assert not server.requests


def test_the_equivalence_model_beside_a_judge_has_its_own_settings(release: Path, tmp_path: Path) -> None:
    own = profile(tmp_path / "p.toml", "http://127.0.0.1:9/v1")
    facts = call_quit("release", "rejudge", release, "--judge", "equivalence", "-p", own, "--json").json()
    assert facts["settings"]["judge"] == {"kind": "equivalence", "threshold": 0.5}


def test_a_batch_is_submitted_then_collected(release: Path, tmp_path: Path) -> None:
    with batch_server(lambda _number, _body: "No") as server:
        path = profile(tmp_path / "p.toml", server.base_url)
        path.write_text(path.read_text().replace('"concurrency" = 1', '"batch" = true'))
        options = ("release", "rejudge", release, "--judge", "new", "-p", path)
        call_quit(*options, code=10)
        assert not (tmp_path / "v1.judges" / "new" / "manifest.json").exists() and len(server.batches) == 1
        server.end_batches()
        call_quit(*options)
        assert len(server.batches) == 1 and [*server.charged.values()] == [1] * len(ASKED)


@pytest.mark.slow
def test_killed_at_ten_points_nothing_is_asked_twice(release: Path, tmp_path: Path) -> None:
    process = None

    def script(number: int, _payload: Any) -> Any:
        if number % 2 and number < 20:
            os.killpg(process.pid, signal.SIGKILL)
            return HANGS
        return None

    with RudeServer(script, accepts("Rhine")) as server:
        path, ends = profile(tmp_path / "p.toml", server.base_url), []
        while 0 not in ends:
            process = start_quit("release", "rejudge", release, "--judge", "new", "-p", path, log=tmp_path / "log")
            ends.append(process.wait())
            assert ends[-1] in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
    assert len(ends) == 11 and Counter(map(asked, server.answered)) == dict.fromkeys(ASKED, 1)


@pytest.mark.slow
def test_a_workspaces_own_judge_changes_nothing_and_a_lenient_one_some(full: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(full, tmp_path / "W")
    own, lenient = ((folder, "--judge", name) for name in ("equivalence", "lenient"))
    shift = call_quit("release", "rejudge", *own, "--json").json()["labels"]
    assert shift["label_2"] and shift["to_1"] == shift["to_2"] == 0
    options = ("--set", "judge.name=lenient", "--set", "judge.threshold=0")
    shift = call_quit("release", "rejudge", *lenient, *options, "--json").json()["labels"]
    assert shift["to_2"] > 0 == shift["to_1"]
    agreements = call_quit("evaluate", "judges", "-w", folder, "--json").json()["agreements"]
    of_all = [(row["first"], row["second"], row["only_first"]) for row in agreements if not row["by"]]
    assert of_all == [("equivalence", "lenient", 0)]
    waived = ("--waive", "human-coverage=a test", "--waive", "unjudged-answer=a test")
    call_quit("release", "create", "-w", folder, "--name", "v1", *waived)
    assert not len(verify(folder / "releases" / "v1").read("second_verdicts"))
