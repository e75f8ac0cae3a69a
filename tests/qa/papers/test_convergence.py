"""The tables of Context Convergence against a loop over the rows of a build of extremes, and scores by hand."""

import itertools
import json
import math
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.qa.papers.convergence import answer_scores, design_rows
from tests.answers import answers_in
from tests.building import build
from tests.running import call_quit

DESIGN = (
    "passages.hints='all'", "passages.sizes=[1, 2, 3]", "passages.orders=['ascending', 'descending']",
    "passages.extremes=2", "passages.by=['convergence', 'cosine']", "collect.questions=8",
)  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "answers", "scores"),
    [
        ("lake baikal", ["Lake Baikal"], (1, 1, 1, 1, 1)),
        ("the Lake", ["Lake Baikal"], (0, 0, 0.5, 0.5, 0.5)),
        ("Baikal", ["Lake Baikal", "Baikal Lake!"], (0, 1, 1, 0.5, 2 / 3)),
        ("a big, big cat", ["big dog", "cat"], (0, 1, 0.25, 1, 0.4)),
        ("", ["x"], (0, 0, 0, 0, 0)),
        ("NO ANSWER", ["an"], (0, 0, 0, 0, 0)),
        ("…", ["x"], (0, 0, 0, 0, 0)),
    ],
)
def test_scores_of_a_reply(reply: str, answers: list[str], scores: tuple[float, ...]) -> None:
    assert answer_scores(reply, answers) == pytest.approx(scores)


@pytest.mark.slow
def test_the_tables_are_those_of_a_loop_over_the_rows(tmp_path: Path) -> None:
    extremes = tmp_path / "W"
    build(extremes, *DESIGN)
    workspace = Workspace.open(extremes)
    golds = {row["question_id"]: row["answers"] for row in workspace.read("questions").to_pylist()}
    hints: dict[str, list[float]] = {}
    for row in workspace.read("ranked_hints").sort_by("rank").to_pylist():
        hints.setdefault(row["question_id"], []).append(row["convergence"])
    equal: dict[tuple[str, str], list[bool]] = {}
    for row in answers_in(workspace):
        values, name = hints[row["question_id"]], row["permutation"]
        sets = [some for size in (1, 2, 3) for some in itertools.combinations(range(len(values)), size)]
        means = [round(math.fsum(values[rank] for rank in some) / len(some), 9) for some in sets]
        lowest = sorted(range(len(sets)), key=lambda place: (means[place], place))[:2]
        if tuple(sorted(map(int, name))) in [sets[place] for place in lowest]:
            is_equal = row["answer"].lower() in [gold.lower() for gold in golds[row["question_id"]]]
            for order, ranks in (("descending", sorted(name)), ("ascending", sorted(name, reverse=True))):
                if list(name) == ranks:  # one hint has both orders
                    equal.setdefault((row["reader"], order), []).append(is_equal)
    rows = [row for row in design_rows(extremes) if (row["by"], row["end"]) == ("convergence", "low")]
    ours = {(row["reader"], row["order"]): row for row in rows if row["order"] != "both"}
    assert {key: (row["passages"], row["equal"]) for key, row in ours.items()} == {
        key: (len(values), pytest.approx(sum(values) / len(values))) for key, values in equal.items()
    }
    told = json.loads(call_quit("papers", "table", "convergence-2", extremes, "--json").out)
    for row in told["rows"]:
        cell = row["values"]["Low / Ascending"]
        assert cell["here"] == pytest.approx(100 * ours[row["labels"][0], "ascending"]["equal"])
        assert not cell["published"] and cell["difference"] is None
    printed = call_quit("papers", "table", "convergence-1", extremes)
    assert printed.out.count("here") == 2 * len(told["rows"]) and "lacks its figures" in printed.out
    assert "no language models" in printed.err
    call_quit("export", "-w", extremes, "--out", tmp_path / "exports", "-q")
    assert [path.name for path in (tmp_path / "exports").iterdir()] == ["huggingface"]


def test_another_design_is_refused(built: Path) -> None:
    with pytest.raises(InputError, match="--profile convergence"):
        design_rows(built)
