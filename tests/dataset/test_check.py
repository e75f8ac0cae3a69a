"""What contracts say of a release's tables: every fault is named with table, row and rule; a sound release has none."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.dataset import check
from quit.dataset.check import Fault, faults
from quit.dataset.files import TableFiles, contract
from quit.errors import InputError
from quit.settings import PassageDesign
from quit.text.answers import VERSION
from tests.paths import FEW
from tests.release import small
from tests.report import tiny
from tests.running import call_quit

Change = Callable[[small.Rows], object]
MUTATIONS = 100


def _faults(folder: Path, rows: small.Rows) -> list[Fault]:
    subject = small.subject(folder, rows)
    return list(faults(subject.files, subject.readers, subject.settings))


def _row(table: str, place: int, **values: object) -> Change:
    return lambda rows: rows[table][place].update(values)


def _extra(table: str, place: int, **values: object) -> Change:
    return lambda rows: rows[table].append({**rows[table][place], **values})


def _lost(table: str, place: int) -> Change:
    return lambda rows: rows[table].pop(place)


_CHANGED = {"question_id": "q1", "answer": "Nile", "answer_key": "nile", "reviews": ["r"], "reason": "why"}
CASES: list[tuple[Change, str]] = [
    # keys
    (_extra("splits", 0), "splits: q1: 2 rows with the key question_id"),
    (_extra("verdicts", 0), "verdicts: q1 / nile / rules: 2 rows with the key question_id, answer_key, judge"),
    (_extra("valid_answers", 0), "valid_answers: q1 / Nile: 2 rows with the key question_id, answer"),
    (_extra("labels", 0, question_id="q9"), "labels: q9 / 0: the question is not in splits"),
    # names
    (_row("splits", 0, split="extra"), "splits: q1: split is 'extra'"),
    (_row("labels", 0, label=3), "labels: q1 / 0: label is 3"),
    (_row("verdicts", 0, basis="guess"), "verdicts: q1 / nile / rules: basis is 'guess'"),
    (_row("rejects", 0, kind="verse"), "rejects: update: kind is 'verse'"),
    (_extra("rejects", 0, kind="verse", question_id="q9"), "rejects: update: kind is 'verse'"),
    # references
    (_row("ranked_hints", 0, hint="It flows south."), "ranked_hints: q1-h00: hints has no row with this hint_id,"),
    (_row("hint_roles", 0, hint_id="q1-h01"), "hint_roles: q1-h01: ranked_hints has no row with this hint_id,"),
    (_row("passages", 1, subset="1"), "passages: q1 / 01: permutations has no row with this permutation, subset"),
    (_row("verdicts", 1, answer="wrong"), "verdicts: q1 / wrong / rules: distinct_answers has no row with this"),
    (_row("verdicts", 3, correct=None), "distinct_answers: q2 / one / 1: judged has no row with this question_id"),
    (_lost("verdicts", 3), "distinct_answers: q2 / one / 1: judged has no row with this question_id, answer_key"),
    # required rows
    (_lost("questions", 2), "questions: q3: it is missing"),
    (_lost("descriptions", 2), "descriptions: q3: it is missing"),
    (_lost("question_roles", 2), "question_roles: q3: it is missing"),
    (_lost("hint_roles", 3), "hint_roles: q2 / 1: it is missing"),
    (_lost("valid_answers", 0), "valid_answers: q1 / Nile: it is missing"),
    *(
        (_lost(table, 5), f"{table}: q2: 3 rows, expected its 4 passages, each once, in depth-first order")
        for table in ("passages", "labels", "answers/one", "answers/two")
    ),
    (_row("passages", 5, permutation="0"), "passages: q2: 4 rows, expected its 4 passages, each once"),
    (_extra("passages", 5, permutation="7"), "passages: q2: 5 rows, expected its 4 passages, each once"),
    (lambda rows: rows["labels"].insert(0, rows["labels"].pop(1)), "labels: q1: 4 rows, expected its 4 passages"),
    # what follows from other columns
    (_row("questions", 0, question="Which river?"), "questions: q1: content_key is '3d2625f4d808ac10', expected"),
    (_row("hints", 0, position=7), "hints: q1-h00: hint_id is 'q1-h00', expected 'q1-h07'"),
    (_row("ranked_hints", 1, rank=5), "ranked_hints: q1-h01: rank is 5, expected 1"),
    (_row("ranked_hints", 5, selected=False), "ranked_hints: q3-h01: selected is False, expected True"),
    (_row("splits", 0, draw=0.1), "splits: q1: draw is 0.1, expected 0.3526"),
    (_row("descriptions", 0, difficulty_bin="hard"), "descriptions: q1: difficulty_bin is 'hard', expected 'easy'"),
    (_row("labels", 2, label=2), "labels: q1 / 1: label is 2, expected 1"),
    (_row("labels", 0, labelers=["nobody"]), "labels: q1 / 0: labelers is ['nobody'], expected ['one']"),
    (_row("answers/one", 0, producer="me"), "answers: q1 / 0 / one: producer is 'me', expected 'one@1'"),
    (_row("answers/one", 0, reader="two"), "answers: q1 / 0 / two: reader is 'two', expected 'one'"),
    (_row("answers/one", 0, asked=False), "answers: q1 / 0 / one: asked is False, expected True"),
    (_row("verdicts", 0, correct=False), "verdicts: q1 / nile / rules: correct is False, expected True"),
    (_row("verdicts", 0, passages=3), "verdicts: q1 / nile / rules: passages is 3, expected 2"),
    (_row("verdicts", 1, basis="exact"), "verdicts: q1 / wrong / rules: basis is 'exact', expected 'model'"),
    (_row("verdicts", 0, judge="you"), "verdicts: q1 / nile / you: judge is 'you', expected 'rules'"),
    (_row("valid_answers", 0, answer_key="x"), "valid_answers: q1 / Nile: answer_key is 'x', expected 'nile'"),
    (_row("valid_answers", 0, origin="labeler"), "valid_answers: q1 / Nile: origin is 'labeler', expected 'gold'"),
    (_row("valid_answers", 0, passages=1), "valid_answers: q1 / Nile: passages is 1, expected 2"),
    (_row("hint_roles", 0, shapley=0.5), "hint_roles: q1-h00: shapley is 0.5, expected 0.75"),
    (_row("question_roles", 0, unneeded_hints=None), "question_roles: q1: unneeded_hints is None, expected 1"),
    (_row("rejects", 0, kind="question", question_id="q1"), "rejects: update: kind is 'question', expected None"),
    (
        lambda rows: rows["changes"].append({**_CHANGED, "change": "answer_removed"}),
        "changes: q1 / answer_removed / Nile: change is 'answer_removed', expected 'answer_added'",
    ),
    (
        lambda rows: rows["changes"].append(
            {**_CHANGED, "change": "label", "permutation": "0", "before": 1, "after": 1}
        ),
        "changes: q1 / label / 0 / Nile: after is 1, expected 2",
    ),
]


def _rows() -> small.Rows:
    rows = small.rows()
    rows["rejects"].append({"kind": "hint", "question_id": "q1"})
    return rows


def test_a_sound_release_has_no_fault(tmp_path: Path) -> None:
    assert _faults(tmp_path, _rows()) == []


def test_an_unread_verdict_fails_one_gate(tmp_path: Path) -> None:
    """The answer of a labeler has no verdict, and is in no valid answers: what people may waive."""
    rows = _rows()
    valid = {(row["question_id"], row["answer_key"]) for row in rows["valid_answers"]}
    row = next(row for row in rows["verdicts"] if (row["question_id"], row["answer_key"]) not in valid)
    row.update(basis="model", correct=None)
    assert {fault.gate for fault in _faults(tmp_path, rows)} == {"unjudged-answer"}


def test_every_passage_may_have_changed_its_label(tmp_path: Path) -> None:
    rows = _rows()
    for row in rows["labels"]:
        own = {"question_id": row["question_id"], "permutation": row["permutation"], "answer": row["permutation"]}
        rows["changes"].append({**_CHANGED, **own, "answer_key": row["permutation"], "change": "label",
                                "before": 3 - row["label"], "after": row["label"]})  # fmt: skip
    assert _faults(tmp_path, rows) == []


@pytest.mark.parametrize(("change", "text"), CASES, ids=[text.partition(" ")[0] for _, text in CASES])
def test_a_fault_is_named_with_table_row_and_rule(tmp_path: Path, change: Change, text: str) -> None:
    rows = _rows()
    change(rows)
    assert any(str(fault).startswith(text) for fault in _faults(tmp_path, rows)), _faults(tmp_path, rows)


def _other(value: Any, kind: pa.DataType, draw: Random) -> Any:
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return (value or 0) + draw.choice([-1, 1, 7, 500])
    if pa.types.is_list(kind):
        return draw.choice([[*value, "nobody"], value[1:]])
    return draw.choice(["zzz", f"{value}x"])


def _mutate(rows: pa.Table, name: str, draw: Random) -> pa.Table | None:
    """Return the table with one row less or twice, or another value in a column that can be checked; None: the same."""
    table, place = contract(name), draw.randrange(len(rows))
    match draw.choice(["lost", "double", "value", "value", "value"]):
        case "lost" if table.key:
            return pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])
        case "double" if table.key:
            return pa.concat_tables([rows.slice(0, place + 1), rows.slice(place)])
    columns = [column for column in table.columns if column.name not in table.unchecked]
    column = draw.choice(columns)
    values = rows[column.name].to_pylist()
    others = values if not column.values and draw.random() < 0.3 else [_other(values[place], column.type, draw)]
    new = draw.choice(others)
    if new == values[place]:
        return None
    values[place] = new
    return rows.set_column(
        rows.schema.get_field_index(column.name), rows.schema.field(column.name), pa.array(values, column.type)
    )


@pytest.mark.slow
def test_nineteen_of_twenty_random_mutations_are_named(tmp_path: Path) -> None:
    subject = small.subject(tmp_path, _rows())
    draw, unnamed = Random(11), []
    whole = {name: pq.read_table(paths[0]) for name, paths in subject.files.parts.items()}
    names = [name for name, rows in whole.items() if len(rows)]
    mutations = 0
    while mutations < MUTATIONS:
        name = draw.choice(names)
        mutated = _mutate(whole[name], name, draw)
        if mutated is None:
            continue
        mutations += 1
        path = tmp_path / "mutated.parquet"
        pq.write_table(mutated, path)
        files = TableFiles({**subject.files.parts, name: [path]})
        if next(faults(files, subject.readers, subject.settings), None) is None:
            unnamed.append((name, mutated.to_pylist()))
    assert len(unnamed) <= MUTATIONS // 20, unnamed


NOBODY = "labels: q1 / 0: labelers is ['nobody'], expected ['one']"
READERS = ["readers.0.name=one", "readers.0.model=minilm-vector", "readers.1.name=two", "readers.1.model=minilm-late",
           "readers.1.role=reader"]  # fmt: skip


def test_entrances_that_look_at_every_row_name_one_that_is_wrong(tmp_path: Path) -> None:
    """A release whose checksums are right, alone and in a workspace, and a workspace's own tables."""
    rows = _rows()
    rows["labels"][0]["labelers"] = ["nobody"]
    workspace = tiny.workspace(tmp_path / "W", rows)
    small.freeze(tmp_path / "W" / "releases" / "v1", rows)
    verified = call_quit("release", "verify", tmp_path / "W" / "releases" / "v1", code=InputError.exit_code)
    assert NOBODY in verified.err
    assert NOBODY in call_quit("doctor", "-w", workspace, "--json", code=1).out
    shutil.rmtree(tmp_path / "W" / "releases")
    workspace.set_build({"profile": str(FEW), "overrides": READERS, "sources": []})
    assert NOBODY in call_quit("doctor", "-w", workspace, "--json", code=1).out


def test_keys_by_another_rule_are_those_of_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "answer_key", lambda text: f"new {text}")  # as a later program has it
    rows = small.rows()
    small.freeze(tmp_path / "old", rows, beside={"answer_keys": VERSION - 1})
    assert "Not compared: keys of answers" in call_quit("release", "verify", tmp_path / "old").err
    small.freeze(tmp_path / "own", rows, beside={"answer_keys": VERSION})
    wrong = call_quit("release", "verify", tmp_path / "own", code=InputError.exit_code).err
    assert "answer_key is 'nile', expected 'new Nile'" in wrong
    rows["verdicts"][0]["answer_key"] = "other"
    small.freeze(tmp_path / "mixed", rows, beside={"answer_keys": VERSION - 1})
    wrong = call_quit("release", "verify", tmp_path / "mixed", code=InputError.exit_code).err
    assert "verdicts: q1 / other / rules: distinct_answers has no row" in wrong


def _of_design(folder: Path, rows: small.Rows) -> list[str]:
    settings = small.settings().model_copy(update={"passages": PassageDesign(**small.DESIGN)})
    return [str(fault) for fault in faults(small.write(folder, rows), small.READERS, settings)]


def test_another_design_is_checked_by_its_own_passages(tmp_path: Path) -> None:
    """Sets that cosines chose are those of the table, with all their orders and no others; damage is named."""
    assert _of_design(tmp_path, small.other_design()) == []
    assert _of_design(tmp_path, small.other_design([("q1", "01"), ("q3", "1")])) == []
    for name, change, fault in (
        ("labels", lambda rows: rows.pop(0), "labels: q1: 2 rows, expected its 3 passages"),
        ("passages", lambda rows: rows.reverse(), "passages: q1: 3 rows, expected its 3 passages"),
        ("passages", lambda rows: rows[1].update(permutation="10"), "passages: q1: 3 rows, expected its 3 passages"),
        ("passages", lambda rows: rows[1].update(permutation="A!"), "passages: q1: 3 rows, expected its 2 passages"),
        ("ranked_hints", lambda rows: rows[0].update(selected=False), "labels: q1: 3 rows, expected its"),
    ):
        rows = small.other_design()
        change(rows[name])
        assert any(text.startswith(fault) for text in _of_design(tmp_path, rows)), fault
