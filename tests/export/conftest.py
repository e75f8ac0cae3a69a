"""A small release with awkward texts: seven questions in three splits, three labelers, three readers."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from quit.common.ids import hint_id, passage_id
from quit.contracts.tables import table
from quit.dataset.dataset import ExportTables, ReaderInfo
from quit.models.protocols import NO_ANSWER
from quit.stages.labelling.answers import Answers
from quit.stages.labelling.passages import enumerate_passages, permutations
from quit.text.normalize import normalize_answer

SPLIT = {"a-1": "train", "a-2": "test", "a-3": "train", "b-é4": "dev", "b-5": "train", "b-6": "test", "b-7": "dev"}
WRONG = ['He said "no"', "back\\slash", "Ελλάδα\u2028", NO_ANSWER]
READERS = tuple(
    ReaderInfo(f"{role}-{letter}", role, f"{role}-{letter}@1", "embedded")
    for role in ("labeler", "reader")
    for letter in "xyz"
)


def answer_of(number: int, row: int, reader: int) -> str:
    """What a reader answers: right (in two surface forms) for some rows, else one of the wrong answers."""
    draw = (number * 31 + row * 7 + reader * 13) % 11
    if draw == 0:
        return f'Gold "{number}"'
    if draw == 1:
        return f"the gold {number}!"
    return WRONG[(row + reader) % len(WRONG)]


def make_tables(split: dict[str, str] = SPLIT) -> ExportTables:
    """Return the release, labels derived one row at a time: slow and plain, as a truth to compare with."""
    ids, perms = list(split), ["".join(map(str, one)) for one in permutations(5)]
    gold = {one: f'Gold "{number}"' for number, one in enumerate(ids)}
    rows = {name: [] for name in ("questions", "hints", "ranked_hints", "descriptions", "splits", "verdicts", "labels")}
    valid: list[dict] = []
    answers: dict[str, list[dict]] = {info.name: [] for info in READERS}
    for number, one in enumerate(ids):
        typed = {"coarse": "LOC:LOCATION" if number % 2 else "HUM:HUMAN", "fine": "x:y"}
        rows["questions"].append(
            {"question_id": one, "question": f"Who is “{number}” \\ of it?", "answers": [gold[one]], "source": one[0],
             "content_key": one, **typed}
        )  # fmt: skip
        rows["splits"].append({"question_id": one, "parametric": not number % 3, "split": split[one], "draw": 0.5})
        rows["descriptions"].append(
            {"question_id": one, **typed, "type_confidence": 1.0, "type_producer": "source", "answerability": 0.1,
             "answer_share": 0.1, "completeness": 0.1, "similarity": 0.1, "difficulty": number / 10,
             "difficulty_bin": "easy" if number < 3 else "hard", "difficulty_producer": "rrcp@1"}
        )  # fmt: skip
        for place in range(7):
            hint = f'It\t"is" {number}\\{place} of ünï\u2028 {"many " * place}words.'
            rows["hints"].append(
                {"hint_id": hint_id(one, place), "question_id": one, "position": place, "hint": hint,
                 "source": "triviahg" if place % 2 else "wikihint", "file": "f.json"}
            )  # fmt: skip
            rows["ranked_hints"].append(
                {"question_id": one, "rank": (place + 2) % 7, "hint_id": hint_id(one, place), "hint": hint,
                 "convergence": place / 10, "producer": "source", "selected": (place + 2) % 7 < 5}
            )  # fmt: skip
        forms: dict[str, str] = {gold[one]: "gold"}
        seen: dict[str, str] = {}
        for row, permutation in enumerate(perms):
            right = []
            for reader, info in enumerate(READERS):
                text = answer_of(number, row, reader)
                seen.setdefault(normalize_answer(text), text)
                answers[info.name].append(
                    {"question_id": one, "permutation": permutation, "reader": info.name, "answer": text, "raw": text,
                     "producer": info.identity}
                )  # fmt: skip
                if info.role == "labeler" and "old" in text:
                    right.append(info.name)
                    forms.setdefault(text, "labeler")
            rows["labels"].append(
                {"question_id": one, "permutation": permutation, "label": 2 if right else 1, "labelers": right}
            )
        for text, origin in forms.items():
            valid.append({"question_id": one, "answer": text, "answer_key": normalize_answer(text), "origin": origin,
                          "passages": 1})  # fmt: skip
        for key, text in seen.items():
            rows["verdicts"].append(
                {"question_id": one, "answer_key": key, "answer": text, "correct": "old" in text, "basis": "model",
                 "passages": 1, "judge": "rules", "producer": "rules@1", "raw": "Yes"}
            )  # fmt: skip
    made = {name: table(name).from_rows(some) for name, some in rows.items()}
    return ExportTables(
        **made,
        passages=enumerate_passages(ids, 5),
        answers={name: Answers.of(pa.Table.from_pylist(rows)) for name, rows in answers.items()},
        valid_answers=table("valid_answers").from_rows(valid),
        readers=READERS,
        provenance={
            "settings": {"seed": "1"},
            "fingerprints": {"labels": "abc"},
            "program_version": "0.1.0",
            "sources": [
                {"name": "TriviaHG", "file": "t.json", "checksum": "12", "licence": "MIT", "citation": "@x{triviahg}"},
                {"name": "WikiHint", "file": "w.json", "checksum": "34", "licence": "CC BY 4.0"},
            ],
        },
        embedded=True,
    )


def as_dictionaries(tables: ExportTables, rows: int = 1_000) -> ExportTables:
    """Return the same release with dictionary-encoded columns in many chunks, as reading Parquet parts gives them."""

    def encode(one: pa.Table) -> pa.Table:
        parts = []
        for start in range(0, one.num_rows, rows):
            part = one.slice(start, rows).combine_chunks()
            columns = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in part.columns]
            parts.append(pa.table(columns, names=part.column_names))
        return pa.concat_tables(parts)

    answers = {name: Answers(encode(given.rows), encode(given.distinct)) for name, given in tables.answers.items()}
    return replace(tables, answers=answers, labels=encode(tables.labels), passages=encode(tables.passages))


def truth_of(tables: ExportTables) -> SimpleNamespace:
    """Return what formats must hold, by passage id: ``texts``, ``labels``, ``owner`` (its question); and ``questions``:
    id -> text."""
    hints: dict[str, list[str]] = {}
    for row in sorted(tables.ranked_hints.to_pylist(), key=lambda row: row["rank"]):
        if row["selected"]:
            hints.setdefault(row["question_id"], []).append(row["hint"])
    texts, labels, owner = {}, {}, {}
    for row in tables.labels.to_pylist():
        name = passage_id(row["question_id"], row["permutation"])
        texts[name] = " ".join(hints[row["question_id"]][int(one)] for one in row["permutation"])
        labels[name], owner[name] = row["label"], row["question_id"]
    questions = {row["question_id"]: row["question"] for row in tables.questions.to_pylist()}
    return SimpleNamespace(texts=texts, labels=labels, owner=owner, questions=questions, names=list(texts))


def jsonl(path: Path) -> list[dict]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def flat(text: str) -> str:
    """Return a text as formats of one line a text have it."""
    return text.replace("\t", " ").replace("\u2028", " ")


@pytest.fixture(scope="session")
def tables() -> ExportTables:
    return make_tables()


@pytest.fixture(scope="session")
def release() -> SimpleNamespace:
    """The helpers above, for tests: a conftest cannot be imported under every import mode."""
    return SimpleNamespace(make=make_tables, as_dictionaries=as_dictionaries, split=SPLIT, readers=READERS)
