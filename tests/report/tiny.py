"""A workspace by hand: the three questions of tests/release/small.py, one more that leaks, and two people's reviews."""

import copy
from pathlib import Path

import pyarrow as pa

from quit import contracts
from quit.common.ranges import ranges
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from quit.settings import Settings, parse
from quit.stages.order import STAGES
from tests.release import small
from tests.rows import write_lines
from tests.servers.builds import AT_S, served
from tests.stages.labelling.test_verdicts import said

MARKUP = '<script>alert("x")</script> & <img src="http://evil.example/x" onerror=alert(1)>'
"""A hint that would run, or ask for a picture, where it is not escaped."""
TYPE = "LOC:<b>$x$</b> #0072B2 url(#a)"
"""A type that plots would draw in bold, as mathematics, or in another colour, where text were not text."""
CONVERGENCE = {"q1": (1.0, 0.25), "q2": (0.5, 0.49), "q3": (0.0, 1.0)}
NUMBERS = {stage.name: stage.number for stage in STAGES}


def rows() -> small.Rows:
    """Return the rows of every table. Beside small.py's: q1's passage 10 is right too; q4 was left out; hint q1-h00 is
    markup."""
    rows_by_table = copy.deepcopy(small.rows())
    right = {"labels": {"label": 2, "labelers": ["one"]}, "answers/one": {"answer": "Nile", "raw": "Nile"}}
    for name in right:
        for row in rows_by_table[name]:
            if (row["question_id"], row["permutation"]) == ("q1", "10"):
                row |= right[name]
    rows_by_table["question_roles"][0]["order_dependent_sets"] = 0  # so q1's hint 0 does all, and hint 1 nothing
    for row, shapley in zip(rows_by_table["hint_roles"][:2], (1.0, 0.0), strict=True):
        row |= {"shapley": shapley, "harmed": 0.0}
    for row in [*rows_by_table["hints"], *rows_by_table["ranked_hints"]]:
        if row["hint_id"] == "q1-h00":
            row["hint"] = MARKUP
    for row in rows_by_table["ranked_hints"]:
        row["convergence"] = CONVERGENCE[row["question_id"]][row["rank"]]
    for row in rows_by_table["descriptions"]:
        row |= {"coarse": TYPE, "difficulty": {"q1": 0.1, "q2": 0.2, "q3": 0.9}[row["question_id"]]}
        row["difficulty_bin"] = "hard" if row["question_id"] == "q3" else "easy"
    q4 = {"question_id": "q4", "source": "wikihint"}
    rows_by_table["questions"].append({**q4, "question": "Which city?", "answers": ["Rome"]})
    sources = [{"question_id": "q1"}, {"question_id": "q2"}, {"question_id": "q3"}, q4]
    rows_by_table["origins"] = [{**row, "position": n, "record_id": str(n)} for n, row in enumerate(sources)]
    keys = ("hint_id", "question_id")
    rows_by_table["usable_hints"] = [{name: row[name] for name in keys} for row in rows_by_table["hints"]]
    rows_by_table["hints"].append({**q4, "hint_id": "q4-h00", "position": 0, "hint": "It is Rome."})
    leak = {"span": "Rome", "answer": "Rome", "probability": 1.0, "method": "exact", "overridden": False}
    rows_by_table["leak_findings"] = [{"hint_id": "q4-h00", "question_id": "q4", **leak}]
    columns = ("stage", "kind", "reason", "detail", "question_id")
    few = ("collect", "question", "too_few_hints", "1 hint", "q0")
    leaking = ("filter", "question", "answer_leak", "1 of 1 hints leak; q4-h00: 'Rome' gives away 'Rome'", "q4")
    rejects = (("collect", "record", "no_answer", "no answer", "q0"), few, leaking)
    where = {"source": "jsonl", "file": "f.jsonl", "position": 4, "record_id": "zero"}
    rows_by_table["rejects"] = [dict(zip(columns, row, strict=True)) | where for row in rejects]
    return rows_by_table


def without_label_2() -> small.Rows:
    """Return the rows where no passage of q3, the one question of test, is fully relevant."""
    rows_by_table = rows()
    for row in rows_by_table["labels"]:
        if row["question_id"] == "q3":
            row |= {"label": 1, "labelers": []}
    return rows_by_table


def reviews() -> list[dict]:
    """Two people on q2 (a blind task) and q3. Both accept q2's wrong answer; ada alone accepts q3's right one; neither
    accepts q3's wrong one."""
    ada, bob, both = "ada@x.org", "bob@x.org", {"picasso": True, "wrong": True}
    verdicts = [(ada, "q2", both), (bob, "q2", both)]
    verdicts += [(who, "q3", {"lima": who == ada, "wrong": False}) for who in (ada, bob)]
    review_rows = []
    for number, (annotator, question, answers) in enumerate(verdicts, start=1):
        facts = {"lead_seconds": 60.0, "blind": question == "q2"}
        review_rows += [{**row, **facts} for row in said(annotator, number, question=question, **answers)]
    return review_rows


def workspace(folder: Path, rows_by_table: small.Rows | None = None, shards: int = 1, people: bool = True) -> Workspace:
    """Write the tables as a finished build without ``build.json``, in so many parts a table."""
    rows_by_table = rows() if rows_by_table is None else rows_by_table
    opened = Workspace.create(folder)
    runs: dict[str, dict[str, pa.Table]] = {}
    for name, rows_of_table in small.tables(rows_by_table).items():
        table, _, reader = name.partition("/")
        stage = contracts.table(table).stage
        run = "filter" if table == "rejects" else f"{stage}:{reader}" if reader else stage
        runs.setdefault(run, {})[table] = rows_of_table
    state = {}
    ids = sorted(row["question_id"] for row in rows_by_table["questions"])
    for run in sorted(runs, key=lambda one: NUMBERS[one.partition(":")[0]]):
        target = opened.folder(run, NUMBERS[run.partition(":")[0]], "f0")
        parts = ranges(ids, shards)
        for shard in parts:
            mine = {}
            for table, whole in runs[run].items():
                owners = whole.column("question_id").to_pylist()
                inside = [question_id is None or not shard.misses(question_id, question_id) for question_id in owners]
                mine[table] = whole.filter(pa.array(inside, pa.bool_()))
            opened.write_part(target, shard, mine)
        opened.finish(target, list(runs[run]), len(parts), {"stage": run})
        state[run] = "f0"
    opened.set_current(state)
    if people:
        ReviewStore(opened).append(reviews())
    usage = {"run": "read:one", "model": "one", "requests": 30, "cached": 10, "retries": 1, "empty": 0,
             "prompt_tokens": 2_000_000, "completion_tokens": 1_000_000, "cached_tokens": 1_000_000,
             "seconds": 10.0}  # fmt: skip
    write_lines(folder / "usage.jsonl", [usage])
    return opened


def settings() -> Settings:
    """Return settings with the two readers of the tables, and the labeler priced."""
    priced = {"price_prompt": 2.0, "price_cached": 0.5, "price_completion": 4.0}
    readers = [{"name": "one", "role": "labeler", **AT_S, **priced}, {"name": "two", "role": "reader", **AT_S}]
    sections = served("http://localhost:1", passages={"hints": 2})
    return parse({**sections, "readers": readers})
