import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from quit.common.ids import passage_id
from quit.errors import InputError, SettingsError
from quit.export import export
from tests.answers import with_texts


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("json")
    export(tables, ["release-json"], out)
    return out / "release-json"


def load(folder, split):
    return json.loads((folder / f"{split}.json").read_text(encoding="utf-8"))


def test_the_shape_is_section_12s(folder, release):
    for split in ("train", "dev", "test"):
        found = load(folder, split)
        assert [one["id"] for one in found] == [one for one, of in release.split.items() if of == split]
        for one in found:
            assert list(one) == ["id", "question", "answers", "hints", "subsets"]
            assert len(one["hints"]) == 5 and all(next(iter(hint)) == "hint" for hint in one["hints"])
            expected = ["".join(s) for k in range(1, 6) for s in itertools.combinations("01234", k)]
            assert list(one["subsets"]) == expected
            for subset, given in one["subsets"].items():
                assert list(given) == ["".join(p) for p in itertools.permutations(subset)]
                assert all(list(answers) == [info.name for info in release.readers] for answers in given.values())


def test_every_label_recomputed_from_the_json_equals_ours(folder, tables):
    recomputed = {}
    for split in ("train", "dev", "test"):
        for one in load(folder, split):
            for given in one["subsets"].values():
                for permutation, answers in given.items():
                    right = any(answer in one["answers"] for answer in list(answers.values())[:3])
                    recomputed[one["id"], permutation] = 2 if right else 1
    ours = {(row["question_id"], row["permutation"]): row["label"] for row in tables.labels.to_pylist()}
    assert recomputed == ours
    assert set(ours.values()) == {1, 2}


def test_every_answer_is_the_readers(folder, tables):
    found = {one["id"]: one["subsets"] for split in ("train", "dev", "test") for one in load(folder, split)}
    for name, answers in tables.answers.items():
        rows = with_texts(answers)
        assert len(rows) == 7 * 325
        for row in rows:
            subset = "".join(sorted(row["permutation"]))
            assert found[row["question_id"]][subset][row["permutation"]][name] == row["answer"]


def test_the_corpus_is_the_joined_hints_in_passage_order(folder, tables):
    questions = [one for split in ("train", "dev", "test") for one in load(folder, split)]
    hints = {one["id"]: [hint["hint"] for hint in one["hints"]] for one in questions}
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()  # not fooled by U+2028 either
    rows = tables.passages.to_pylist()
    assert len(lines) == len(rows) == 7 * 325
    for line, row in zip(lines, rows, strict=True):
        question = row["question_id"]
        expected = " ".join(hints[question][int(index)] for index in row["permutation"])
        assert json.loads(line) == {
            "id": passage_id(question, row["permutation"]), "contents": expected, "title": question
        }  # fmt: skip


def test_the_hints_are_those_of_the_ranking(folder, tables, release):
    ranked = [row for row in tables.ranked_hints.to_pylist() if row["selected"]]
    origin = {row["hint_id"]: row["source"] for row in tables.hints.to_pylist()}
    questions = load(folder, "test")
    assert len(questions) == list(release.split.values()).count("test") > 0
    for one in questions:
        expected = sorted((row for row in ranked if row["question_id"] == one["id"]), key=lambda row: row["rank"])
        assert one["hints"] == [
            {"hint": row["hint"], "convergence": row["convergence"], "origin": origin[row["hint_id"]]}
            for row in expected
        ]


def test_paper_keys_and_what_the_manifest_says(folder, tables, tmp_path, release):
    (manifest,) = export(tables, ["release-json"], tmp_path, paper_keys=True)
    keys = ["gemma-3-1b", "qwen-3-4b", "llama-31-8b", "llama-32-1b", "gemma-3-4b", "qwen-3-8b"]
    found = load(tmp_path / "release-json", "dev")[0]["subsets"]["0"]["0"]
    assert list(found) == keys
    assert list(found.values()) == list(load(folder, "dev")[0]["subsets"]["0"]["0"].values())
    readers = json.loads((tmp_path / "release-json" / "manifest.json").read_text())["facts"]["readers"]
    assert [(one["key"], one["name"], one["kind"]) for one in readers] == [
        (key, info.name, "embedded") for key, info in zip(keys, release.readers, strict=True)
    ]
    assert manifest.embedded and manifest.facts["label_rule"].startswith("2 if one of the first 3")


def test_labelers_come_first_whatever_the_profile_says(tables, tmp_path, release):
    mixed = replace(tables, readers=tuple(release.readers[place] for place in (3, 0, 4, 1, 5, 2)))
    export(mixed, ["release-json"], tmp_path)
    assert list(load(tmp_path / "release-json", "dev")[0]["subsets"]["0"]["0"]) == [
        info.name for info in release.readers
    ]


def test_paper_keys_need_three_and_three(tables, tmp_path, release):
    with pytest.raises(SettingsError, match="this release has 3 and 2"):
        export(replace(tables, readers=release.readers[:5]), ["release-json"], tmp_path, paper_keys=True)
    assert list(tmp_path.iterdir()) == []


def test_tables_may_hold_more_than_the_release(folder, tables, tmp_path, release):
    fewer = replace(tables, splits=tables.splits.filter(pa.array([one != "a-3" for one in release.split])))
    export(fewer, ["release-json"], tmp_path)
    assert load(tmp_path / "release-json", "train") == [one for one in load(folder, "train") if one["id"] != "a-3"]
    assert load(tmp_path / "release-json", "test") == load(folder, "test")


def test_labels_that_do_not_follow_are_refused(tables, tmp_path):
    labels = tables.labels.to_pylist()
    labels[700]["label"] = 3 - labels[700]["label"]
    wrong = replace(tables, labels=pa.Table.from_pylist(labels, tables.labels.schema))
    with pytest.raises(InputError, match=r"1 labels do not follow .* 'a-3', permutation '041'"):
        export(wrong, ["release-json"], tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("labels", lambda one: one.slice(1), "'labels' has 324 rows for the question 'a-1', expected 325"),
        ("passages", lambda one: one.take([1, 0, *range(2, len(one))]), "not in depth-first order"),
        ("passages", lambda one: pa.concat_tables([one.slice(1), one.slice(0, 1)]), "not together"),
        ("valid_answers", lambda one: one.slice(0, 1), "'valid_answers' has no row for the question 'a-2'"),
        ("questions", lambda one: one.slice(1), "'questions' has no row for the question 'a-1'"),
        ("ranked_hints", lambda one: one.slice(7), "'a-1' has 0 selected hints"),
        ("splits", lambda one: one.slice(0, 0), "nothing to export"),
        ("splits", lambda one: pa.concat_tables([one, one]), "twice"),
        ("answers", lambda one: {}, "no answers of the reader 'labeler-x'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tables, tmp_path, name, change, message):
    with pytest.raises(InputError, match=message):
        export(replace(tables, **{name: change(getattr(tables, name))}), ["release-json"], tmp_path)
    assert list(tmp_path.glob("*")) == []
