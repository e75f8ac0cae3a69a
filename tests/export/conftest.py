"""A small release with awkward texts: seven questions in three splits, three labelers, three readers."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from quit.common.ids import hint_id, passage_id
from quit.dataset.dataset import Dataset
from quit.dataset.release import ReaderInfo
from quit.export import export
from quit.models.protocols import NO_ANSWER
from quit.stages.labelling.answers import Answers
from quit.stages.labelling.passages import enumerate_passages, permutation_table, permutations
from quit.text.answers import answer_key
from tests.rows import answers_in, table_of

SPLIT = {"a-1": "train", "a-2": "test", "a-3": "train", "b-é4": "dev", "b-5": "train", "b-6": "test", "b-7": "dev"}
AWKWARD = {"a b\t1": "train", 'q"2%': "dev", "c-3": "test", "d\u20284": "train", "e-5": "dev", "f 6": "train"}
"""Ids that most formats must escape."""
SPLITS = ("train", "dev", "test")
WRONG = ['He said "no"', "back\\slash", "Ελλάδα\u2028", NO_ANSWER]
READERS = tuple(
    ReaderInfo(f"{role}-{letter}", role, f"{role}-{letter}@1", "embedded")
    for role in ("labeler", "reader")
    for letter in "xyz"
)
SOURCES = [
    {"name": "TriviaHG", "file": "t.json", "checksum": "12", "licence": "MIT", "citation": "@x{triviahg}"},
    {"name": "WikiHint", "file": "w.json", "checksum": "34", "licence": "CC BY 4.0"},
]
PROVENANCE = {"settings": {"seed": "1"}, "fingerprints": {"labels": "abc"}, "program_version": "0.1.0"}


def answer_of(number: int, row: int, reader: int) -> str:
    """What a reader answers: right (in two surface forms) for some rows, else one of the wrong answers."""
    draw = (number * 31 + row * 7 + reader * 13) % 11
    right = {0: f'Gold "{number}"', 1: f"the gold {number}!"}
    return right.get(draw, WRONG[(row + reader) % len(WRONG)])


def make_tables(split: dict[str, str] = SPLIT) -> Dataset:
    """Return the release, labels derived one row at a time: slow and plain, as a truth to compare with."""
    perms = ["".join(map(str, one)) for one in permutations(5)]
    names = ("questions", "hints", "ranked_hints", "descriptions", "splits", "verdicts", "labels", "valid_answers")
    rows: dict[str, list[dict]] = {name: [] for name in names}
    answers: dict[str, list[dict]] = {info.name: [] for info in READERS}
    for number, one in enumerate(split):
        key, gold = {"question_id": one}, f'Gold "{number}"'
        typed = {"coarse": "LOC:LOCATION" if number % 2 else "HUM:HUMAN", "fine": "x:y"}
        question = f"Who is “{number}” \\ of it?"
        rows["questions"].append({**key, **typed, "question": question, "answers": [gold], "source": one[0]})
        rows["splits"].append({**key, "parametric": not number % 3, "split": split[one]})
        difficulty = {"difficulty": number / 10, "difficulty_bin": "easy" if number < 3 else "hard"}
        rows["descriptions"].append({**key, **typed, **difficulty})
        for place in range(7):
            hint = {**key, "hint_id": hint_id(one, place)}
            hint["hint"] = f'It\t"is" {number}\\{place} of ünï\u2028 {"many " * place}words.'
            rows["hints"].append({**hint, "position": place, "source": "triviahg" if place % 2 else "wikihint"})
            rank = (place + 2) % 7
            rows["ranked_hints"].append({**hint, "rank": rank, "convergence": place / 10, "selected": rank < 5})
        forms = {gold: "gold"}
        seen: dict[str, str] = {}
        for row, permutation in enumerate(perms):
            right = []
            for reader, info in enumerate(READERS):
                text = answer_of(number, row, reader)
                seen.setdefault(answer_key(text), text)
                answer = {"reader": info.name, "answer": text, "raw": text, "producer": info.identity}
                answers[info.name].append({**key, "permutation": permutation, **answer})
                if info.role == "labeler" and "old" in text:
                    right.append(info.name)
                    forms.setdefault(text, "labeler")
            label = {"label": 2 if right else 1, "labelers": right}
            rows["labels"].append({**key, "permutation": permutation, **label})
        for text, origin in forms.items():
            valid = {"answer": text, "answer_key": answer_key(text), "origin": origin}
            rows["valid_answers"].append({**key, **valid})
        for form, text in seen.items():
            verdict = {"answer_key": form, "answer": text, "correct": "old" in text}
            rows["verdicts"].append({**key, **verdict})
    filled = {name: table_of(name, some) for name, some in rows.items()}
    by_reader = {name: answers_in(pa.Table.from_pylist(rows)) for name, rows in answers.items()}
    common = {"readers": READERS, "provenance": {**PROVENANCE, "sources": SOURCES}}
    return Dataset(
        **filled, passages=enumerate_passages(list(split), permutation_table(5)), answers=by_reader, **common
    )


def as_dictionaries(tables: Dataset, rows: int = 1_000) -> Dataset:
    """Return the same release with dictionary-encoded columns in many chunks, as reading Parquet parts gives them."""

    def encode(one: pa.Table) -> pa.Table:
        parts = []
        for start in range(0, one.num_rows, rows):
            part = one.slice(start, rows).combine_chunks()
            columns = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in part.columns]
            parts.append(pa.table(columns, names=part.column_names))
        return pa.concat_tables(parts)

    answers = {name: Answers(encode(each.rows), encode(each.distinct)) for name, each in tables.answers.items()}
    return replace(tables, answers=answers, labels=encode(tables.labels), passages=encode(tables.passages))


def truth_of(tables: Dataset) -> SimpleNamespace:
    """Return what formats must hold, by passage id: ``texts``, ``labels``, ``owner`` (its question); and by question
    id: ``questions``, ``split``, ``valid`` (its answers)."""
    hints: dict[str, list[str]] = {}
    for row in sorted(tables.ranked_hints.to_pylist(), key=lambda row: row["rank"]):
        if row["selected"]:
            hints.setdefault(row["question_id"], []).append(row["hint"])
    truth = SimpleNamespace(texts={}, labels={}, owner={})
    for row in tables.labels.to_pylist():
        name = passage_id(row["question_id"], row["permutation"])
        truth.texts[name] = " ".join(hints[row["question_id"]][int(one)] for one in row["permutation"])
        truth.labels[name], truth.owner[name] = row["label"], row["question_id"]
    truth.questions = {row["question_id"]: row["question"] for row in tables.questions.to_pylist()}
    truth.split = {row["question_id"]: row["split"] for row in tables.splits.to_pylist()}
    truth.valid = {one: [] for one in truth.questions}
    for row in tables.valid_answers.to_pylist():
        truth.valid[row["question_id"]].append(row["answer"])
    return truth


def jsonl(path: Path) -> list[dict]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tsv(path: Path) -> list[list[str]]:
    """Return the cells of a file of tab-separated values without quotes."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def flat(text: str) -> str:
    """Return a text as formats of one line a text have it."""
    return text.replace("\t", " ").replace("\u2028", " ")


@pytest.fixture(scope="session")
def tables() -> Dataset:
    return make_tables()


@pytest.fixture(scope="session")
def awkward() -> Dataset:
    return make_tables(AWKWARD)


@pytest.fixture(scope="session")
def truth(awkward: Dataset) -> SimpleNamespace:
    return truth_of(awkward)


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tables: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of ``tables`` in the format that the module names: ``FORMAT``."""
    out = tmp_path_factory.mktemp("export")
    export(tables, [request.module.FORMAT], out)
    return out / request.module.FORMAT
