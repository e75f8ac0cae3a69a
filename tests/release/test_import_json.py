import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quit import contracts
from quit.common.checksums import file_checksum
from quit.errors import InputError
from quit.release import import_json
from quit.release.import_json import Numbered, ReleaseFiles
from tests.release.published import LABELERS, READERS, splits, write


def read(folder: Path) -> ReleaseFiles:
    files = ReleaseFiles(folder)
    for split in ("train", "dev", "test"):
        list(files.questions(split))
    return files


def test_answers_come_in_the_order_of_the_permutation_table(tmp_path: Path) -> None:
    files = ReleaseFiles(write(tmp_path, splits()))
    (question,) = files.questions("train")
    assert files.permutations.permutation.to_pylist() == ["0", "01", "1", "10"]
    assert question.answers["qwen-3-4b"] == Numbered(["Amazon", "NO ANSWER", "the Nile"], [0, 1, 2, 1])
    assert question.answers["qwen-3-8b"] == Numbered(["NO ANSWER", "Atlantis"], [0, 1, 0, 0])
    assert question.hints[0].model_dump() == {"hint": "First of b.", "convergence": None, "origin": None}
    assert [(info.name, info.role, info.kind, info.identity) for info in files.readers] == [
        *((name, "labeler", "published", "unknown") for name in LABELERS),
        *((name, "reader", "published", "unknown") for name in READERS),
    ]


def _passage(questions, subset: str = "01", permutation: str = "10") -> dict:
    return questions["test"][0]["subsets"][subset][permutation]


def _label_all(questions, wrong: int) -> None:
    for rows in questions.values():
        for row in rows:
            for subset in row["subsets"].values():
                for passage in subset.values():
                    passage["label"] = 2 if passage["qwen-3-4b"] in row["answers"] else 1
    _passage(questions)["label"] = wrong


def test_what_nothing_reads_and_what_is_there_twice_is_counted(tmp_path: Path) -> None:
    questions = splits()
    questions["dev"][0] |= {"answers": ["Lima", "Lima"], "difficulty": 0.3}
    questions["test"][0]["hints"][1]["rank"] = 2
    questions["test"][0]["hints"][0]["rank"] = 1
    _label_all(questions, 2)  # right labels are taken
    files = read(write(tmp_path, questions))
    assert (files.unread, files.repeated) == ({"`difficulty`": 1, "`hints.rank`": 1}, 1)
    assert files.keys == (*LABELERS, *READERS)


def test_more_distinct_answers_than_their_numbers_can_count_are_refused(tmp_path: Path, monkeypatch) -> None:
    """Only eight or nine hints make so many passages; here the second labeler's three answers are one too many."""
    kind = contracts.table("answers").schema.field("number").type
    assert pa.array([import_json.MAX_DISTINCT - 1], kind)
    with pytest.raises(pa.ArrowInvalid):
        pa.array([import_json.MAX_DISTINCT], kind)
    monkeypatch.setattr(import_json, "MAX_DISTINCT", 2)
    with pytest.raises(InputError, match=r"train.json, record 1 .*`qwen-3-4b` has 3 distinct answers to it; 2 are the"):
        read(write(tmp_path, splits()))


def _drop(name: str):
    return lambda questions: questions["test"][0].pop(name)


def _set(**fields: object):
    return lambda questions: questions["test"][0].update(fields)


def _hint(place: int, **fields: object):
    return lambda questions: questions["test"][0]["hints"][place].update(fields)


def _subset(name: str, **permutations: dict):
    return lambda questions: questions["test"][0]["subsets"][name].update(permutations)


FAULTS = {
    "a field": (_drop("answers"), "answers: Field required"),
    "no answers": (_set(answers=[]), "answers: List should have at least 1 item"),
    "a right answer that is none": (_set(answers=["Nile", "NO ANSWER"]), "`answers` holds 'NO ANSWER', which is never"),
    "a blank answer": (_set(answers=["\u00a0", "Nile"]), "which is never a right answer"),
    "a hint's text": (lambda q: q["test"][0]["hints"][1].clear(), r"hints\.1\.hint: Field required"),
    "convergence above 1": (_hint(0, convergence=1.5), "less than or equal to 1"),
    "convergence that is true": (_hint(0, convergence=True), r"hints\.0\.convergence"),
    "too few hints": (lambda q: q["test"][0]["hints"].pop(), "it has 1 hints, but question 'b' of train.json"),
    "a passage": (lambda q: q["test"][0]["subsets"]["01"].pop("10"), "`subsets.01.10` is missing: each order of the 2"),
    "unknown hint": (_subset("01", **{"12": {}}), "`subsets.01.12` does not belong here"),
    "wrong subset": (_subset("1", **{"0": {}}), "`subsets.1.0` does not belong here"),
    "a reader": (lambda q: _passage(q).pop("qwen-3-8b"), "`subsets.01.10.qwen-3-8b` is missing"),
    "one reader too many": (lambda q: _passage(q).update(mine="x"), "10.mine` does not .* the readers of question 'b'"),
    "an answer": (lambda q: _passage(q).update({"qwen-3-8b": None}), r"subsets\.01\.10\.qwen-3-8b` is null, expected"),
    "half a character": (lambda q: _passage(q).update({"qwen-3-8b": "\ud800"}), r"01\.10\.qwen-3-8b` is the text"),
    "half a character of a hint": (_hint(1, hint="\udfff"), r"hints\.1\.hint: "),
    "no passage": (lambda q: q["test"][0]["subsets"]["01"].update({"10": 3}), r"subsets\.01\.10: Input should be"),
    "no subsets": (_set(subsets=[]), "subsets: Input should be a valid dictionary"),
    "id of another split": (_set(id="b"), "train.json has a question with this id already"),
    "wrong label": (lambda q: _label_all(q, 1), "label` is the number 1, but the answer of `qwen-3-4b` is among"),
    "label of nobody": (lambda q: _label_all(q, 0), "is the number 0, but .* so the label is 2"),
    "no object": (lambda q: q["test"].insert(0, "q"), r"the whole: Input should be a valid dictionary\. Correct"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_file_question_field_and_remedy(name: str, tmp_path: Path) -> None:
    questions = splits()
    spoil, message = FAULTS[name]
    spoil(questions)
    with pytest.raises(InputError, match=message) as raised:
        read(write(tmp_path, questions))
    assert "test.json, record 1 (id: " in str(raised.value)
    assert str(raised.value).endswith("Correct the file, or leave the question out.")


def test_other_readers_need_a_manifest_that_says_who_decides_labels(tmp_path: Path) -> None:
    text = json.dumps(splits()).replace("qwen-3-4b", "mine")
    with pytest.raises(InputError, match="answers of gemma-3-1b, mine, .* expected are those of gemma-3-1b, qwen-3-4b"):
        read(write(tmp_path, json.loads(text)))


@pytest.mark.parametrize(
    "facts", [{}, [], {"readers": [{"key": "gemma-3-1b"}]}, {"readers": 3}, "../../x", "twice", b"{", b"[" * 200_000]
)
def test_a_damaged_manifest_is_not_believed(facts: Any, tmp_path: Path) -> None:
    named = {"identity": "i", "kind": "embedded", "role": "labeler"}
    if isinstance(facts, str):
        facts = {"readers": [{"key": key, "name": facts, **named} for key in (*LABELERS, *READERS)]}
    manifest = {"made_by": "QUIT builder", "format": "release-json", "format_version": 1, "program_version": "0.1.0",
                "release_fingerprint": "", "embedded": True, "files": []}  # fmt: skip
    text = facts if isinstance(facts, bytes) else json.dumps({**manifest, "facts": facts}).encode()
    (write(tmp_path, splits()) / "manifest.json").write_bytes(text)
    with pytest.raises(InputError, match="manifest.json beside the files is damaged"):
        read(tmp_path)


def test_a_file_that_its_manifest_does_not_list_so_is_told(tmp_path: Path, notes: list[str]) -> None:
    folder = write(tmp_path, splits())
    files = [{"path": path.name, "bytes": path.stat().st_size, "sha256": file_checksum(path), "rows": 1}
             for path in sorted(folder.glob("*.json"))]  # fmt: skip
    manifest = {"made_by": "QUIT builder", "format": "release-json", "format_version": 1, "program_version": "0.1.0",
                "release_fingerprint": "", "embedded": True, "files": files, "facts": {}}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    ReleaseFiles(folder)
    assert notes == []
    (folder / "dev.json").write_text("[]")
    ReleaseFiles(folder)
    assert [line.partition(" is not")[0] for line in notes] == [str(folder / "dev.json")]


def test_files_that_are_missing_or_no_json(tmp_path: Path) -> None:
    folder = write(tmp_path, splits())
    for text, message in (
        ("{}", "is not JSON: no array at its beginning"),
        ('[{"id": "x', r"is not JSON: Unterminated string in record 1 \(line 1, column 9\)\. .* cut off"),
        ('[{"id": \x06\x07' + "y" * 900, "is not JSON: [ -~]{1,170}Expected a file of the paper's"),
        ("", "is empty"),
    ):
        (folder / "dev.json").write_text(text)
        with pytest.raises(InputError, match=f"dev.json {message}"):
            read(folder)
    (folder / "dev.json").unlink()
    with pytest.raises(InputError, match="no dev.json or dev.json.gz or dev.json.zst"):
        read(folder)
    for name, codec in (("dev.json.zst", "zstd"), ("dev.json.gz", "gzip")):
        (folder / name).write_bytes(pa.compress(b"[" + b" " * 99 + b"]", codec, asbytes=True)[:-3])
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            read(folder)
    with pytest.raises(InputError, match="elsewhere has no train.json"):
        read(tmp_path / "elsewhere")


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a": ', "}")])
def test_a_file_nested_too_deep_is_refused_before_it_takes_all_memory(tmp_path: Path, opened: str, closed: str) -> None:
    for split in ("dev", "test"):
        (tmp_path / f"{split}.json").write_text("[]")
    (tmp_path / "train.json").write_text("[" + opened * 200_000 + "1" + closed * 200_000 + "]")
    with pytest.raises(InputError, match="train.json is not JSON: .*nesting too deep"):
        list(ReleaseFiles(tmp_path).questions("train"))
