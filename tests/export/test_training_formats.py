"""tevatron, colbert and monot5: the documented shapes, parsed back and compared with the tables."""

from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest

from quit.errors import InputError, SettingsError
from quit.export import FineTuning, export, verify
from quit.export.training import KINDS, Selection, keyed_draws
from tests.export.conftest import AWKWARD, flat, jsonl, make_tables, tsv
from tests.export.tevatron import read_by_tevatron

datasets = pytest.importorskip("datasets")
FORMATS = ("tevatron", "colbert", "monot5")
COUNTS = {"other": (3, 7), "any": (200, 200)}
WANTED = {kind: FineTuning(*counts, kind) for kind, counts in COUNTS.items()}


@pytest.fixture(scope="module", params=WANTED)
def exported(request, awkward, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param)
    export(awkward, FORMATS, out, fine_tuning=WANTED[request.param])
    return SimpleNamespace(out=out, wanted=WANTED[request.param])


def of_split(split):
    return [one for one, split_of in AWKWARD.items() if split_of == split]


def test_tevatron_loaded_by_datasets(exported, truth, tmp_path):
    out, wanted = exported.out / "tevatron", exported.wanted
    files = {split: str(out / f"{split}.jsonl") for split in ("train", "dev")}
    loaded = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path))
    facts = {name: verify(exported.out / name).facts["fine_tuning"] for name in FORMATS}
    for split, rows in loaded.items():
        pairs: dict[str, list] = {}
        for row in rows:
            question, number = unquote(row["query_id"]).rsplit("_", 1)
            assert row["query"] == truth.questions[question] and int(number) == len(pairs.setdefault(question, []))
            pair = (*row["positive_passages"], *row["negative_passages"])
            for passage in pair:
                assert passage["text"] == truth.texts[unquote(passage["docid"])] and passage["title"] == ""
            pairs[question].append([unquote(passage["docid"]) for passage in pair])
        assert [*pairs] == of_split(split)
        fewer, labels, positives = 0, set(), set()
        for question, pairs_of in pairs.items():
            good, bad = ([*dict.fromkeys(side)] for side in zip(*pairs_of, strict=True))
            full = sum(truth.labels[name] == 2 for name, owner in truth.owner.items() if owner == question)
            fewer += full < wanted.positives
            assert len(good) == min(wanted.positives, full) and len(bad) == wanted.negatives
            assert len(pairs_of) == max(len(good), len(bad))
            positives |= {(truth.questions[question], passage) for passage in good}
            assert all(truth.owner[one] == question and truth.labels[one] == 2 for one in good)
            owners = {truth.owner[one] for one in bad}
            labels |= {truth.labels[one] for one in bad}
            others = {*of_split(split)} - {question}
            assert owners <= others
        assert {(query, unquote(passage)) for query, passage in read_by_tevatron(rows)} == positives
        # Footnote 11: positives of other questions.
        assert labels == ({2} if wanted.kind == "other" else {1, 2})
        for counts in facts.values():
            expected = {"questions": len(pairs), "without_positive": 0, "fewer_positives": fewer}
            assert counts["splits"][split].items() >= expected.items()
    for counts in facts.values():
        assert FineTuning(counts["positives"], counts["negatives"], counts["kind"]) == wanted
    corpus = {unquote(row["docid"]): row["text"] for row in jsonl(out / "corpus.jsonl")}
    assert corpus == truth.texts
    assert jsonl(out / "queries.test.jsonl") == [{"query_id": "c-3", "query": truth.questions["c-3"]}]


def test_the_three_formats_choose_the_same_passages(exported, truth):
    passages, queries = (dict(tsv(exported.out / "colbert" / f"{kind}_ids.tsv")) for kind in ("passage", "query"))
    for split in ("train", "dev"):
        numbers = jsonl(exported.out / "colbert" / f"triples.{split}.jsonl")
        assert numbers and all(type(one) is int for row in numbers for one in row)
        triples = [
            (unquote(queries[str(q)]), unquote(passages[str(p)]), unquote(passages[str(n)])) for q, p, n in numbers
        ]
        records = jsonl(exported.out / "tevatron" / f"{split}.jsonl")
        assert triples == [
            tuple(map(unquote, (row["query_id"].rsplit("_", 1)[0], good["docid"], bad["docid"])))
            for row in records
            for good, bad in zip(row["positive_passages"], row["negative_passages"], strict=True)
        ]
        assert tsv(exported.out / "monot5" / f"{split}.tsv") == [
            [flat(truth.questions[q]), flat(truth.texts[p]), flat(truth.texts[n])] for q, p, n in triples
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_are_the_first_of_more_and_the_seed_matters(awkward, kind):
    dataset = awkward

    def examples(positives, negatives, seed="export"):
        return list(Selection(dataset, FineTuning(positives, negatives, kind, seed=seed)).examples("train"))

    for few, many in zip(examples(2, 3), examples(20, 150), strict=True):
        assert many.positives[:2] == few.positives and many.negatives[:3] == few.negatives
    assert [one.positives for one in examples(20, 5)] != [one.positives for one in examples(20, 5, "another")]


def test_a_question_with_the_same_answer_gives_no_negatives(awkward):
    rows = awkward.valid_answers.to_pylist()
    shared = next(row for row in rows if row["question_id"] == "d\u20284")
    together = [*rows, {**shared, "question_id": "a b\t1"}]
    dataset = replace(awkward, valid_answers=pa.Table.from_pylist(together, awkward.valid_answers.schema))
    others = {"a b\t1": {"f 6"}, "d\u20284": {"f 6"}, "f 6": {"a b\t1", "d\u20284"}}
    for kind in KINDS:
        for example in Selection(dataset, FineTuning(1, 200, kind)).examples("train"):
            owners = {dataset.ids[number // 325] for number in example.negatives}
            assert owners == others[dataset.ids[example.position]]


def test_a_question_gets_every_positive_of_the_others_where_these_are_few():
    """Footnote 11 with 200 wanted: q1 has exactly the passages of label 2 of q2, in another order."""
    dataset = make_tables({"q1": "train", "q2": "train"})
    fully = [int(number) for number in 325 + np.flatnonzero(dataset.labels_of(np.array([1])) == 2)]
    first, _ = Selection(dataset, FineTuning(1, 200, "other")).examples("train")
    assert 3 <= len(fully) <= 200 and sorted(first.negatives) == fully != first.negatives


@pytest.mark.parametrize(
    ("choice", "message"),
    [({"positives": 0}, "^positives must be a whole number from 1 to 200, not 0"),
     ({"positives": "3"}, "^positives .* not '3'"), ({"positives": True}, "not True"), ({"negatives": 2.5}, "not 2.5"),
     ({"seed": 7}, "^seed must be a text, not 7"), ({"kind": ["any"]}, "^kind must be"),
     ({"negatives": 201}, "^negatives must be"),
     ({"kind": "othr"}, "Did you mean 'other'")],
)  # fmt: skip
def test_wrong_choices_are_named(choice, message):
    with pytest.raises(SettingsError, match=message):
        FineTuning(**choice)


def test_keyed_draws_are_splitmix64():
    """The published sequence of SplitMix64 for the seed 1234567."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert keyed_draws(1234567, 4).tolist() == expected
    assert keyed_draws(1234567, 2, start=2).tolist() == expected[2:]


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(InputError, match="nothing to fine-tune on"):
        export(make_tables({"q1": "train", "q2": "test"}), ["colbert"], tmp_path)
    assert not (tmp_path / "colbert").exists()
    assert list(Selection(make_tables({"q3": "dev"}), FineTuning(1, 1)).examples("dev")) == [], "no other question"
