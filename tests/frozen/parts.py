"""What is frozen, in parts. Each makes everything in an empty folder, mostly through the command line, and returns
entry -> value."""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import quit
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from tests.frozen.answers import draw, made_of_answers
from tests.frozen.tables import figure, files, tables
from tests.frozen.values import checksum
from tests.paths import DATA, ROOT, STARTER
from tests.rows import write_lines
from tests.running import call_quit

WIKIHINT = DATA / "wikihint" / "test_first50.json"
FORMATS = "huggingface,release-json,paper-index,csv,beir,trec,pyserini,mteb,tevatron,colbert,monot5"
REVIEWED = ("labels", "valid_answers", "verdicts", "splits", "leak_findings", "rejects")
"""Tables that a review changes."""

SUNAR = ("sunar", "no-asu", "no-mer", "rerank", "first", "prf")
POLICIES = "random-rank-aware,bernoulli,gaussian,gaussian-ing"


def answers(folder: Path) -> dict[str, Any]:
    """Labels, updates and five exports of the starter from made answers and verdicts, without a model."""
    return made_of_answers(f"jsonl:{STARTER}", folder)


def wikihint_answers(folder: Path) -> dict[str, Any]:
    """The same of WikiHint."""
    return made_of_answers(f"wikihint:{WIKIHINT}", folder)


def starter(folder: Path) -> dict[str, Any]:
    """The starter collection with every embedded model."""
    return dataset("starter", folder)


def wikihint(folder: Path) -> dict[str, Any]:
    """Fifty questions of WikiHint with every embedded model."""
    return dataset(f"wikihint:{WIKIHINT}", folder)


def dataset(source: str, folder: Path) -> dict[str, Any]:
    """Build, review, apply, release, export: the tables of the build, those that the review changed, every file."""
    workspace = folder / "W"
    call_quit("build", "-q", "-w", workspace, "-s", source, "-p", "embedded", "--shards", "2")
    entries = {f"build: {name}": value for name, value in tables(workspace).items()}
    ReviewStore(Workspace.open(workspace)).append(review(workspace))
    report = call_quit("review", "apply", "-q", "-w", workspace, "--json").json()
    entries["review: report"] = {key: value for key, value in report.items() if key not in ("fingerprint", "now")}
    for name, value in tables(workspace).items():
        if name == "table changes":
            entries[f"review: {name}"] = value
        elif name.removeprefix("table ") in REVIEWED:  # `changes` has their rows in words
            entries[f"review: {name}"] = value["columns"]
    call_quit("release", "create", "-q", "-w", workspace, "-n", "v1")
    release = workspace / "releases" / "v1"
    call_quit("export", "-q", "-w", release, "-f", FORMATS, "-o", folder / "exports")
    return entries | files(folder / "exports")


def review(workspace: Path) -> list[dict]:
    """Return the rows of ``reviews`` of two people, drawn by hashes: both review half of dev and test, one of
    them the rest; one verdict in nine is the opposite of the judge's; some flag, type an answer or withdraw."""
    opened = quit.open(workspace)
    reviewed = sorted(row["question_id"] for row in opened.arrow("splits").to_pylist() if row["split"] != "train")
    hints = {row["question_id"]: row["hint"] for row in opened.arrow("hints").to_pylist()}
    verdicts = opened.arrow("verdicts").to_pylist()
    rows: list[dict] = []
    visits = [(name, person) for name in reviewed for person in ("ada", "ben")[: 1 + draw("twice", name) % 2]]
    for number, (question_id, person) in enumerate(visits):
        chance = draw(person, question_id)
        common = {
            "review_id": f"{person}{number}", "question_id": question_id, "annotator": person, "created": "0",
            "state": "withdrawn" if chance % 13 == 0 else "submitted", "updated": "1", "project": "p", "task": number,
            "annotation": number, "version": 1, "digest": "d", "sync": 1,
        }  # fmt: skip
        rows.append({**common, "kind": "annotation"})
        if common["state"] == "withdrawn":
            continue
        rows += [
            {**common, "kind": "answer", "answer_key": row["answer_key"], "answer": row["answer"],
             "correct": bool(row["correct"]) is not (draw(person, question_id, row["answer_key"]) % 9 == 0)}
            for row in sorted(verdicts, key=lambda row: row["answer_key"])
            if row["question_id"] == question_id and row["basis"] != "no_answer"
        ]  # fmt: skip
        if chance % 11 == 0:
            rows.append({**common, "kind": "flag", "text": "leak"})
        if chance % 5 == 0:  # its last hint's last word: it leaks there
            word = hints[question_id].split()[-1].strip(".")
            rows.append({**common, "kind": "missing", "answer_key": word.lower(), "answer": word, "correct": True})
    return rows


def systems(folder: Path) -> dict[str, Any]:
    """SUNAR, bandits and retrieval complexity on a corpus of six chained questions, a benchmark of 24 questions."""
    corpus, lexical, dense = folder / "C", folder / "B", folder / "D"
    write_lines(folder / "chained.jsonl", chained())
    call_quit("corpus", "build", "-q", "-s", f"musique:{folder / 'chained.jsonl'}", "-o", corpus)
    call_quit("index", "build", "-q", "-c", corpus, "-e", "bm25", "-o", lexical)
    call_quit("index", "build", "-q", "-c", corpus, "-e", "minilm", "-o", dense)
    call_quit("graph", "build", "-q", "-c", corpus, "-k", "10", "-o", folder / "G")
    return {
        **sunar(folder, ("-c", corpus, "--graph", folder / "G", "-i", lexical)),
        **bandits(folder, ("-c", corpus, "-i", lexical, "--vectors", dense)),
        **complexity(folder, ("-c", corpus, "-i", lexical, "-i", dense)),
        **benchmark(folder),
    }


def chained() -> list[dict]:
    """Return records in MuSiQue's format: two to four questions of the starter one after the other, with their hints
    as paragraphs, of which the first two support it."""
    with STARTER.open(encoding="utf-8") as lines:
        questions = [json.loads(line) for line in islice(lines, 12)]
    records = []
    for number, (start, end) in enumerate(((0, 2), (2, 4), (4, 7), (6, 10), (9, 12), (10, 12))):
        paragraphs: list[dict] = []
        steps = []
        for hop, row in enumerate(questions[start:end]):
            answer = row["answers"][0]
            earlier = f" (not #{hop})" if hop else ""
            steps.append(
                {"id": hop, "question": row["question"] + earlier, "answer": answer,
                 "paragraph_support_idx": len(paragraphs)}
            )  # fmt: skip
            for place, hint in enumerate(row["hints"][:5]):
                paragraphs.append(
                    {"idx": len(paragraphs), "title": f"{answer} {place}" if place else answer,
                     "paragraph_text": f"{hint} That is {answer}." if place < 2 else hint, "is_supporting": place < 2}
                )  # fmt: skip
        records.append(
            {"id": f"{end - start}hop__{number}", "question": " Then: ".join(step["question"] for step in steps),
             "answer": steps[-1]["answer"], "answer_aliases": [], "answerable": True,
             "question_decomposition": steps, "paragraphs": paragraphs}
        )  # fmt: skip
    return records


def sunar(folder: Path, opened: tuple[str | Path, ...]) -> dict[str, Any]:
    """Figures of each variant, its predictions, and its ranked documents."""
    variants = [part for name in SUNAR for part in ("--variant", name)]
    figures = call_quit("sunar", "run", *opened, *variants, "-o", folder / "S", "--json").json()
    entries = {}
    for name in SUNAR:
        ranked: dict[str, list[str]] = {}
        for line in (folder / "S" / name / "run.trec").read_text(encoding="utf-8").splitlines():
            query, _, document, *_ = line.split()
            ranked.setdefault(query, []).append(document)
        rows = [json.loads(line) for line in (folder / "S" / name / "answers.jsonl").read_text("utf-8").splitlines()]
        entries[f"sunar {name}"] = {
            "figures": figure(figures[name]),
            "predictions": {row["query_id"]: row["prediction"] for row in rows},
            "rankings": {query: [*documents[:3], checksum(" ".join(documents))] for query, documents in ranked.items()},
        }
    return entries


def bandits(folder: Path, opened: tuple[str | Path, ...]) -> dict[str, Any]:
    """Every policy on sub-questions, four policies on two levels."""
    cases = {"sub-questions": "all", "two-level": POLICIES}
    entries = {}
    for arms, policies in cases.items():
        options = ("--arms", arms, "--policies", policies, "--runs", "20", "-b", "10,50")
        whole = call_quit("bandits", "run", *opened, *options, "-o", folder / arms, "--json").json()
        rows: dict[str, dict[str, Any]] = {}
        for row in whole["rows"]:
            key = f"{row['structure']} {row['metric']}@{row['budget']}"
            rows.setdefault(row["policy"], {})[key] = figure(row["value"])
        entries[f"bandits {arms}"] = {
            "rows": rows,
            **{name: figure(whole[name]) for name in ("requests", "arms", "alpha_ndcg", "trees")},
        }
    return entries


def complexity(folder: Path, opened: tuple[str | Path, ...]) -> dict[str, Any]:
    """Each question's figures, and their agreement with known labels."""
    options = ("--set", "complexity.resamples=100", "--set", "complexity.documents=4")
    whole = call_quit("complexity", "run", *opened, *options, "-o", folder / "X", "--json").json()
    rows = pq.read_table(folder / "X" / "complexity.parquet").to_pylist()
    return {
        "complexity": {
            "questions": {str(number): figure(row) for number, row in enumerate(rows)},
            "means": figure(whole["means"]),
            "agreement": figure(whole["agreement"]),
        }
    }


def benchmark(folder: Path) -> dict[str, Any]:
    """Three retrievers, a reranker and a reader over a release of 24 questions with four passages each."""
    workspace = folder / "W"
    profile = ROOT / "tests" / "few.toml"
    call_quit("build", "-q", "-w", workspace, "-s", "starter", "-p", profile, "--questions", "24", "--shards", "1")
    call_quit("release", "create", "-q", "-w", workspace, "-n", "v1")
    named = ("--retriever", "bm25", "--retriever", "minilm", "--retriever", "late", "--reranker", "late",
             "--reader", "minilm-late", "--split", "all", "--set", "benchmark.resamples=100")  # fmt: skip
    out = folder / "benchmark"
    results = call_quit("benchmark", "run", "-r", workspace / "releases" / "v1", *named, "-o", out, "--json").json()
    rows: dict[str, dict[str, Any]] = {}
    for row in results["results"]:
        if row["corpus"] != "release":
            continue
        system = " ".join(str(row[name]) for name in ("retriever", "reranker", "reader") if row[name])
        name = " ".join(str(row[name]) for name in ("metric", "strategy", "k") if row[name])
        rows.setdefault(system, {})[name] = [figure(row[name]) for name in ("value", "low", "high")]
    return {"benchmark": rows}


_MADE: tuple[Callable[[Path], dict[str, Any]], ...] = (answers, wikihint_answers, starter, wikihint, systems)
PARTS = {part.__name__.replace("_", "-"): part for part in _MADE}
NEEDS_DATA = {"wikihint", "wikihint-answers"}
"""Parts that are made only where the shared data lies beside the checkout."""
