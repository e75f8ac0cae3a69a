"""tevatron, colbert and monot5: the documented shapes, parsed back and compared with the tables."""

from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest

from quit.common.ids import passage_id
from quit.errors import InputError, SettingsError
from quit.export import FineTuning, export, verify
from quit.export.training import KINDS, Selection, keyed_draws, nearest_questions
from tests.export.conftest import AWKWARD, flat, jsonl, make_tables, tsv
from tests.export.tevatron import read_by_tevatron
from tests.rows import changed

datasets = pytest.importorskip("datasets")
FORMATS = ("tevatron", "colbert", "monot5")
COUNTS = {"other": (3, 7), "any": (3, 7), "partial": (7, 3), "hard": (200, 200)}
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
            assert owners == {question} if wanted.kind == "partial" else owners <= others
        assert {(query, unquote(passage)) for query, passage in read_by_tevatron(rows)} == positives
        # Footnote 11: positives of other questions.
        assert labels == {"other": {2}, "partial": {1}}.get(wanted.kind, {1, 2})
        for counts in facts.values():
            expected = {"questions": len(pairs), "without_positive": 0, "fewer_positives": fewer}
            assert counts["splits"][split].items() >= expected.items()
    for counts in facts.values():
        assert FineTuning(counts["positives"], counts["negatives"], counts["kind"]) == wanted
        assert ("miner_identity" in counts) == (wanted.kind == "hard") == ("miner" in counts)
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
    for kind in ("other", "any", "hard"):
        for example in Selection(dataset, FineTuning(1, 200, kind)).examples("train"):
            owners = {dataset.ids[number // 325] for number in example.negatives}
            assert owners == others[dataset.ids[example.position]]


def test_a_question_gets_every_positive_of_the_others_where_these_are_few():
    """Footnote 11 with 200 wanted: q1 has exactly the passages of label 2 of q2, in another order."""
    dataset = make_tables({"q1": "train", "q2": "train"})
    fully = [int(number) for number in 325 + np.flatnonzero(dataset.labels_of(np.array([1])) == 2)]
    first, _ = Selection(dataset, FineTuning(1, 200, "other")).examples("train")
    assert 3 <= len(fully) <= 200 and sorted(first.negatives) == fully != first.negatives


def test_all_there_is_when_more_is_wanted():
    dataset = make_tables({"q1": "train", "q2": "train", "q3": "dev"})
    selection, labels = (
        Selection(dataset, FineTuning(200, 200, "partial")),
        dataset.labels_of(np.arange(3)).reshape(3, 325),
    )
    for example in selection.examples("train"):
        rows = {*np.flatnonzero(labels[example.position] == 1).tolist()}
        passages = {number % 325 for number in example.negatives}
        assert passages <= rows and len(passages) == min(200, len(rows))
    assert list(selection.examples("dev"))
    assert list(Selection(dataset, FineTuning(1, 1, "other")).examples("dev")) == [], "dev has no other question"


def test_hard_negatives_are_the_nearest_questions_and_topped_up_where_there_are_none():
    """Three questions: one names the hints of the second, one nothing that any hint says."""
    tables = make_tables({"q1": "train", "q2": "train", "q3": "train"})
    questions = changed(changed(tables.questions, 0, question="Which xylophone?"), 2, question="Zebra?")
    ranked = tables.ranked_hints
    for place in range(7, 14):
        ranked = changed(ranked, place, hint=f"Xylophone {place}.")
    dataset = replace(tables, questions=questions, ranked_hints=ranked)
    selection = Selection(dataset, FineTuning(1, 4, "hard"))
    first, _, last = selection.examples("train")
    assert dataset.rows.table.permutation[first.negatives[0] % 325].as_py() == "01234"
    assert {number // 325 for number in first.negatives} == {1} and len(set(first.negatives)) == 4
    assert len(set(last.negatives)) == 4 and 2 not in {number // 325 for number in last.negatives}
    assert selection.counts["train"]["topped_up"] >= 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [({"positives": 0}, "^positives must be a whole number from 1 to 200, not 0"),
     ({"positives": "3"}, "^positives .* not '3'"), ({"positives": True}, "not True"), ({"negatives": 2.5}, "not 2.5"),
     ({"seed": 7}, "^seed must be a text, not 7"), ({"kind": ["hard"]}, "^kind must be"),
     ({"negatives": 201}, "^negatives must be"),
     ({"kind": "hart"}, "Did you mean 'hard'"), ({"miner": "bm52"}, "Did you mean 'bm25'")],
)  # fmt: skip
def test_wrong_choices_are_named(choice, message):
    with pytest.raises(SettingsError, match=message):
        FineTuning(**choice)


def test_keyed_draws_are_splitmix64():
    """The published sequence of SplitMix64 for the seed 1234567."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert keyed_draws(1234567, 4).tolist() == expected
    assert keyed_draws(1234567, 2, start=2).tolist() == expected[2:]


def test_bm25_mines_the_nearest_and_leaves_out_what_shares_no_word():
    documents = ["rivers of Africa", "a French painter of water lilies", "mountains of Asia", "an Asian river delta"]
    nearest, none, two = nearest_questions("bm25", ["Which painter loved lilies?", "zebra?", "Which river?"], documents)
    assert nearest.tolist() == [1] and none.tolist() == [] and sorted(two.tolist()) == [0, 3]


class Fixed:
    """An encoder of vectors by text."""

    identity, dimension = "fixed@1", 2

    def __init__(self, vector_of):
        self.vector_of, self.asked = vector_of, 0

    def encode(self, texts):
        self.asked += len(texts)
        return np.array([self.vector_of(text) for text in texts], dtype=np.float32)


def test_the_encoder_mines_by_cosine():
    vectors = {"q": [1.0, 0.0], "a": [0.6, 0.8], "b": [1.0, 0.0], "c": [-1.0, 0.0], "d": [0.6, 0.8]}
    [nearest_rows] = nearest_questions("encoder", ["q"], ["a", "b", "c", "d"], Fixed(vectors.__getitem__))
    assert nearest_rows.tolist() == [1, 0, 3, 2]


def test_an_export_mined_with_an_encoder_says_so(awkward, tmp_path):
    """The encoder sees one document a question, and its nearest gives the first negative."""

    def vector_of(text):
        """A question points at the documents of question 5; documents point at themselves."""
        number = int(next(one for one in text if one.isdigit()))
        return np.eye(6)[5 if text.startswith("Who") else number]

    encoder = Fixed(vector_of)
    wanted = FineTuning(1, 2, "hard", "encoder")
    [manifest] = export(awkward, ["tevatron"], tmp_path, fine_tuning=wanted, encoder=encoder)
    assert manifest.facts["fine_tuning"]["miner_identity"] == "fixed@1"
    assert encoder.asked == 2 * (len(AWKWARD) - len(of_split("test")))
    rows = jsonl(tmp_path / "tevatron" / "train.jsonl")
    first = {unquote(row["query_id"]): unquote(row["negative_passages"][0]["docid"]) for row in rows[::2]}
    expected = passage_id("f 6", "01234")
    assert first == {"a b\t1_0": expected, "d\u20284_0": expected, "f 6_0": passage_id("a b\t1", "01234")}


@pytest.mark.parametrize(
    ("split", "wanted", "error", "message"),
    [
        ({"q1": "train", "q2": "test"}, FineTuning(), InputError, "nothing to fine-tune on"),
        (AWKWARD, FineTuning(1, 1, "hard", "encoder"), SettingsError, "the miner bm25"),
    ],
)
def test_what_cannot_be_is_refused(split, wanted, error, message, tmp_path):
    with pytest.raises(error, match=message):
        export(make_tables(split), ["colbert"], tmp_path, fine_tuning=wanted)
    assert not (tmp_path / "colbert").exists()
