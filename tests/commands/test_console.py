"""What tables look like at 80 columns and piped, drawn by the real console."""

import io
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.text import Text

from quit.commands import console, question
from quit.common.terminal import SafeConsole
from quit.engine.workspace import Workspace
from quit.operations.plan import Line, Plan
from quit.render import terminal
from tests.report import tiny

READERS = ["minilm-statement", "minilm-contrast", "a-reader-with-a-long-name-1", "minilm-evidence", "five", "six"]
ANSWERS = dict.fromkeys(READERS[:4], "Constantinople") | dict.fromkeys(READERS[4:], "[b]")
HINT = {"rank": 0, "hint_id": "jsonl-geo-003-h01", "selected": True, "convergence": 0.5, "file": ""}
LIFE = {
    "question_id": "jsonl-geo-003",
    "labelers": READERS[:3],
    "question": {"question": "Which city is meant?", "answers": ["Istanbul"]},
    "candidates": ["Constantinople"] * 12,
    "hints": [{**HINT, "hint": "It lies on two continents. " * 5}],
    "passages": [{"permutation": "01234", "label": 2, "answers": ANSWERS}],
    **dict.fromkeys(("origins", "rejects", "drawn_candidates", "leak_findings", "overrides", "probe"), ()),
    **dict.fromkeys(("verdicts", "valid_answers", "reviews", "changes"), ()),
    **dict.fromkeys(("description", "split", "embedded_labels")),
}
LINE = Line("a-model-with-a-long-name-8b", "probe", 1_000, 10, 2_000_000, 5_000, 3_600.0, 1.5)


@pytest.fixture(params=[80, None], ids=["a terminal", "a pipe"])
def drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The console with a file behind it: ``text()`` is what was printed."""
    file = io.StringIO()
    width = request.param or terminal.WIDEST
    out = SafeConsole(file=file, highlight=False, width=width, force_terminal=bool(request.param), color_system=None)
    monkeypatch.setattr(terminal, "console", lambda *_: out)
    return SimpleNamespace(text=file.getvalue, terminal=bool(request.param))


def _lines(drawn: SimpleNamespace) -> list[str]:
    lines = re.sub(r"\x1b\[[\d;]*m", "", drawn.text()).splitlines()
    if not drawn.terminal:
        assert all(line == line.rstrip() for line in lines)
    else:
        lines = [line.rstrip() for line in lines]
        assert max(map(len, lines)) <= 80, max(lines, key=len)
    return lines


def test_a_question_names_its_readers_whole_and_marks_labelers(drawn: SimpleNamespace) -> None:
    question.print_question(LIFE, 0)
    lines = _lines(drawn)
    readers = [line for line in lines if line.startswith("  ") and line[2:3].isdigit()]
    assert readers == [f"  {n}{'*' if n < 4 else ' '} {name}" for n, name in enumerate(READERS, start=1)]
    assert "1 passage; readers in brackets, * is a labeler:" in lines
    assert "01234        2  Constantinople (1 2 3 4), [b] (5 6)" in lines
    assert " ".join(" ".join(lines).split()).count("Constantinople") == 13
    if not drawn.terminal:
        assert sum("continents" in line for line in lines) == 1


def test_a_question_in_full(drawn: SimpleNamespace) -> None:
    """``question.json`` has what the tables would, ``question.txt`` what is to be printed of it."""
    story, expected = (
        Path(__file__).with_name(f"question.{kind}").read_text(encoding="utf-8") for kind in ("json", "txt")
    )
    question.print_question({**LIFE, **json.loads(story)}, 2)
    lines = [" ".join(line.split()) for line in _lines(drawn) if line]
    shown = [line for line in lines if "Constantinople" not in line and "continents" not in line]
    assert shown == expected.splitlines()


@pytest.mark.parametrize(
    ("count", "text"), [(9_999, "9,999"), (1e4, "10.0k"), (999_999, "1,000.0k"), (1e6, "1.0M"), (2.5e9, "2.5G")]
)
def test_numbers_of_a_plan_are_short(count: float, text: str) -> None:
    assert console._short(count) == text


def test_a_plan_has_totals_and_says_what_is_unknown(drawn: SimpleNamespace) -> None:
    costly = Plan(1, 325, (LINE, LINE), replace(LINE, model="total", role="", seconds=7_200.0, cost=3.0), ())
    console.print_plan(costly)
    lines = _lines(drawn)
    assert lines[0] == "1 question, 325 passages"
    assert [line.split()[2:] for line in lines if line.startswith("a-model-with")][2:] == [["1.00", "1.50"]] * 2
    assert ["total", "2.00", "3.00"] in [line.split() for line in lines]
    assert "unknown" not in drawn.text()
    free = replace(LINE, seconds=None, cost=None)
    console.print_plan(Plan(2, 650, (free,), replace(free, model="total"), ("a note",)))
    lines = _lines(drawn)[len(lines) :]
    assert "a-model-with-a-long-name-8b  probe  unknown  unknown" in lines
    # Of one line there is no sum, and an unknown price is none of zero.
    assert not any(line.startswith("total") or "0.00" in line for line in lines)


def test_the_rows_of_a_query_fit_a_terminal(drawn: SimpleNamespace) -> None:
    row = {f"name_of_column_{n}": [value] for n, value in enumerate(["x" * 100, 2**60, ["a", "b"], "w " * 40, None])}
    console.print_rows(pa.table(row))
    lines = _lines(drawn)
    assert "".join(lines).count("x") == 100 and (len(lines) == 2) is not drawn.terminal


HOSTILE = "\x1b[2J\x1b]8;;x\x07\x00\x9b1m\u202e"


def test_what_a_terminal_would_obey_is_shown(drawn: SimpleNamespace) -> None:
    life = {
        "passages": [{**LIFE["passages"][0], "answers": dict.fromkeys(READERS, HOSTILE)}],
        "hints": [{**LIFE["hints"][0], "hint": HOSTILE}],
        "verdicts": [{"correct": True, "basis": "rules", "answer": HOSTILE, "passages": 1, "votes": []}],
    }
    question.print_question({**LIFE, "candidates": [HOSTILE], **life}, 0)
    console.print_rows(pa.table({"reply": [HOSTILE]}))
    terminal.console().print(Text(HOSTILE))
    shown = re.sub(r"\x1b\[[\d;]*m", "", drawn.text())
    assert not {*shown} & {*"\x1b\x07\x00\x9b\u202e"}
    visible = r"\u001b[2J\u001b]8;;x\u0007\u0000\u009b1m\u202e"
    assert "".join(shown.split()).count(visible) == 5  # rich drops some of a Text


def test_the_commands_after_a_build_can_be_pasted(tmp_path: Path, drawn: SimpleNamespace) -> None:
    place = tmp_path / "my data"
    console.print_summary(tiny.workspace(place))
    commands = [shlex.split(line) for line in drawn.text().splitlines() if line.startswith("    quit ")]
    assert len(commands) == 7 and all({"-w", str(place)} <= {*words} for words in commands if words[1] != "models")
    assert "No language models: minilm-vector, minilm-late, minilm-evidence, the judge." in " ".join(
        drawn.text().split()
    )


def test_questions_beyond_a_limit_are_one_line_and_a_leak_has_ways_out(drawn: SimpleNamespace) -> None:
    names = ("stage", "kind", "reason", "detail", "file", "position", "record_id", "question_id", "hint_id")
    beyond = dict.fromkeys(names) | {
        "stage": "collect",
        "kind": "question",
        "reason": "beyond_questions",
        "detail": "5.",
    }
    leak = dict.fromkeys(names) | {"stage": "filter", "kind": "question", "reason": "answer_leak"}
    rows = [*({**beyond, "question_id": f"q{number}"} for number in range(59))]
    console.print_left_out([*rows, {**leak, "detail": "1 of 5 hints leak; q7-h02: 'Nile'"}], Workspace("W"))
    text = " ".join(drawn.text().split())
    assert text.count("beyond_questions") == 1 and "collect: 59 questions: beyond_questions" in text
    assert text.index("answer_leak") < text.index("--set leakage.mode=hint") < text.index("59 questions")
    assert "--hint q7-h02 --decision no_leak" in text
