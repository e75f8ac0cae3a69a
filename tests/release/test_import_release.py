import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.dataset.dataset import Dataset
from quit.dataset.release import Release, verify
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from quit.export import export
from quit.release.diff import diff
from quit.release.gates import GATES
from quit.release.import_json import SUFFIXES
from quit.release.import_release import EXAMPLES, import_release
from tests.comparing import files_of
from tests.export.conftest import make_tables
from tests.export.plain_index import plain_index
from tests.release import small
from tests.release.published import BITS, question, splits, write
from tests.running import call_quit


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("published")
    return import_release(write(folder / "files", splits()), folder / "quit").release


def rows(release: Release, name: str) -> list[dict]:
    return release.files.read(name).to_pylist()


def test_labels_are_those_of_the_papers_rule_and_what_ours_gives_otherwise_is_listed(release: Release) -> None:
    right = [row for row in rows(release, "labels") if row["label"] == 2]
    assert [(row["question_id"], row["permutation"]) for row in right] == [("b", "1"), ("a", "01"), ("a", "10")]
    assert all(row["labelers"] == ["qwen-3-4b"] for row in right)
    assert release.facts["counts"] == {"questions": {"train": 1, "dev": 1, "test": 1, "all": 3}, "passages": 12}
    labels = release.imported["labels"]
    assert (labels["kept"], labels["passages"], labels["differences"]) == ("published", 12, 1)
    difference = {"question_id": "c", "permutation": "0", "published": 1, "ours": 2, "labelers": ["qwen-3-4b"]}
    assert labels["examples"] == [difference]


def test_roles_are_those_of_the_published_labels_without_a_probe(release: Release) -> None:
    columns = ("question_id", "fewest_in_every_order", "unneeded_hints", "without_hints")
    found = {tuple(row[name] for name in columns) for row in rows(release, "question_roles")}
    assert found == {("a", 2, 0, None), ("b", 1, 1, None), ("c", None, None, None)}
    shapley = {row["hint_id"]: row["shapley"] for row in rows(release, "hint_roles")}
    assert shapley == {"a-h00": 0.5, "a-h01": 0.5, "b-h00": -0.5, "b-h01": 0.5, "c-h00": 0, "c-h01": 0}


@pytest.mark.parametrize(
    ("dev", "differences"),
    [
        ([question(f"c{number:03}", ["Lima"], {"0": "LIMA"}) for number in range(150)], 150),  # more than a block
        ([question("c", ["Lima", "The"], {"0": "a"})], 0),  # both are nothing in normalised form
    ],
)
def test_examples_of_differences_are_bounded_and_a_blank_answer_is_none(tmp_path: Path, dev, differences) -> None:
    files = write(tmp_path / "files", {**splits(), "dev": dev})
    labels = import_release(files, tmp_path / "quit").release.imported["labels"]
    assert labels["differences"] == differences
    shown = [row["id"] for row in dev[: min(differences, EXAMPLES)]]
    assert [row["question_id"] for row in labels["examples"]] == shown


def test_verdicts_follow_from_what_was_published(release: Release) -> None:
    verdicts = {(row["question_id"], row["answer"]): row["correct"] for row in rows(release, "verdicts")}
    assert verdicts == {
        ("a", "Oslo"): True, ("b", "the Nile"): True, ("c", "the LIMA"): True,  # as one of the valid answers
        ("b", "Amazon"): False,  # a labeler said so, and it was not accepted
        **{(name, "Atlantis"): None for name in "abc"},  # only an evaluation reader did: nobody judged it
        **{(name, "NO ANSWER"): False for name in "abc"},
    }  # fmt: skip
    valid = [(row["question_id"], row["answer"], row["passages"]) for row in rows(release, "valid_answers")]
    assert valid == [("b", "Nile", 0), ("b", "the Nile", 1), ("c", "Lima", 0), ("a", "Oslo", 2)]


def test_what_the_files_do_not_hold_is_null(release: Release) -> None:
    for name, columns in {
        "splits": ("parametric", "draw"),
        "descriptions": ("coarse", "fine", "difficulty", "difficulty_bin", "type_producer"),
        "ranked_hints": ("convergence", "producer"),
        "hints": ("source", "url"),
        "valid_answers": ("origin",),
        "verdicts": ("basis", "producer", "raw", "probability"),
        "answers/qwen-3-4b": ("producer", "ended"),
        "distinct_answers/qwen-3-4b": ("raw",),
    }.items():
        table = release.files.read(name)
        assert {column: table[column].null_count for column in columns} == dict.fromkeys(columns, len(table)), name
        assert len(table)
    assert all(row["gold_answer_words"] is None for row in release.facts["statistics"]["summary"])


def test_the_release_is_whole_its_gates_report_and_table_1_is_that_of_the_papers_script(release: Release) -> None:
    assert verify(release.path).content_id == release.content_id
    states = {gate["gate"]: gate["state"] for gate in release.facts["gates"]}
    assert list(states) == list(GATES)
    assert {gate: state for gate, state in states.items() if state != "passed"} == {
        "human-coverage": "not asked",
        "unjudged-answer": "waived",
    }
    # By hand: questions of 3 words; passages of 3, 1, 4 and 4; answers Nile, the Nile, Lima and Oslo.
    words = {"question_words": 3.0, "passage_words": 3.0, "answer_words": 1.25}
    expected = {**words, "questions": 3, "passages": 12, "answer_containment": 0.0}
    assert release.facts["statistics"]["summary"][-1].items() >= expected.items()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_files_give_the_same_bytes_however_they_are_packed(release, suffix, tmp_path) -> None:
    folder = write(tmp_path / "files", splits())
    for path in list(folder.glob("*.json")):
        published = path.read_bytes()
        path.unlink()
        with pa.output_stream(str(folder / f"{path.stem}{suffix}"), compression="detect") as file:
            file.write(published)
    again = import_release(folder, tmp_path / "quit").release
    for name, entry in release.content["tables"].items():
        assert again.content["tables"][name]["sha256"] == entry["sha256"], name
    assert import_release(folder, tmp_path / "quit").new is False


@pytest.mark.parametrize("paper_keys", [True, False])
def test_our_export_comes_back_with_the_same_bytes(tmp_path: Path, paper_keys: bool) -> None:
    tables = make_tables()
    export(tables, ["release-json"], tmp_path / "ours", paper_keys=paper_keys)
    frozen = import_release(tmp_path / "ours" / "release-json", tmp_path / "quit").release
    assert [(info.name, info.kind) for info in frozen.readers] == [(info.name, "embedded") for info in tables.readers]
    export(Dataset.of_release(frozen.path), ["release-json"], tmp_path / "back", paper_keys=paper_keys)
    ours, back = files_of(tmp_path / "ours"), files_of(tmp_path / "back")
    for name in ("train.json", "dev.json", "test.json"):
        assert ours[f"release-json/{name}"] == back[f"release-json/{name}"] != b"[]\n"


def test_subsets_named_by_bits_keep_their_names(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", splits(BITS))
    frozen = import_release(folder, tmp_path / "quit").release
    assert frozen.imported["subsets"] == BITS
    export(Dataset.of_release(frozen.path), ["release-json", "paper-index"], tmp_path / "out")
    for split, published in splits(BITS).items():
        (back,) = json.loads((tmp_path / "out" / "release-json" / f"{split}.json").read_text())
        assert back["subsets"] == published[0]["subsets"] and back["answers"] == published[0]["answers"]
    plain_index(folder, tmp_path / "plain")
    ours = files_of(tmp_path / "out" / "paper-index")
    for name, content in files_of(tmp_path / "plain").items():
        assert sorted(ours[name].splitlines()) == sorted(content.splitlines())


def test_the_card_says_what_it_is_and_what_it_lacks(release: Release, tmp_path: Path) -> None:
    export(Dataset.of_release(release.path), ["huggingface", "trec"], tmp_path)
    card = (tmp_path / "huggingface" / "README.md").read_text()
    statements = ["**The labels are the published ones**", "1 of 12 passages would have another label",
            "- `c`, permutation 0: published 1, ours 2"]  # fmt: skip
    assert all(text in card for text in (*statements, *(f"- {unknown}" for unknown in release.imported["unknown"])))
    absent = ("Warning", "Labels by difficulty", "Labels by question type", "gold answers |")
    assert not any(text in card for text in absent)
    questions = pq.read_table(next((tmp_path / "huggingface" / "questions").glob("test-*")))
    assert questions["coarse"].to_pylist() == questions["parametric"].to_pylist() == [None]
    assert (tmp_path / "trec" / "qrels.test.txt").read_text().splitlines()[0] == "a 0 a_0_0 1"


def test_the_command(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", splits())
    command = ("release", "import", str(folder), "--out", str(tmp_path / "quit"))
    output = call_quit(*command, "--name", "published").out
    assert "is a release, not a workspace" in call_quit("status", "-w", tmp_path / "quit", code=None).err
    assert "release published" in output and "1 of 12 differ" in output and "not in the files: question types" in output
    with pytest.raises(InputError, match="already holds this release under the name 'published', not 'other'"):
        import_release(folder, tmp_path / "quit", "other")
    (folder / "test.json").write_text("[]")
    refused = call_quit(*command, code=3)
    assert "already holds the release" in refused.err


def test_a_difference_names_no_settings_that_an_import_cannot_know(tmp_path: Path) -> None:
    ours, imported = tmp_path / "v1", tmp_path / "quit"
    small.freeze(ours, small.rows(), "v1")
    import_release(write(tmp_path / "files", splits()), imported)
    origins = diff(ours, imported)["origins"]
    assert {"what": "origin", "key": "imported", "before": False, "after": True} in origins
    assert all(row["after"] is not None for row in origins if row["what"] in ("setting", "model", "prompt"))


def test_a_question_in_another_split_has_no_reason_where_an_import_knows_none(release: Release, tmp_path: Path) -> None:
    questions = splits()
    questions["test"] += questions["dev"]
    later = import_release(write(tmp_path / "later", questions | {"dev": []}), tmp_path / "v2").release
    moved = {"question_id": "c", "question": "What is c?", "before": "dev", "after": "test"}
    assert diff(release.path, later.path)["moved"] == [{**moved, "reason": "no reason is recorded"}]


def test_nothing_is_left_of_a_refused_import(tmp_path: Path) -> None:
    questions = splits()
    del questions["test"][0]["subsets"]["0"]
    with pytest.raises(InputError, match="is missing: each order of the 2 hints"):
        import_release(write(tmp_path / "files", questions), tmp_path / "out" / "quit")
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(InputError, match="hold no question"):
        import_release(write(tmp_path / "none", {split: [] for split in SPLITS}), tmp_path / "out" / "quit")
