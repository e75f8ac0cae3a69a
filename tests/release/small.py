"""A release by hand: three questions with two hints each, one labeler, one reader. Nothing of the code under test makes
its tables."""

import copy
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quit.common.checksums import file_checksum
from quit.dataset.files import TABLES, TableFiles
from quit.dataset.release import LAYOUT, ReaderInfo, Release, checksum_of, content_id_of, open_release
from quit.release.gates import Subject
from quit.settings import parse
from quit.stages.labelling.answers import number_answers
from tests.rows import table_of

READERS = (ReaderInfo("one", "labeler", "one@1", "embedded"), ReaderInfo("two", "reader", "two@1", "embedded"))
SPLIT = {"q1": "train", "q2": "dev", "q3": "test"}
QUESTIONS = {
    "q1": "Which river runs through Cairo?",
    "q2": "Who painted Guernica?",
    "q3": "What is the capital of Peru?",
}
KEYS = {
    "q1": ("3d2625f4d808ac10", 0.35262358911763625),
    "q2": ("fc63db37f8f3b92a", 0.07977274632134823),
    "q3": ("e93dfce44d6c25ce", 0.6637763990634321),
}
"""The hash of each question (BLAKE2b of its words), and its draw: the same hash with the key `quit`, in [0, 1)."""
GOLD = {"q1": "Nile", "q2": "Picasso", "q3": "Lima"}
HINTS = {
    "q1": ["It flows north.", "It is very long."],
    "q2": ["He came from Malaga.", "He died in Mougins."],
    "q3": ["It lies on the Pacific.", "Pizarro founded it."],
}
PERMUTATIONS = ("0", "01", "1", "10")
Rows = dict[str, list[dict[str, Any]]]


def rows() -> Rows:
    """Return the rows of every table, with the columns that tests are about. The labeler is right (label 2) on passages
    that begin with hint 0, the reader never."""
    data: Rows = {name: [] for name in (*TABLES, "answers/one", "answers/two")}
    for one, split in SPLIT.items():
        key = {"question_id": one}
        data["splits"].append({**key, "parametric": split == "train", "split": split, "draw": KEYS[one][1]})
        question = {"question": QUESTIONS[one], "answers": [GOLD[one]], "content_key": KEYS[one][0]}
        data["questions"].append({**key, **question})
        data["descriptions"].append({**key, "difficulty": 0.1})
        for place, text in enumerate(HINTS[one]):
            hint = {**key, "hint_id": f"{one}-h0{place}", "hint": text}
            data["hints"].append({**hint, "position": place})
            data["ranked_hints"].append({**hint, "rank": place, "selected": True})
            role = {"shapley": (0.75, -0.25)[place], "smallest_set": (1, None)[place], "harmed": place / 2}
            data["hint_roles"].append({**key, "hint_id": hint["hint_id"], "rank": place, **role})
        sizes = {"fewest_in_every_order": 1, "fewest_in_some_order": 1, "unneeded_hints": 1}
        data["question_roles"].append({**key, **sizes, "order_dependent_sets": 1})
        for permutation in PERMUTATIONS:
            right, passage = permutation.startswith("0"), {**key, "permutation": permutation}
            data["passages"].append({**passage, "subset": "".join(sorted(permutation)), "hints": len(permutation)})
            data["labels"].append({**passage, "label": 2 if right else 1, "labelers": ["one"] if right else []})
            for reader, answer in (("one", GOLD[one] if right else "Wrong"), ("two", "NO ANSWER")):
                reply = {"reader": reader, "answer": answer, "raw": answer, "producer": f"{reader}@1"}
                data[f"answers/{reader}"].append({**passage, **reply})
        valid = {"answer": GOLD[one], "answer_key": GOLD[one].lower(), "origin": "gold", "passages": 2}
        data["valid_answers"].append({**key, **valid})
        for answer, correct, basis in ((GOLD[one], True, "exact"), ("Wrong", False, "model")):
            verdict = {
                "answer": answer,
                "answer_key": answer.lower(),
                "correct": correct,
                "basis": basis,
                "passages": 2,
            }
            data["verdicts"].append({**key, **verdict})
    return data


def write(folder: Path, data: Rows) -> TableFiles:
    """Write the tables as Parquet, by Arrow alone."""
    parts = {}
    for name, table in tables(data).items():
        path = folder / "tables" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        parts[name] = [path]
    return TableFiles(parts)


def tables(data: Rows) -> dict[str, pa.Table]:
    """Return the rows as Arrow tables; those of answers, which hold their texts, by number."""
    by_name = {}
    for name, rows in data.items():
        table, _, reader = name.partition("/")
        if reader:
            texts = ("question_id", "permutation", "reader", "answer", "raw", "producer", "ended")
            schema = pa.schema([*((column, pa.string()) for column in texts), ("asked", pa.bool_())])
            replies = pa.Table.from_pylist([{"asked": True, **row} for row in rows], schema)
            by_name |= {f"{part}/{reader}": numbered for part, numbered in number_answers(replies).items()}
        else:
            by_name[name] = table_of(table, rows)
    return by_name


def settings(**release: Any):
    """Return settings with two hints a question."""
    return parse({"passages": {"hints": 2}, "release": release})


def subject(folder: Path, data: Rows, **release: Any) -> Subject:
    """Return the tables as what gates check."""
    return Subject(write(folder, data), READERS, settings(**release))


def describe(folder: Path, facts: dict[str, Any]) -> Release:
    """Write the description of a release, with its checksums; return the release."""
    described = {**facts, "content_id": content_id_of(facts["content"])}
    (folder / "release.json").write_text(json.dumps({**described, "checksum": checksum_of(described)}))
    return open_release(folder)


def freeze(folder: Path, data: Rows, name: str = "v1", beside: dict[str, Any] | None = None, **content: Any) -> Release:
    """Return the tables as a release, described by hand; ``beside``: facts beside the content."""
    tables = {
        table: {"file": path.relative_to(folder).as_posix(), "sha256": file_checksum(path),
                "bytes": path.stat().st_size, "rows": pq.read_metadata(path).num_rows}
        for table, [path] in write(folder, data).parts.items()
    }  # fmt: skip
    splits = [row["split"] for row in data["splits"]]
    content = {
        "settings": {"passages": {"hints": 2}, "split": {"near_duplicate": 0.8},
                     "review": {"splits": ["dev", "test"]}, "release": {}},
        "fingerprints": {}, "program_version": "0.1.0", "tables": tables, "models": {"judge": ["rules@1"]},
        "sources": [{"name": "jsonl", "file": "a.jsonl", "checksum": "12", "licence": None, "citation": None}],
        "readers": [asdict(reader) for reader in READERS], "prompts": {},
        "reviews": {"reviews": 0, "annotators": [], "settled": 0, "open": 0}, **content,
    }  # fmt: skip
    questions = {**{split: splits.count(split) for split in ("train", "dev", "test")}, "all": len(splits)}
    facts = {"made_by": "QUIT builder", "layout": LAYOUT, "name": name, "statistics": {}, "gates": [],
             "counts": {"questions": questions, "passages": 12}}  # fmt: skip
    return describe(folder, {**facts, "content": content, **(beside or {})})


def without(data: Rows, question: str) -> Rows:
    """Return the tables without a question."""
    return {
        name: [row for row in some if row.get("question_id") != question] for name, some in copy.deepcopy(data).items()
    }


DESIGN = {"hints": "all", "sizes": [1, 2], "orders": ["descending"], "extremes": 2, "by": ["cosine"]}


def other_design(lost: Iterable[tuple[str, str]] = ()) -> Rows:
    """Return the rows of :data:`DESIGN`: a question has the passages 0, 01 and 1, but for those that are ``lost``
    (question, permutation), as if cosines had not chosen them; roles are of all orders alone."""
    data = rows()
    for name in ("passages", "labels", "answers/one", "answers/two"):
        own = [row for row in data[name] if row["permutation"] != "10"]
        data[name] = [row for row in own if (row["question_id"], row["permutation"]) not in {*lost}]
    data["hint_roles"], data["question_roles"] = [], []
    for name in ("verdicts", "valid_answers"):
        for row in data[name]:
            given = [one for one in data["answers/one"] if one["question_id"] == row["question_id"]]
            row["passages"] = sum(one["answer"] == row["answer"] for one in given)
        data[name] = [row for row in data[name] if row["passages"]]
    return data
