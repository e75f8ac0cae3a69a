import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from quit.errors import InputError, SettingsError
from quit.export import export
from tests.answers import with_texts
from tests.export.conftest import READERS, SPLIT, SPLITS, jsonl, truth_of
from tests.rows import changed

FORMAT = "release-json"
SUBSETS = ["".join(some) for size in range(1, 6) for some in itertools.combinations("01234", size)]
NAMES = [info.name for info in READERS]


def load(folder, split):
    return json.loads((folder / f"{split}.json").read_text(encoding="utf-8"))


def first_passage(out, subset="0"):
    """Return reader -> answer of the first passage of dev, in the order of the file."""
    return load(out, "dev")[0]["subsets"][subset]["0"]


def test_the_shape_is_section_12s_and_every_answer_and_label_is_there(folder, tables):
    answers = {
        (row["question_id"], row["permutation"], name): row["answer"]
        for name, of_reader in tables.answers.items()
        for row in with_texts(of_reader)
    }
    labels = {(row["question_id"], row["permutation"]): row["label"] for row in tables.labels.to_pylist()}
    for split in SPLITS:
        questions = load(folder, split)
        assert [one["id"] for one in questions] == [one for one, of in SPLIT.items() if of == split]
        for one in questions:
            assert list(one) == ["id", "question", "answers", "hints", "subsets"] and list(one["subsets"]) == SUBSETS
            for subset, by_permutation in one["subsets"].items():
                assert list(by_permutation) == ["".join(some) for some in itertools.permutations(subset)]
                for permutation, by_reader in by_permutation.items():
                    passage = (one["id"], permutation)
                    assert [*by_reader.items()] == [(name, answers.pop((*passage, name))) for name in NAMES]
                    right = {*list(by_reader.values())[:3]} & {*one["answers"]}
                    assert labels.pop(passage) == (2 if right else 1)
    assert not answers and not labels


def test_the_corpus_is_the_joined_hints_in_passage_order(folder, tables):
    truth = truth_of(tables)
    assert jsonl(folder / "corpus.jsonl") == [  # not fooled by U+2028 either
        {"id": name, "contents": text, "title": truth.owner[name]} for name, text in truth.texts.items()
    ]


def test_the_hints_are_those_of_the_ranking(folder, tables):
    origin = {row["hint_id"]: row["source"] for row in tables.hints.to_pylist()}
    ranked = sorted(tables.ranked_hints.to_pylist(), key=lambda row: row["rank"])
    for one in load(folder, "test"):
        assert one["hints"] == [
            {"hint": row["hint"], "convergence": row["convergence"], "origin": origin[row["hint_id"]]}
            for row in ranked
            if row["selected"] and row["question_id"] == one["id"]
        ]


def test_paper_keys_and_what_the_manifest_says(folder, tables, tmp_path):
    (manifest,) = export(tables, ["release-json"], tmp_path, paper_keys=True)
    keys = ["gemma-3-1b", "qwen-3-4b", "llama-31-8b", "llama-32-1b", "gemma-3-4b", "qwen-3-8b"]
    assert [*first_passage(tmp_path / "release-json", "10000").items()] == [*zip(keys, first_passage(folder).values())]
    readers = json.loads((tmp_path / "release-json" / "manifest.json").read_text())["facts"]["readers"]
    assert [(one["key"], one["name"], one["kind"]) for one in readers] == [
        (key, name, "embedded") for key, name in zip(keys, NAMES)
    ]
    assert manifest.embedded and manifest.facts["label_rule"].startswith("2 if one of the first 3")
    with pytest.raises(SettingsError, match="this release has 3 and 2"):
        export(replace(tables, readers=READERS[:5]), ["release-json"], tmp_path / "none", paper_keys=True)
    assert not (tmp_path / "none" / "release-json").exists()


def test_labelers_come_first_whatever_the_profile_says(tables, tmp_path):
    export(replace(tables, readers=[READERS[place] for place in (3, 0, 4, 1, 5, 2)]), ["release-json"], tmp_path)
    assert list(first_passage(tmp_path / "release-json")) == NAMES


def test_tables_may_hold_more_than_the_release(folder, tables, tmp_path):
    fewer = replace(tables, splits=tables.splits.filter(pa.array([one != "a-3" for one in SPLIT])))
    export(fewer, ["release-json"], tmp_path)
    for split in SPLITS:
        expected = [one for one in load(folder, split) if one["id"] != "a-3"]
        assert load(tmp_path / "release-json", split) == expected


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("labels", lambda one: changed(one, 700, label=2), r"1 labels do not follow .* 'a-3', permutation '041'"),
        ("labels", lambda one: one.slice(1), "'labels' has 324 rows for the question 'a-1', expected 325"),
        ("passages", lambda one: one.take([1, 0, *range(2, len(one))]), "not in depth-first order"),
        ("passages", lambda one: pa.concat_tables([one.slice(1), one.slice(0, 1)]), "not in depth-first order"),
        ("passages", lambda one: one.slice(325), "'passages' has no row for the question 'a-1'"),
        ("valid_answers", lambda one: one.slice(0, 1), "'valid_answers' has no row for the question 'a-2'"),
        ("questions", lambda one: one.slice(1), "'questions' has no row for the question 'a-1'"),
        ("ranked_hints", lambda one: one.slice(7), "'a-1' has 0 selected hints"),
        ("splits", lambda one: one.slice(0, 0), "nothing to export"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tables, tmp_path, name, change, message):
    with pytest.raises(InputError, match=message):
        export(replace(tables, **{name: change(getattr(tables, name))}), ["release-json"], tmp_path)
    assert list(tmp_path.glob("*")) == []
