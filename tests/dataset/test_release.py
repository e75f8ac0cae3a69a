"""A release is what was frozen, or verification says which file is not."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from quit.common.checksums import file_checksum
from quit.dataset.dataset import Dataset
from quit.dataset.release import newest_release, open_release, releases_of, verify
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError
from quit.export import export
from quit.export.files import is_exported
from quit.qa.benchmark.task import release_task
from quit.qa.corpora.release import read as corpus_of_release
from tests.engine.test_repair import flip
from tests.release import small
from tests.rows import tuples


def test_a_release_that_lists_no_roles_is_refused(tmp_path: Path) -> None:
    small.freeze(tmp_path, {name: rows for name, rows in small.rows().items() if not name.endswith("_roles")})
    with pytest.raises(InputError, match="tables/hint_roles.parquet: is not listed"):
        verify(tmp_path)


@pytest.mark.parametrize("name", ["labels", "answers/two", "splits"])
def test_a_changed_table_is_named(tmp_path: Path, name: str) -> None:
    release = small.freeze(tmp_path, small.rows())
    assert verify(tmp_path).content_id == release.content_id
    flip(tmp_path / "tables" / f"{name}.parquet")
    with pytest.raises(InputError, match=f"tables/{name}.parquet: was changed"):
        verify(tmp_path)
    with pytest.raises(InputError, match=name):
        Dataset.of_release(tmp_path)


def test_missing_and_foreign_files_are_named(tmp_path: Path) -> None:
    small.freeze(tmp_path, small.rows())
    (tmp_path / "tables" / "labels.parquet").unlink()
    (tmp_path / "tables" / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"tables/labels.parquet: is missing.*tables/notes.txt: is not part"):
        verify(tmp_path)


def test_the_newest_release_is_that_of_the_current_tables_else_the_last_by_name(
    tmp_path: Path,
) -> None:
    workspace = Workspace.create(tmp_path / "W")
    assert newest_release(workspace) is None
    for name in ("v10", "v9", "v1.5"):
        small.freeze(workspace.path / "releases" / name, small.rows(), name, fingerprints={"collect": name})
    assert [release.name for release in releases_of(workspace)] == ["v1.5", "v9", "v10"]
    assert newest_release(workspace).name == "v10"
    workspace.set_current({"collect": "v9"})
    assert newest_release(workspace).name == "v9"


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "W").mkdir()
    (tmp_path / "W/workspace.json").write_text("{}")
    with pytest.raises(
        InputError, match="no release at .*W. It is a workspace: name one of its releases, or the workspace with -w"
    ):
        open_release(tmp_path / "W")
    with pytest.raises(InputError, match="There is no release at"):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("read", "change", "error", "message"),
    [
        (open_release, {"name": "v9"}, InputError, r"release.json was changed[^\n]*from a copy"),
        (open_release, {"content": []}, InputError, r"release.json cannot be read[^\n]*from a copy"),
        (open_release, {"content": {"tables": {"labels": 3}}}, InputError, r"release.json cannot be[^\n]*from a copy"),
        (open_release, {"gates": None}, InputError, r"release.json (was|cannot be)[^\n]*from a copy"),
        (verify, {"content_id": "c0ffee"}, InputError, "content id is not that of its content"),
        (verify, {"layout": 3}, WorkspaceError, "newer program .version 3"),
    ],
)
def test_a_release_whose_description_was_changed_is_refused_and_stays(tmp_path, read, change, error, message) -> None:
    small.freeze(tmp_path, small.rows())
    path = tmp_path / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    left = path.read_bytes()
    with pytest.raises(error, match=message):
        read(tmp_path)
    assert path.read_bytes() == left


def test_a_table_of_other_columns_is_named(tmp_path: Path) -> None:
    facts = dict(small.freeze(tmp_path, small.rows()).facts)
    path = tmp_path / "tables" / "labels.parquet"
    labels = pq.read_table(path)
    pq.write_table(labels.set_column(2, "label", labels["label"].cast("string")), path)
    facts["content"]["tables"]["labels"] |= {"sha256": file_checksum(path), "bytes": path.stat().st_size}
    small.describe(tmp_path, facts)
    with pytest.raises(InputError, match=r"tables/labels.parquet: does not have the columns"):
        verify(tmp_path)


@pytest.mark.parametrize("file", ["../outside.parquet", "tables/splits.parquet", "/tmp/questions.parquet"])
def test_a_table_in_another_place_is_refused(tmp_path: Path, file: str) -> None:
    facts = dict(small.freeze(tmp_path, small.rows()).facts)
    facts["content"]["tables"]["questions"]["file"] = file
    with pytest.raises(InputError, match="the table 'questions' is in .*not in tables/questions.parquet"):
        small.describe(tmp_path, facts)


def test_an_export_of_a_release_shows_its_waivers(tmp_path: Path) -> None:
    waived = {"gate": "unjudged-answer", "state": "waived", "waiver": "the judge was away"}
    gate = {**waived, "why": "Because.", "violations": 3, "examples": ["q2: 'x'"]}
    release = small.freeze(tmp_path / "v1", small.rows(), beside={"gates": [gate]})
    export(Dataset.of_release(tmp_path / "v1"), ["huggingface", "release-json"], tmp_path / "out")
    card = (tmp_path / "out" / "huggingface" / "README.md").read_text()
    assert "`unjudged-answer` was waived**: the judge was away (3 violations" in card
    assert release.content_id in card
    [question] = json.loads((tmp_path / "out" / "release-json" / "dev.json").read_text())
    answers = {permutation: by_reader["one"] for permutation, by_reader in question["subsets"]["01"].items()}
    assert answers == {"01": "Picasso", "10": "Wrong"}


def test_a_gold_answer_that_people_rejected_is_no_reference_of_exports_benchmark_and_corpus(tmp_path: Path) -> None:
    """``questions`` keeps the source's answers; of q1 the first was rejected, of q2 all."""
    rows = small.rows()
    for question, answers in zip(rows["questions"], (["Niger", "Nile"], ["Braque"], ["Lima"]), strict=True):
        question["answers"] = answers
    rows["valid_answers"][1]["origin"] = "labeler"
    small.freeze(tmp_path / "v1", rows)
    dataset, expected = Dataset.of_release(tmp_path / "v1"), {"q1": ["Nile"], "q2": ["Picasso"], "q3": ["Lima"]}
    assert {query.question_id: [*query.gold] for query in release_task(dataset, "all").queries} == expected
    assert {one.record_id: [*one.queries[0].answers] for one in corpus_of_release(tmp_path / "v1")} == expected
    export(dataset, ["huggingface", "csv"], tmp_path / "out", evaluation=True)
    questions = pa.concat_tables(map(pq.read_table, (tmp_path / "out" / "huggingface" / "questions").glob("*.parquet")))
    assert dict(tuples(questions, "id", "answers")) == expected
    sheets = [pc.read_csv(file) for file in (tmp_path / "out" / "csv").glob("questions.*.csv")]
    assert {name: json.loads(cell) for name, cell in tuples(pa.concat_tables(sheets), "id", "answers")} == expected
    files = (tmp_path / "out" / "huggingface" / "evaluation").glob("*.parquet")
    tasks = pa.concat_tables(map(pq.read_table, files)).to_pylist()
    assert {row["id"]: [row["answer"]] for row in tasks} == expected


def test_only_an_export_of_this_release_counts_as_one(tmp_path: Path) -> None:
    other = small.rows()
    other["splits"][1]["split"] = "test"
    one, two = small.freeze(tmp_path / "v1", small.rows()), small.freeze(tmp_path / "v2", other)
    assert not is_exported(one, "release-json", tmp_path / "out")
    export(Dataset.of_release(tmp_path / "v1"), ["release-json"], tmp_path / "out")
    assert is_exported(one, "release-json", tmp_path / "out") and not is_exported(one, "beir", tmp_path / "out")
    assert not is_exported(two, "release-json", tmp_path / "out")
