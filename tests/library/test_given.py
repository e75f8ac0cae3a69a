"""Passages that are given with their questions: from records to labels, review, release, exports and a scored run."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

import quit
from quit.common.ids import HINT_CHARACTERS
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError
from quit.report.browse import application
from quit.settings import PassageDesign, load
from quit.sources import parse_source, read_sources
from quit.stages.collect import collect
from quit.stages.labelling.passages import PassageRows
from tests.paths import FEW, starter_lines
from tests.rows import tuples, write_lines
from tests.running import call_quit

NOISE = "Bread rises because yeast makes gas in it."


def records() -> list[dict[str, Any]]:
    """Six questions of the starter collection, each with its hints as one passage, one that states the answer, and one
    about something else, which all share."""
    rows = []
    for record in map(json.loads, starter_lines(6)):
        hints = " ".join(hint if isinstance(hint, str) else hint["hint"] for hint in record["hints"])
        passages = [
            {"id": f"{record['id']} 50%/hints", "text": hints, "relevance": 1},
            {"id": f"{record['id']}/said", "title": "Quiz", "text": f"It was {record['answers'][0]}.", "relevance": 0},
            {"id": "noise", "text": NOISE},
        ]
        own = {name: record[name] for name in ("id", "question", "answers", "candidates") if name in record}
        rows.append(own | {"passages": passages})
    return rows


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    source = write_lines(folder / "given.jsonl", records())
    call_quit("build", "-w", folder / "W", "--source", source, "--profile", FEW, "--shards", 2)
    call_quit("release", "create", "-w", folder / "W", "--name", "v1")
    return folder / "W"


def test_passages_are_labelled_as_they_are_and_all_stay(built: Path) -> None:
    workspace = Workspace.open(built)
    assert len(workspace.read("splits")) == 6 and not len(workspace.read("hint_roles"))
    labels = workspace.read("labels")
    assert {name for _, name in tuples(labels, "question_id", "permutation")} == {*"012"} and len(labels) == 18
    rows = workspace.read("ranked_hints").to_pylist()
    contains = {row["hint_id"].partition(":")[2].rpartition("/")[2]: set() for row in rows}
    for row in rows:
        contains[row["hint_id"].partition(":")[2].rpartition("/")[2]].add((row["convergence"], row["producer"]))
    assert contains["said"] == {(1.0, "exact")} and contains["noise"] == {(0.0, "none")}
    assert {row["hint"] for row in rows if row["hint_id"].endswith(":noise")} == {NOISE}


def test_pages_and_card_say_what_the_passages_are(built: Path, tmp_path: Path) -> None:
    workspace = Workspace.open(built)
    identity = workspace.read("questions").column("question_id")[0].as_py()
    pages = TestClient(application(workspace, load(FEW).settings), base_url="http://127.0.0.1")
    page = pages.get(f"/question/{identity}").text
    assert "<h2>Given passages</h2>" in page and "3 given passages." in page and "ordered selections" not in page
    call_quit("export", "-w", built / "releases" / "v1", "-f", "huggingface", "--out", tmp_path)
    card = (tmp_path / "huggingface" / "README.md").read_text(encoding="utf-8")
    assert "pretty_name: Question answering with labelled passages from given.jsonl" in card.replace('"', "")


def test_own_ids_stay_in_exports_and_a_run_is_scored(built: Path, tmp_path: Path) -> None:
    release = built / "releases" / "v1"
    for name in ("beir", "trec", "mteb", "huggingface", "csv"):
        call_quit("export", "-w", release, "-f", name, "--out", tmp_path)
    for name in ("release-json", "paper-index"):
        assert "the passages here are" in call_quit("export", "-w", release, "-f", name, code=4).err
    shared = "some given passages here are of several questions"
    for name in ("tevatron", "colbert", "monot5"):
        assert shared in call_quit("export", "-w", release, "-f", name, code=4).err
    tasks = call_quit("export", "-w", release, "-f", "huggingface", "--eval", "--out", tmp_path / "e", code=4)
    assert "not given passages" in tasks.err
    benchmark = ("benchmark", "run", "--release", release, "--retriever", "bm25", "--out", tmp_path / "b")
    assert shared in call_quit(*benchmark, code=4).err
    corpus = [json.loads(line) for line in (tmp_path / "beir" / "corpus.jsonl").read_text().splitlines()]
    ids = [row["_id"] for row in corpus]
    assert len(ids) == len({*ids}) == 13 and "noise" in ids  # shared by six questions
    qrels = [line.split() for path in (tmp_path / "trec").glob("qrels*") for line in path.read_text().splitlines()]
    assert len(qrels) == 18 and {grade for *_, grade in qrels} <= {"0", "2"}
    rows = [
        row for path in (tmp_path / "huggingface" / "passages").glob("*") for row in pq.read_table(path).to_pylist()
    ]
    assert {row["id"].replace(" 50%", "%2050%25") for row in rows} == {*ids} and not (
        tmp_path / "huggingface" / "hints"
    ).exists()
    kinds = {(row["id"].rpartition("/")[2], row["contains_answer"], row["relevance"]) for row in rows}
    assert {("said", True, 0.0), ("noise", False, None)} <= kinds
    right = {question: passage for question, _, passage, grade in qrels if grade == "2"}
    run = tmp_path / "a.run"  # ids of questions are their source's
    run.write_text("".join(f"{name.partition('-')[2]} Q0 {passage} 1 1.0 mine\n" for name, passage in right.items()))
    metrics = """metrics=["Hit(rel=2)@1"]"""
    result = call_quit("evaluate", "run", run, "-w", release, "--split", "all", "--set", f"benchmark.{metrics}")
    assert right and f"{100 * len(right) / 6:.2f}" in result.out


def record(**changes: Any) -> dict[str, Any]:
    return {"id": "q", "question": "Who?", "answers": "Ann", "passages": ["A text.", "Another text."]} | changes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hints": ["He ran."]}, "hints_and_passages"),
        ({"passages": "one text"}, "wrong_type"),
        ({"passages": [f"text {number}" for number in range(1001)]}, "too_many"),
        ({"passages": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}, "duplicate_passage"),
        ({"passages": [{"id": "fine-a", "text": "x"}, {"id": "b", "text": ""}]}, "empty_hint"),
        ({"passages": [{"id": "shared", "text": "another text than that of the first question"}]}, "other_text"),
        ({"passages": [{"id": "a", "text": 3}]}, "wrong_type"),
        ({"passages": [{"id": "a"}]}, "missing_field"),
        ({"passages": [{"text": "x"}, {"text": None}]}, "empty_hint"),
        ({"passages": []}, "no_passage"),
    ],
)
def test_what_cannot_be_used_is_left_out_with_the_reason(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    good = record(id="0", question="Where?", passages=[{"id": "shared", "text": "A text."}])
    path = write_lines(tmp_path / "q.jsonl", [good, record(**changes)])
    tables = collect(read_sources([parse_source(str(path))]), min_hints=1, given=True)
    assert reason in tables["rejects"]["reason"].to_pylist()


@pytest.mark.parametrize(
    ("given", "relevance"),
    [({"relevance": -2}, 0.0), ({"relevance": True}, 1.0), ({"relevance": False}, 0.0), ({"relevance": 2.0}, 2.0),
     ({"rank": 0}, None), ({"rank": 5000}, None), ({"id": 3.0}, None), ({"title": 1984}, None)],
)  # fmt: skip
@pytest.mark.parametrize("is_transposed", [False, True])
def test_forms_that_other_programs_write_are_read(given: dict[str, Any], relevance, is_transposed, tmp_path) -> None:
    """A data frame has decimals where numbers are missing; ``datasets`` may write an object of lists."""
    passage = {"text": "A text."} | given
    passages = {name: [value] for name, value in passage.items()} if is_transposed else [passage]
    path = write_lines(tmp_path / "q.jsonl", [record(passages=passages)])
    tables = collect(read_sources([parse_source(str(path))]), min_hints=1, given=True)
    [hint] = tables["hints"].to_pylist()
    assert hint["convergence"] == relevance and hint["rank"] == given.get("rank")
    assert hint["hint"] == ("1984 A text." if "title" in given else "A text.")


def test_passages_without_ids_are_named_apart_in_every_file(tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{name}.jsonl", [record(question=f"Who is {name}?")]) for name in "ab"]
    tables = collect(read_sources([parse_source(f"jsonl:{path}") for path in files]), given=True)
    assert len(tables["questions"]) == 2 and len({*tables["hints"]["hint_id"].to_pylist()}) == 4


def test_hints_and_passages_in_one_build_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", [record(), {**record(id="r"), "passages": None, "hints": ["x"] * 5}])
    with pytest.raises(InputError, match="has hints, and the build is one of records with passages"):
        quit.build(tmp_path / "W", str(path), progress=False)


def test_a_thousand_passages_have_names_in_their_order() -> None:
    design = PassageDesign(hints="given", extremes=3)
    assert design.sizes == (1,) and not design.extremes and design.most_hints == 1000
    assert [*HINT_CHARACTERS] == sorted(HINT_CHARACTERS) and len({*HINT_CHARACTERS}) == 1000
    rows = PassageRows.of([pa.table({"question_id": ["q"] * 1000, "permutation": [*HINT_CHARACTERS]})], pa.array(["q"]))
    assert rows.table.indices.tolist() == [*range(1000)] and not len(rows.unordered)


@pytest.mark.parametrize("name", ["passage_id", "Passage ID", "passage-id"])
def test_csv_has_a_passage_a_row(name: str, tmp_path: Path) -> None:
    text = f"id,question,answer,{name},passage\n1,Who?,Ann,d1,A | text.\n1,,,d2,Another.\n"
    (tmp_path / "q.csv").write_text(text)
    [read] = read_sources([parse_source(str(tmp_path / "q.csv"))])
    assert read.question and [(p.passage_id, p.text) for p in read.question.hints] == [
        ("d1", "A | text."),
        ("d2", "Another."),
    ]
    (tmp_path / "q.csv").write_text("id,question,answer,hint,passage\n1,Who?,Ann,x,y\n")
    with pytest.raises((InputError, SettingsError), match="names hints and passages"):
        list(read_sources([parse_source(str(tmp_path / "q.csv"))]))


def test_musiques_paragraphs_are_passages_with_their_relevance(tmp_path: Path) -> None:
    paragraphs = [
        {"idx": number, "title": title, "paragraph_text": "Text.", "is_supporting": number == 1}
        for number, title in enumerate("ABC")
    ]
    own = {"id": "2hop__1", "question": "Who?", "answer": "Ann", "answer_aliases": ["Anna"], "paragraphs": paragraphs}
    path = write_lines(tmp_path / "m.jsonl", [own, own | {"id": "x", "answerable": False}])
    first, second = read_sources([parse_source(f"musique:{path}")])
    assert first.question and first.question.answers == ("Ann", "Anna")
    assert [(p.passage_id, p.text, p.convergence) for p in first.question.hints][1] == ("2hop__1-1", "B Text.", 1.0)
    assert second.rejects[0].reason == "not_answerable"


@pytest.mark.slow
def test_a_thousand_passages_are_released_and_exported(tmp_path: Path) -> None:
    passages = [f"Fact {number} is not about rivers." for number in range(999)]
    rows = [row | {"passages": [*passages, f"It was {row['answers'][0]}."]} for row in records()[:2]]
    call_quit("build", "-w", tmp_path / "W", "-s", write_lines(tmp_path / "q.jsonl", rows), "-p", FEW)
    call_quit("release", "create", "-w", tmp_path / "W", "--name", "v1")
    for name in ("trec", "huggingface"):
        call_quit("export", "-w", tmp_path / "W" / "releases" / "v1", "-f", name, "--out", tmp_path)
    [file] = (tmp_path / "huggingface" / "passages").glob("*")
    assert pq.read_table(file)["rank"].to_pylist() == [*range(1000)] * 2
