"""What other labels change, against loops over passages, figures by hand, and builds in which nothing is left out."""

from itertools import product
from pathlib import Path
from random import Random

import pytest

from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.release.gates import Subject
from quit.release.rules import answered_of, opened
from quit.release.whatif import pieces, summary
from quit.render.table import Table, markdown
from quit.report.sections import sections
from tests.release import small
from tests.rows import table_of
from tests.running import call_quit

NAMES = ("a", "b", "c")
READERS = tuple(small.ReaderInfo(name, "labeler", f"{name}@1", "embedded") for name in NAMES)
Right = dict[tuple[str, str], list[bool | None]]
"""(question, permutation) -> whether a, b and c are right; None: not asked."""


def world(right: Right, least: int = 1) -> small.Rows:
    """Return the tables of the small release, where three labelers are right as told."""
    data = {name: rows for name, rows in small.rows().items() if "/" not in name}
    data |= {f"answers/{name}": [] for name in NAMES}
    for row in data["labels"]:
        of_passage = right[row["question_id"], row["permutation"]]
        row["label"] = 2 if sum(each is True for each in of_passage) >= least else 1
        row["labelers"] = [name for name, each in zip(NAMES, of_passage, strict=True) if each]
        for name, each in zip(NAMES, of_passage, strict=True):
            answer = {True: small.GOLD[row["question_id"]], False: "Wrong", None: "NO ANSWER"}[each]
            reply = {"reader": name, "answer": answer, "raw": answer, "producer": "x", "asked": each is not None}
            keys = {key: row[key] for key in ("question_id", "permutation")}
            data[f"answers/{name}"].append({**keys, **reply})
    return data


def subject(folder: Path, right: Right) -> Subject:
    """Return these tables as a release has them."""
    return Subject(small.write(folder, world(right)), READERS, small.settings())


def drawn(seed: int) -> Right:
    """Return who is right, by chance."""
    dice = Random(seed)
    return {key: [dice.random() < 0.4 for _ in NAMES] for key in product(small.SPLIT, small.PERMUTATIONS)}


def literal(before: Right, after: Right, left: list[str], least: int) -> dict:
    """Return the figures of a rule by a loop over passages: by (split, hints), and of questions by split."""
    figures: dict = {}
    had, have = {}, {}
    for (question, permutation), of_passage in before.items():
        now = any(of_passage)
        then = sum(bool(after[question, permutation][NAMES.index(name)]) for name in left) >= least
        had[question], have[question] = had.get(question, False) or now, have.get(question, False) or then
        for split, hints in product((small.SPLIT[question], "all"), (len(permutation), None)):
            counts = figures.setdefault((split, hints), [0, 0, 0, 0, 0])
            for place, true in enumerate((True, now, then, now and not then, then and not now)):
                counts[place] += true
    lost = {question for question in had if had[question] and not have[question]}
    gained = {question for question in had if have[question] and not had[question]}
    return {"labels": figures, "lost": lost, "gained": gained}


def counted(rows: list[dict], end: str) -> dict:
    """Return the rows of an effect as :func:`literal` has them."""
    names = ("count", "label_2", f"then_{end}", f"to_1_{end}", f"to_2_{end}")
    return {(row["split"], row["hints"]): [row[name] for name in names] for row in rows}


@pytest.mark.parametrize("seed", range(3))
def test_effects_are_those_of_a_loop_over_passages(tmp_path: Path, seed: int) -> None:
    right = drawn(seed)
    answered = answered_of(subject(tmp_path, right))
    rules = [answered.rule(NAMES[:2], min_right=2), answered.rule(without=["b"]), answered.rule(["c"], min_right=1)]
    rules += [answered.rule(min_right=3), answered.rule(["c", "a"], ["a"])]
    effects = answered.effects(rules)
    for rule, effect in zip(rules, effects, strict=True):
        truth = literal(right, right, list(rule.labelers), rule.min_right)
        assert counted(effect["labels"], "least") == counted(effect["labels"], "most") == truth["labels"]
        for loses, wanted in ((True, truth["lost"]), (False, truth["gained"])):
            assert {row["question_id"] for row in effect["changed"] if row["loses"] is loses} == wanted
            name = "to_1_least" if loses else "to_2_least"
            assert effect["questions"][-1][name] == len(wanted)
        assert all(row["certain"] for row in effect["changed"])


@pytest.mark.parametrize("seed", range(3))
def test_bounds_contain_the_truth_whatever_was_not_asked(tmp_path: Path, seed: int) -> None:
    """Of a passage, what follows a right answer is not asked, as with ``labels.partial = "exact"``."""
    right = drawn(seed)
    hidden = {
        key: [None if any(of_passage[:place]) else each for place, each in enumerate(of_passage)]
        for key, of_passage in right.items()
    }
    answered = answered_of(subject(tmp_path, hidden))
    narrow = 0
    for least, without in product((1, 2, 3), ("", "a", "b", "c")):
        left = [name for name in NAMES if name != without]
        if least > len(left):
            continue
        effect = answered.effects([answered.rule(left, min_right=least)])[0]
        truth = literal(right, right, left, least)
        low, high = (counted(effect["labels"], end) for end in ("least", "most"))
        for key, wanted in truth["labels"].items():
            assert all(one <= two <= three for one, two, three in zip(low[key], wanted, high[key], strict=True))
            narrow += low[key] == wanted == high[key]
        certain = {row["question_id"] for row in effect["changed"] if row["certain"]}
        assert certain <= truth["lost"] | truth["gained"] <= {row["question_id"] for row in effect["changed"]}
    assert narrow  # the rule in force is known


def test_flips_by_hand(tmp_path: Path) -> None:
    """Without c, and with two, q1 keeps its two passages of label 2, and q2 loses its only one; q3 never had one."""
    none = [False, False, False]
    right: Right = dict.fromkeys(product(small.SPLIT, small.PERMUTATIONS), none)
    right |= {("q1", "0"): [True, True, False], ("q1", "01"): [True, False, True], ("q2", "10"): [False, False, True]}
    answered = answered_of(subject(tmp_path, right))
    effects = {effect["title"]: effect for effect in answered.effects(answered.standard_rules())}
    assert list(effects) == ["without a", "without b", "without c", "two labelers right"]
    assert effects["without c"]["changed"] == [{"question_id": "q2", "split": "dev", "loses": True, "certain": True}]
    cells = {title: row for title, *row in summary(list(effects.values())).rows}
    assert cells["without c"] == [3, "2", "1", "0", "8.3%", "1"]
    assert cells["two labelers right"] == [3, "2", "1", "0", "8.3%", "1"]
    shown = pieces(effects["without c"], 1)[-1]
    assert isinstance(shown, Table) and (shown.rows, shown.more) == ([("q2", "dev", "loses all", "")], 0)


def test_another_judge_decides_where_people_do_not(tmp_path: Path) -> None:
    """The second judge rejects the gold answers of q1 and q2; people accept that of q2."""
    data = world({key: [True, False, False] for key in product(small.SPLIT, small.PERMUTATIONS)})
    for row in data["verdicts"]:
        row["basis"] = "review" if (row["question_id"], row["correct"]) == ("q2", True) else "model"
    second = [{**row, "correct": True, "judge": "kind"} for row in data["verdicts"]]
    for row in data["verdicts"]:
        second.append({**row, "correct": row["question_id"] == "q3" and row["correct"], "judge": "other"})
    frozen = Subject(small.write(tmp_path, data), READERS, small.settings())
    answered = answered_of(frozen, "other", table_of("second_verdicts", second))
    kind = answered_of(frozen, "kind", table_of("second_verdicts", second))
    assert kind.label_2(kind.rule())[0].sum() > answered.label_2(answered.rule())[0].sum()
    effect = answered.effects([answered.rule()])[0]
    assert [row["question_id"] for row in effect["changed"]] == ["q1"] and effect["labels"][-1]["to_1_least"] == 4
    assert answered_of(frozen, "rules").effects([answered.rule()])[0]["changed"] == []
    with pytest.raises(SettingsError, match=r"'nobody' on these answers are kept here. Kept: rules\. To ask"):
        answered_of(frozen, "nobody")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labelers": ["a", "d"]}, "'d' is no labeler here. Labelers: a, b, c"),
        ({"without": ["a", "b", "c"]}, "1 labeler must be right of 0"),
        ({"without": ["a"], "min_right": 3}, "3 labelers must be right of 2"),
    ],
)
def test_a_rule_that_cannot_be(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        answered_of(subject(tmp_path, drawn(0))).rule(**options)


@pytest.mark.slow
def test_the_command_says_the_same_of_a_workspace_and_its_release(full: Path, tmp_path: Path) -> None:
    waived = ("--waive", "human-coverage=a test", "--waive", "unjudged-answer=a test")
    call_quit("release", "create", "-w", full, "--name", "v1", "--out", tmp_path / "v1", *waived)
    options = ("--without", "minilm-evidence", "--json")
    places = (full, tmp_path / "v1")
    of_workspace, of_release = (call_quit("release", "what-if", place, *options).json() for place in places)
    assert of_workspace == of_release and of_release[0]["labels"][-1]["to_1_least"] == 10
    assert len(Workspace.open(full).read("second_verdicts")) == 0
    refused = call_quit("release", "what-if", full, "--judge", "gpt", code=4)
    assert "Kept: equivalence. To ask another judge:" in refused.err


@pytest.mark.slow
def test_the_report_has_every_leave_one_out(full: Path, exact: Path) -> None:
    for place in (full, exact):
        facts = call_quit("report", "-w", place, "--json").json()
        answered = opened(place)
        wanted = summary(answered.effects(answered.standard_rules()))
        [section] = [section for section in sections(facts) if section.name == "validity"]
        assert section.tables[0].rows == wanted.rows and len(wanted.rows) == 4
    assert " to " in str(wanted.rows)


def test_numbers_of_hints_that_a_split_lacks_have_no_row(tmp_path: Path) -> None:
    subject = small.subject(tmp_path, small.other_design([("q1", "01")]))
    answered = answered_of(subject)
    [effect] = answered.effects([answered.rule(["one"])])
    counts = {(row["split"], row["hints"]): row["count"] for row in effect["labels"]}
    assert counts["train", None] == 2 and ("train", 2) not in counts and counts["all", 2] == 2
    assert markdown(pieces(effect, 5)).count("train") == 3  # labels of one hint and of all; questions
