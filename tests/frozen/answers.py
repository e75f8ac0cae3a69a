"""Answers and verdicts that are the same wherever they are made, each drawn by a hash from a question's own texts, and
what labels, updates and exports make of them: seconds, no model."""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.dataset.dataset import Dataset
from quit.dataset.release import ReaderInfo
from quit.export import export
from quit.models.protocols import NO_ANSWER
from quit.settings import Review
from quit.sources import parse_source, read_sources
from quit.stages.collect import collect
from quit.stages.label import label_passages
from quit.stages.labelling.answers import Answers
from quit.stages.labelling.passages import enumerate_passages, permutation_table
from quit.stages.labelling.rulings import settled_decisions
from quit.stages.labelling.verdicts import DECISIONS
from quit.stages.update import LabelTables, update_labels
from quit.text.answers import answer_key
from tests.frozen.tables import files
from tests.frozen.tables import table as in_short
from tests.rows import answers_in

READERS = tuple(
    ReaderInfo(name, role, f"{name}@1", "embedded")
    for role, names in (("labeler", "abc"), ("reader", "def"))
    for name in names
)
FORMATS = ("release-json", "paper-index", "huggingface", "beir", "trec")
LABELERS = [info.name for info in READERS if info.role == "labeler"]


def draw(*texts: str) -> int:
    """Return a number that follows from texts alone."""
    return int.from_bytes(hashlib.sha256("\x1f".join(texts).encode()).digest()[:6], "big")


def collection(source: str | Path) -> dict[str, pa.Table]:
    """Return the tables of a source's questions up to the passages: the first five hints of each, types and splits by
    hash."""
    tables = collect(read_sources([parse_source(str(source))]), min_hints=5)
    ids = tables["questions"].column("question_id").to_pylist()
    hints = [row for row in tables["hints"].to_pylist() if row["position"] < 5]
    split = {question_id: ("train", "dev", "test")[draw(question_id) % 3] for question_id in ids}
    described = {"coarse": "HUM:HUMAN", "fine": "ind:Individual", "type_confidence": 1.0, "difficulty_bin": "medium"}
    described |= dict.fromkeys(("answerability", "answer_share", "completeness", "similarity", "difficulty"), 0.5)
    described |= dict.fromkeys(("type_producer", "difficulty_producer"), "frozen")
    rows = {
        "ranked_hints": [
            {"question_id": row["question_id"], "rank": row["position"], "hint_id": row["hint_id"], "hint": row["hint"],
             "convergence": (draw(row["hint"]) % 100) / 100, "producer": "frozen", "selected": True}
            for row in hints
        ],
        "descriptions": [{**described, "question_id": one} for one in ids],
        "splits": [{"question_id": one, "parametric": False, "split": split[one], "draw": 0.5} for one in ids],
    }  # fmt: skip
    filled = {name: contracts.table(name).from_rows(of_table) for name, of_table in rows.items()}
    return {**tables, **filled, "passages": enumerate_passages(ids, permutation_table(5))}


def replies(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Return reader -> what it answers from each passage: question_id, permutation, answer."""
    gold = {row["question_id"]: row["answers"] for row in tables["questions"].to_pylist()}
    names = [answers[0] for answers in gold.values()]
    forms: dict[str, list[str]] = {}
    for question_id, answers in gold.items():
        wrong = [names[draw(question_id, str(number)) % len(names)] for number in range(6)]
        forms[question_id] = [*answers, answers[0].upper(), f"the {answers[0]}!", *wrong, NO_ANSWER, "Über-“wrong”"]
    keys = tables["passages"].select(["question_id", "permutation"])
    pairs = list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    by_reader = {}
    for info in READERS:
        answers = [
            forms[question_id][draw(question_id, permutation, info.name) % len(forms[question_id])]
            for question_id, permutation in pairs
        ]
        by_reader[info.name] = keys.append_column("answer", pa.array(answers, pa.string()))
    return by_reader


def verdicts(tables: dict[str, pa.Table], given: dict[str, pa.Table]) -> pa.Table:
    """Return a verdict on each distinct answer: right where it is a gold answer, and for one in nine of the others."""
    gold = {row["question_id"]: set(map(answer_key, row["answers"])) for row in tables["questions"].to_pylist()}
    forms: dict[tuple[str, str], set[str]] = {}
    for rows in given.values():
        for question_id, answer in zip(rows["question_id"].to_pylist(), rows["answer"].to_pylist(), strict=True):
            forms.setdefault((question_id, answer_key(answer)), set()).add(answer)
    return contracts.table("verdicts").from_rows(
        [
            {"question_id": question_id, "answer_key": key, "answer": min(answers),
             "correct": answers != {NO_ANSWER} and (key in gold[question_id] or draw(question_id, key) % 9 == 0),
             "basis": "model", "passages": len(answers), "judge": "frozen", "producer": "frozen", "raw": ""}
            for (question_id, key), answers in sorted(forms.items())
        ]
    )  # fmt: skip


def decisions(judged: pa.Table) -> list[dict]:
    """Return what people decide: one verdict in eleven is overruled."""
    return [
        {"question_id": row["question_id"], "kind": "answer", "key": row["answer_key"], "answer": row["answer"],
         "decision": not row["correct"], "yes": int(not row["correct"]), "no": int(row["correct"]),
         "basis": "unanimous", "reviews": ["r1"]}
        for row in judged.to_pylist()
        if draw("review", row["question_id"], row["answer_key"]) % 11 == 0
    ]  # fmt: skip


def made_of_answers(source: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return what labels, an update and five exports make of the answers and verdicts on a source's questions."""
    tables = collection(source)
    texts = replies(tables)
    by_reader = {reader: answers_in(rows) for reader, rows in texts.items()}
    judged = verdicts(tables, texts)
    labelers = {reader: by_reader[reader] for reader in LABELERS}
    labelled = label_passages(tables["questions"], tables["passages"], labelers, judged)
    before = LabelTables(tables["questions"], tables["ranked_hints"], tables["splits"], judged, **labelled)
    settled = settled_decisions(pa.Table.from_pylist(decisions(judged), schema=DECISIONS), tables["splits"], Review())
    touched = pa.array(settled.touched, pa.string())
    of_touched = {
        reader: Answers(answers.rows.filter(pc.is_in(answers.rows["question_id"], touched)), answers.distinct)
        for reader, answers in labelers.items()
    }
    updated = update_labels(before, of_touched, settled, lambda items: [[[] for _ in item.hints] for item in items])
    unchanged = {name: tables[name] for name in ("questions", "hints", "ranked_hints", "descriptions", "passages")}
    of_update = {name: updated[name] for name in ("splits", "verdicts", "labels", "valid_answers")}
    release = Dataset(**unchanged, **of_update, answers=by_reader, readers=READERS)
    export(release, FORMATS, folder, paper_keys=True)
    entries = {f"label: {table}": rows for table, rows in labelled.items()}
    entries |= {f"update: {table}": rows for table, rows in updated.items()}
    return {
        "label and update": {table: in_short(table, rows)["columns"] for table, rows in entries.items()},
        **files(folder),
    }
