"""The audit: which passages are drawn, that they stay drawn, and that its figures follow from people's verdicts."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from quit.annotation.tasks import make_task
from quit.engine.workspace import Workspace
from quit.library import reviewing
from quit.render.table import markdown
from quit.review.audit import allocation, audit_figures, draw_audit
from quit.review.controls import Controls, mix_controls
from quit.review.items import review_items
from quit.review.report import audit_pieces, pieces
from quit.review.status import review_status
from quit.review.store import ReviewStore
from quit.settings import Settings, parse
from tests.report import tiny
from tests.servers.builds import served
from tests.stages.labelling.test_verdicts import said

SPLITS = ("train", "dev", "test")
PERMUTATIONS = ("0", "1", "01", "10")
WORDS = ("gold", "tin", "zinc", "lead", "NO ANSWER")
RIGHT = {"gold", "tin"}
"""What people accept; the judge also accepts zinc of some questions, and rejects tin of some."""


def _rows(questions: int = 30) -> dict[str, list[dict[str, Any]]]:
    """Three splits in turn; two labelers, whose answers are drawn; the judge is wrong about every fifth question."""
    random, names = np.random.default_rng(5), ("questions", "splits", "ranked_hints", "labels", "verdicts")
    data: dict[str, list[dict[str, Any]]] = {name: [] for name in (*names, "answers/one", "answers/two")}
    for number in range(questions):
        key = {"question_id": f"q{number:03d}"}
        data["questions"].append({**key, "question": f"Which metal is {number}?", "answers": ["Gold"]})
        data["splits"].append({**key, "split": SPLITS[number % 3]})
        accepts = {"gold", "zinc"} if number % 5 == 0 else {"gold", "tin"}
        for word in WORDS[:-1]:
            data["verdicts"].append({**key, "answer": word, "answer_key": word, "correct": word in accepts})
        for place in range(2):
            hint = {"hint_id": f"{key['question_id']}-h0{place}", "hint": f"Hint {place}."}
            data["ranked_hints"].append({**key, **hint, "rank": place, "selected": True})
        for permutation in PERMUTATIONS:
            given = {name: str(random.choice(WORDS)) for name in ("one", "two")}
            passage = {**key, "permutation": permutation}
            for name, answer in given.items():
                reply = {"reader": name, "answer": answer, "raw": answer, "producer": f"{name}@1"}
                data[f"answers/{name}"].append({**passage, **reply})
            right = [name for name, answer in given.items() if answer in accepts]
            data["labels"].append({**passage, "label": 2 if right else 1, "labelers": right})
    return data


def _settings(audit: int, **review: Any) -> Settings:
    sections = {"passages": {"hints": 2}, "review": {"audit": audit, **review}}
    return parse(served("http://localhost:1", "one", "two", **sections))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return tiny.workspace(tmp_path / "W", _rows(), people=False)


def _answers() -> dict[tuple[str, str], set[str]]:
    """(question, permutation) -> what the labelers answered."""
    given: dict[tuple[str, str], set[str]] = {}
    for name in ("one", "two"):
        for row in _rows()[f"answers/{name}"]:
            given.setdefault((row["question_id"], row["permutation"]), set()).add(row["answer"])
    return {passage: answers - {"NO ANSWER"} for passage, answers in given.items()}


def _judge(workspace: Workspace, question_ids: list[str], words: tuple[str, ...] = WORDS[:-1]) -> None:
    """Let one person judge words of questions."""
    store = ReviewStore(workspace)
    rows: list[dict] = []
    for question_id in question_ids:
        number = 100 * len(store.parts) + len(rows)
        verdicts = {word: word in RIGHT for word in words}
        rows += [{**row, "answer": row.get("answer")} for row in said("ada", number, question=question_id, **verdicts)]
    store.append(rows)


def _stored(workspace: Workspace) -> dict[str, Any]:
    return json.loads((workspace.path / "reviews" / "audit.json").read_text())


def _figures(workspace: Workspace, settings: Settings) -> dict[str, Any]:
    return audit_figures(workspace, settings.review)["audit"]


def test_an_audit_of_all_passages_is_exact(workspace: Workspace) -> None:
    settings, answers = _settings(10**6), _answers()
    needed = draw_audit(workspace, settings)
    sample = {(row["question_id"], row["permutation"]) for row in _stored(workspace)["sample"]}
    assert sample == {passage for passage, given in answers.items() if given}  # the others have label 1 for certain
    _judge(workspace, sorted(needed))
    figures = _figures(workspace, settings)
    split = {row["question_id"]: row["split"] for row in _rows()["splits"]}
    judge = {(row["question_id"], row["permutation"]): row["label"] for row in _rows()["labels"]}
    true = {passage: 2 if given & RIGHT else 1 for passage, given in answers.items()}
    sizes = {"1 hint": 1, "2 hints": 2}
    for row in figures["shares"]:
        name = row["of"]
        group = [
            passage for passage in true if name in ("all", split[passage[0]]) or sizes.get(name) == len(passage[1])
        ]
        share = sum(true[passage] == 2 for passage in group) / len(group)
        assert row["passages"] == len(group)
        assert row["judge"] == pytest.approx(sum(judge[passage] == 2 for passage in group) / len(group))
        assert (row["estimate"], row["low"], row["high"]) == pytest.approx((share, share, share))
        inside = [passage for passage in group if passage in sample]
        assert (row["audited"], row["wrong"]) == (len(inside), sum(true[one] != judge[one] for one in inside))
    agreed = sum(true[passage] == judge[passage] for passage in sample) / len(sample)
    accuracy = figures["accuracy"]["label"]
    assert (accuracy["estimate"], accuracy["low"], accuracy["high"]) == pytest.approx((agreed,) * 3)
    verdicts = {(row["question_id"], row["answer_key"]): row["correct"] for row in _rows()["verdicts"]}
    alike = [all(verdicts[one, word] is (word in RIGHT) for word in answers[one, order]) for one, order in sample]
    assert figures["accuracy"]["answers"]["estimate"] == pytest.approx(np.mean(alike))
    assert (figures["drawn"], figures["judged"], figures["stale"]) == (len(sample), len(sample), False)


def test_the_figures_of_a_sample_follow_the_formulas(workspace: Workspace) -> None:
    settings, answers = _settings(40), _answers()
    needed = draw_audit(workspace, settings)
    sample = _stored(workspace)["sample"]
    _judge(workspace, sorted(needed))
    # A stale audit has no bounds by what people have decided since, so the formulas alone are left.
    workspace.set_current({name: value for name, value in workspace.state.items() if name != "label"})
    figures = {row["of"]: row for row in _figures(workspace, settings)["shares"]}
    split = {row["question_id"]: row["split"] for row in _rows()["splits"]}
    judge = {(row["question_id"], row["permutation"]): row["label"] for row in _rows()["labels"]}
    groups = {"train": lambda one: split[one[0]] == "train", "2 hints": lambda one: len(one[1]) == 2, "all": bool}
    for name, inside in groups.items():
        passages = [passage for passage in judge if inside(passage)]
        value = sum(judge[passage] == 2 for passage in passages) / len(passages)
        down = up = 0.0
        for stratum in ((one, label) for one in SPLITS for label in (1, 2)):
            open_ones = [one for one in judge if answers[one] and (split[one[0]], judge[one]) == stratum]
            weight = sum(inside(one) for one in open_ones) / len(passages) * (1 if stratum[1] == 1 else -1)
            drawn = [row for row in sample if (SPLITS[row["split"]], row["label"]) == stratum]
            wrong = sum((2 if {*row["answers"]} & RIGHT else 1) != row["label"] for row in drawn)
            share, size, population = wrong / len(drawn), len(drawn), len(open_ones)
            size /= (population - size) / (population - 1)
            middle = (share + 1.95996**2 / 2 / size) / (1 + 1.95996**2 / size)
            half = 1.95996 / (1 + 1.95996**2 / size) * (share * (1 - share) / size + 1.95996**2 / 4 / size**2) ** 0.5
            low = max(middle - half, wrong / population)
            high = min(middle + half, 1 - (len(drawn) - wrong) / population)
            value += weight * share
            down += (weight * (share - low if weight > 0 else high - share)) ** 2
            up += (weight * (high - share if weight > 0 else share - low)) ** 2
        expected = (value, max(0.0, value - down**0.5), min(1.0, value + up**0.5))
        row = figures[name]
        assert (row["estimate"], row["low"], row["high"]) == pytest.approx(expected, abs=1e-5)


def test_a_push_draws_and_asks_for_the_audit(workspace: Workspace, monkeypatch) -> None:
    pytest.importorskip("label_studio_sdk", reason="the extra review is not installed")
    from quit.annotation.reports import PushReport

    pushed: dict[str, list] = {}
    monkeypatch.setattr("quit.annotation.client.connect", lambda *_: None)

    def push(store, server, settings, items, *_, **__) -> PushReport:
        pushed["items"] = items
        return PushReport()

    monkeypatch.setattr("quit.annotation.push.push", push)
    for audit, splits in ((0, {"dev", "test"}), (12, {*SPLITS})):
        reviewing._push(SimpleNamespace(workspace=workspace, settings=_settings(audit)), "", None, False, False)
        assert {item.split for item in pushed["items"]} == splits


def test_without_an_audit_nothing_is_drawn_asked_or_said(workspace: Workspace) -> None:
    review = _settings(0).review
    assert draw_audit(workspace, _settings(0)) == {} == audit_figures(workspace, review)
    assert not (workspace.path / "reviews").exists() and "audit" not in review_status(workspace, review)
    assert {item.split for item in review_items(workspace, review, 0.5)} == {"dev", "test"}


def test_what_is_drawn_stays_drawn_until_another_number_is_set(workspace: Workspace) -> None:
    needed = draw_audit(workspace, _settings(20))
    before = _stored(workspace)
    assert len(before["sample"]) == 20 and draw_audit(workspace, _settings(20)) == needed
    _judge(workspace, sorted(needed))
    workspace.set_current({**workspace.state, "label": "f0"})
    assert draw_audit(workspace, _settings(20)) == needed and _stored(workspace) == before
    assert draw_audit(workspace, _settings(0)) == {} and _stored(workspace) == before
    draw_audit(workspace, _settings(21))
    after = _stored(workspace)["sample"]
    assert len(after) == 21 and not {row["question_id"] for row in after} & needed.keys()  # those are decided


def test_strata_are_split_and_label(workspace: Workspace) -> None:
    draw_audit(workspace, _settings(24))
    audit = _stored(workspace)
    sizes = np.array(audit["numbers"])[..., 0].sum(axis=2)
    drawn = Counter((row["split"], row["label"] - 1) for row in audit["sample"])
    expected = dict(np.ndenumerate(allocation(sizes.ravel(), 24).reshape(3, 2)))
    assert drawn == expected and min(drawn.values()) > 0
    labels = {(row["question_id"], row["permutation"]): row["label"] for row in _rows()["labels"]}
    assert all(labels[row["question_id"], row["permutation"]] == row["label"] for row in audit["sample"])


def test_allocation_by_hand() -> None:
    # A quarter of 8 evenly over two strata (1 each), the rest 5 to 1: quotas 6 and 2.
    assert allocation(np.array([1000, 200]), 8).tolist() == [6, 2]
    assert allocation(np.array([1000, 0, 1]), 8).tolist() == [7, 0, 1]
    assert allocation(np.array([3, 2]), 9).tolist() == [3, 2]


def test_people_are_asked_no_more_than_the_audit_needs_and_cannot_tell(workspace: Workspace) -> None:
    settings = _settings(12)
    needed = draw_audit(workspace, settings)
    items = review_items(workspace, settings.review, 0.5, audit=needed)
    places = [item.question_id in needed for item in items]
    assert places == sorted(places, reverse=True) and {item.question_id for item in items if item.audited} == {*needed}
    ordinary = {item.question_id: item for item in review_items(workspace, settings.review, 0.5)}
    for item in items:
        if item.split == "train":
            assert {answer.key for answer in item.answers} == needed[item.question_id] | {"gold"}
        else:
            assert make_task(item) == make_task(ordinary[item.question_id])
    train = next(item for item in items if item.split == "train")
    controls = Controls({train.question_id: {"gold": True}})
    assert train in mix_controls(items, controls, _settings(12, control_share=0.0).review, "seed")


def test_until_all_are_judged_open_passages_count_both_ways(workspace: Workspace) -> None:
    settings = _settings(30)
    needed = sorted(draw_audit(workspace, settings))
    text = markdown(pieces(review_status(workspace, settings.review)))
    assert "people have judged 0 of 30 passages drawn" in text and "no estimate stands" in text
    widths = []
    for question_ids in (needed[:5], needed[5:]):
        _judge(workspace, question_ids)
        figures = _figures(workspace, settings)
        widths.append([row["high"] - row["low"] for row in figures["shares"]])
        assert (figures["judged"] == 30) == all(row["estimate"] is not None for row in figures["shares"])
    assert all(np.array(widths[0]) >= widths[1]) and min(widths[1]) > 0
    for row in figures["shares"]:
        assert row["low"] <= row["estimate"] <= row["high"]
    ReviewStore(workspace).append(said("bob", 999, question=needed[0], flag_leak=True))
    text = markdown(pieces(review_status(workspace, settings.review)))
    assert "| ada | 20 | 80 | 0 |" in text and "| bob | 1 | 0 | 0 |" in text


def test_what_people_decide_later_bounds_the_totals(workspace: Workspace) -> None:
    settings = _settings(10)
    draw_audit(workspace, settings)
    _judge(workspace, [row["question_id"] for row in _rows()["splits"] if row["split"] == "dev"])
    [dev] = [row for row in _figures(workspace, settings)["shares"] if row["of"] == "dev"]
    given = [answers for (one, _), answers in _answers().items() if int(one[1:]) % 3 == 1]
    share = sum(bool(answers & RIGHT) for answers in given) / len(given)
    assert (dev["low"], dev["high"], dev["estimate"]) == pytest.approx((share, share, share))


def test_a_decided_answer_settles_every_passage_that_has_it_and_leaves_the_draw(workspace: Workspace) -> None:
    _judge(workspace, [row["question_id"] for row in _rows()["splits"]], ("gold",))
    draw_audit(workspace, _settings(10**6))
    sample = {(row["question_id"], row["permutation"]) for row in _stored(workspace)["sample"]}
    assert sample == {passage for passage, given in _answers().items() if given and "gold" not in given}


def test_a_rejected_passage_stays_open_where_a_labeler_was_not_asked(tmp_path: Path) -> None:
    data = _rows(6)
    for row in data["answers/two"]:
        row |= {"answer": "NO ANSWER", "asked": False}
    for row in data["answers/one"]:
        row |= {"answer": "zinc", "asked": row["question_id"] != "q001"}
    workspace, settings = tiny.workspace(tmp_path / "W", data, people=False), _settings(10**6)
    assert sorted(draw_audit(workspace, settings)) == ["q000", "q002", "q003", "q004", "q005"]
    _judge(workspace, [f"q00{number}" for number in range(6)])
    figures = _figures(workspace, settings)
    assert (figures["drawn"], figures["judged"]) == (20, 0)
    assert next(row for row in figures["shares"] if row["of"] == "all")["passages"] == 20
    assert figures["accuracy"]["answers"]["estimate"] is not None  # all its verdicts were judged


def test_questions_in_no_split_do_not_count(tmp_path: Path) -> None:
    data = _rows(6)
    del data["splits"][2]
    workspace, settings = tiny.workspace(tmp_path / "W", data, people=False), _settings(10**6)
    assert "q002" not in draw_audit(workspace, settings)
    assert [row["passages"] for row in _figures(workspace, settings)["shares"][:4]] == [8, 8, 4, 20]


@pytest.mark.parametrize("stage", ["label", "split"])
def test_new_labels_or_splits_do_not_change_the_figures_and_are_said(workspace: Workspace, stage: str) -> None:
    settings = _settings(20)
    _judge(workspace, sorted(draw_audit(workspace, settings)))
    before = _figures(workspace, settings)
    workspace.set_current({name: value for name, value in workspace.state.items() if name != stage})
    after = _figures(workspace, settings)
    assert (before["stale"], after["stale"]) == (False, True) and "made anew" in audit_pieces(after)[0]
    columns = ("of", "passages", "judge", "audited", "wrong")
    first, second = ([[row[name] for name in columns] for row in some["shares"]] for some in (before, after))
    assert first == second
