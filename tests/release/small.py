"""A release by hand: three questions with two hints each, one labeler, one reader. Nothing of the code under test makes
its tables."""

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quit import contracts
from quit.common.files import file_checksum
from quit.dataset.dataset import ReaderInfo
from quit.dataset.files import TABLES, TableFiles
from quit.dataset.release import LAYOUT, Release, checksum_of, content_id_of, open_release
from quit.release.gates import Subject
from quit.settings import parse
from quit.stages.labelling.answers import number_answers

READERS = (ReaderInfo("one", "labeler", "one@1", "embedded"), ReaderInfo("two", "reader", "two@1", "embedded"))
SPLIT = {"q1": "train", "q2": "dev", "q3": "test"}
ASKED = {"q1": "Which river runs through Cairo?", "q2": "Who painted Guernica?", "q3": "What is the capital of Peru?"}
GOLD = {"q1": "Nile", "q2": "Picasso", "q3": "Lima"}
HINTS = {
    "q1": ["It flows north.", "It is very long."],
    "q2": ["He came from Malaga.", "He died in Mougins."],
    "q3": ["It lies on the Pacific.", "Pizarro founded it."],
}
PERMUTATIONS = ("0", "01", "1", "10")
Rows = dict[str, list[dict[str, Any]]]


def rows() -> Rows:
    """Return the rows of every table. The labeler is right (label 2) on passages that begin with hint 0, the reader
    never."""
    made: Rows = {name: [] for name in (*TABLES, "answers/one", "answers/two")}
    for one, split in SPLIT.items():
        made["splits"].append({"question_id": one, "parametric": split == "train", "split": split, "draw": 0.5})
        made["questions"].append(
            {"question_id": one, "question": ASKED[one], "answers": [GOLD[one]], "source": "jsonl", "content_key": one}
        )
        made["descriptions"].append(
            {"question_id": one, "coarse": "LOC:LOCATION", "fine": "x:y", "type_confidence": 1.0,
             "type_producer": "source",
             "answerability": 0.1, "answer_share": 0.1, "completeness": 0.1, "similarity": 0.1, "difficulty": 0.1,
             "difficulty_bin": "easy", "difficulty_producer": "rrcp@1"}
        )  # fmt: skip
        for place, hint in enumerate(HINTS[one]):
            made["hints"].append(
                {
                    "hint_id": f"{one}-h0{place}",
                    "question_id": one,
                    "position": place,
                    "hint": hint,
                    "source": "jsonl",
                    "file": "f",
                }
            )
            made["ranked_hints"].append(
                {"question_id": one, "rank": place, "hint_id": f"{one}-h0{place}", "hint": hint, "convergence": 0.5,
                 "producer": "source", "selected": True}
            )  # fmt: skip
        for permutation in PERMUTATIONS:
            right = permutation.startswith("0")
            key = {"question_id": one, "permutation": permutation}
            made["passages"].append({**key, "subset": "".join(sorted(permutation)), "hints": len(permutation)})
            made["labels"].append({**key, "label": 2 if right else 1, "labelers": ["one"] if right else []})
            for reader, answer in (("one", GOLD[one] if right else "Wrong"), ("two", "NO ANSWER")):
                made[f"answers/{reader}"].append(
                    {**key, "reader": reader, "answer": answer, "raw": answer, "producer": f"{reader}@1"}
                )
        made["valid_answers"].append(
            {"question_id": one, "answer": GOLD[one], "answer_key": GOLD[one].lower(), "origin": "gold", "passages": 2}
        )
        for answer, correct, basis in ((GOLD[one], True, "exact"), ("Wrong", False, "model")):
            made["verdicts"].append(
                {"question_id": one, "answer_key": answer.lower(), "answer": answer, "correct": correct, "basis": basis,
                 "passages": 2, "judge": "rules", "producer": "rules@1", "raw": ""}
            )  # fmt: skip
    return made


def write(folder: Path, made: Rows) -> TableFiles:
    """Write the tables as Parquet, by Arrow alone."""
    parts = {}
    for name, table in tables(made).items():
        path = folder / "tables" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        parts[name] = [path]
    return TableFiles(parts)


def tables(made: Rows) -> dict[str, pa.Table]:
    """Return the rows as Arrow tables; those of answers, which hold their texts, by number."""
    by_name = {}
    for name, rows in made.items():
        table, _, reader = name.partition("/")
        if reader:
            texts = ("question_id", "permutation", "reader", "answer", "raw", "producer", "ended")
            replies = pa.Table.from_pylist(rows, pa.schema([(column, pa.string()) for column in texts]))
            by_name |= {f"{part}/{reader}": numbered for part, numbered in number_answers(replies).items()}
        else:
            by_name[name] = contracts.table(table).from_rows(rows)
    return by_name


def settings(**release: Any):
    """Return settings with two hints a question."""
    return parse({"convergence": {"hints": 2}, "release": release})


def subject(folder: Path, made: Rows, **release: Any) -> Subject:
    """Return the tables as what gates check."""
    return Subject(write(folder, made), READERS, settings(**release))


def freeze(
    folder: Path,
    made: Rows,
    name: str = "v1",
    card: dict[str, Any] | None = None,
    beside: dict[str, Any] | None = None,
    **content: Any,
) -> Release:
    """Return the tables as a release, described by hand; ``beside``: facts beside the content."""
    files = write(folder, made)
    tables = {
        table: {
            "file": path.relative_to(folder).as_posix(),
            "sha256": file_checksum(path),
            "bytes": path.stat().st_size,
            "rows": pq.read_metadata(path).num_rows,
        }
        for table, [path] in files.parts.items()
    }
    splits = [row["split"] for row in made["splits"]]
    whole = {
        "settings": {"convergence": {"hints": 2}, "split": {"near_duplicate": 0.8},
         "review": {"splits": ["dev", "test"]}, "release": {}},
        "fingerprints": {},
        "sources": [{"name": "jsonl", "file": "a.jsonl", "checksum": "12", "licence": None, "citation": None}],
        "program_version": "0.1.0",
        "tables": tables,
        "readers": [{"name": one.name, "role": one.role, "identity": one.identity,
            "kind": one.kind} for one in READERS],
        "models": {"judge": ["rules@1"]},
        "prompts": {},
        "reviews": {"reviews": 0, "annotators": [], "settled": 0, "open": 0},
        **content,
    }  # fmt: skip
    facts = {
        "made_by": "QUIT builder",
        "layout": LAYOUT,
        "name": name,
        "content_id": content_id_of(whole),
        "content": whole,
        "counts": {"questions": {**{one: splits.count(one) for one in ("train", "dev", "test")}, "all": len(splits)},
         "passages": 12},
        "statistics": {},
        "gates": [],
        **({"card": card} if card else {}),
        **(beside or {}),
    }  # fmt: skip
    (folder / "release.json").write_text(json.dumps({**facts, "checksum": checksum_of(facts)}))
    return open_release(folder)


def without(made: Rows, question: str) -> Rows:
    """Return the tables without a question."""
    return {
        name: [row for row in some if row.get("question_id") != question] for name, some in copy.deepcopy(made).items()
    }


def nullable(path: Path, column: str) -> None:
    """Rewrite a file with a column of another type: as a program that knows another schema would."""
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, pa.field(column, pa.string()), table[column].cast(pa.string())), path)
