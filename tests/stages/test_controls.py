"""The controls of the probe: what each reader is asked, who is drawn, and the figures that follow."""

import math
from types import SimpleNamespace

import duckdb
import pytest

from quit.evaluate.controls import control_figures
from quit.models.protocols import Prompt
from quit.settings import Settings
from quit.stages.controls import controls_stage
from quit.stages.stage import Context
from tests.answers import Reads, Rules
from tests.rows import table_of

HINTS = {"a": ["It flows north.", "It is long."], "b": ["He came from Malaga."], "c": ["It floods."], "d": ["Old."]}
GOLD = {"a": "Nile", "b": "Picasso", "c": "the Nile", "d": "Rome"}


def _controls(size: int, names: str = "abcd") -> tuple[list[dict], list[Prompt]]:
    """Ask a reader that answers "Nile" to whatever has a hint about water, else "Perhaps"."""
    reader = Reads(lambda prompt, sample: "Nile" if "flo" in " ".join(prompt.hints) else "Perhaps")
    models = SimpleNamespace(reader=lambda name, whole: reader, judge=Rules({"Perhaps": None}))
    context = Context({}, Settings(probe={"controls": size}), models, reader="r")
    probed = [
        {"question_id": name, "reader": "r", "repetition": at, "raw": "x", "answer": "x", "correct": not at}
        for name in names
        for at in (0, 1)
    ]

    def answered(columns, reader, question_ids):
        assert reader == "r"
        rows = [row for row in probed if row["question_id"] in question_ids]
        return table_of("probe_answers", rows).select(columns)

    tables = controls_stage.function(
        context,
        table_of("questions", [{"question_id": n, "question": f"{n}?", "answers": [GOLD[n]]} for n in names]),
        table_of("descriptions", [{"question_id": name} for name in names]),
        table_of("ranked_hints", [{"question_id": name, "hint_id": f"{name}{rank}", "hint": hint, "rank": rank,
                                   "selected": True} for name in names for rank, hint in enumerate(HINTS[name])]),
        answered,
    )  # fmt: skip
    return tables["controls"].to_pylist(), reader.asked


def test_what_each_control_asks() -> None:
    rows, prompts = _controls(4)
    by_name = {name: [prompt for prompt in prompts if prompt.question_id == name] for name in "abcd"}
    for name, (alone, shuffled, other) in by_name.items():
        assert alone == Prompt(name, "", tuple(HINTS[name]))  # neither the question nor its type
        assert (shuffled.question, shuffled.coarse) == (f"{name}?", "LOC:LOCATION")
        assert sorted(shuffled.hints[0].split()) == sorted(" ".join(HINTS[name]).split()) and len(shuffled.hints) == 1
        [owner] = [one for one in "abcd" if tuple(HINTS[one]) == other.hints]
        assert other.question == f"{name}?" and owner != name and {owner, name} != {"a", "c"}  # both are the Nile
    assert by_name["a"][1].hints[0] != " ".join(HINTS["a"])
    found = {(row["question_id"], row["control"]): (row["answer"], row["correct"]) for row in rows}
    assert len(rows) == 16 and found["a", "no hints"] == ("x", True)  # the probe's first answer
    assert (found["a", "no question"], found["c", "no question"]) == (("Nile", True), ("Nile", True))
    assert found["b", "no question"] == ("Perhaps", None)


def test_a_larger_sample_keeps_the_smaller_and_alone_there_are_no_other_hints() -> None:
    small, large = ({row["question_id"] for row in _controls(size)[0]} for size in (2, 3))
    assert small < large and len(small) == 2
    assert {row["control"] for row in _controls(5, "a")[0]} == {"no hints", "no question", "shuffled words"}


def test_figures_by_hand() -> None:
    rows = [*zip("abc", ["no question"] * 3, (True, None, False), strict=True), ("a", "no hints", False)]
    controls = [dict(zip(("question_id", "control", "correct"), row, strict=True)) | {"reader": "r"} for row in rows]
    passages = [("a", "0", 2), ("a", "1", 1), ("b", "0", 1), ("z", "0", 2)]
    labels = [dict(zip(("question_id", "permutation", "label"), row, strict=True)) for row in passages]
    with duckdb.connect() as connection:
        connection.register("controls", table_of("controls", controls))
        connection.register("labels", table_of("labels", labels))
        [no_hints, no_question] = control_figures(connection)
    assert (no_hints["control"], no_hints["label_2"]) == ("no hints", 0.5)
    assert (no_question["questions"], no_question["correct"], no_question["label_2"]) == (3, 1, 0.25)  # c has no label
    z, n, share = 1.959963984540054, 3, 1 / 3  # Wilson 1927
    middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    expected = [(middle + sign * width) / (1 + z * z / n) for sign in (-1, 1)]
    assert [no_question["low"], no_question["high"]] == pytest.approx(expected)
