"""tevatron, colbert and monot5: the documented shapes, parsed back and compared with the tables."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest

from quit.common.ids import passage_id
from quit.dataset.dataset import Dataset
from quit.errors import InputError, SettingsError
from quit.export import FineTuning, export, verify
from quit.export.mining import nearest_questions
from quit.export.training import KINDS, Selection, keyed_draws
from quit.text.normalize import normalize_answer
from tests.export.conftest import flat, jsonl, truth_of

datasets = pytest.importorskip("datasets")
AWKWARD = {"a b\t1": "train", 'q"2%': "dev", "c-3": "test", "d\u20284": "train", "e-5": "dev", "f 6": "train"}
FORMATS = ("tevatron", "colbert", "monot5")
WANTED = {
    "other": FineTuning(3, 7, "other"),
    "any": FineTuning(3, 7, "any"),
    "partial": FineTuning(7, 3, "partial"),
    "hard": FineTuning(200, 200, "hard"),
}


@pytest.fixture(scope="module")
def awkward(release):
    return release.make(AWKWARD)


@pytest.fixture(scope="module")
def truth(awkward):
    return vars(truth_of(awkward))


@pytest.fixture(scope="module", params=WANTED)
def made(request, awkward, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param)
    export(awkward, FORMATS, out, fine_tuning=WANTED[request.param])
    return out, WANTED[request.param]


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def triples_of(folder: Path, split: str) -> list[tuple[str, str, str]]:
    """Return the triples of a colbert export as our ids."""
    passages = dict(line.split("\t") for line in lines_of(folder / "passage_ids.tsv"))
    queries = dict(line.split("\t") for line in lines_of(folder / "query_ids.tsv"))
    rows = jsonl(folder / f"triples.{split}.jsonl")
    assert all(type(one) is int for row in rows for one in row)
    return [(unquote(queries[str(q)]), unquote(passages[str(p)]), unquote(passages[str(n)])) for q, p, n in rows]


def test_tevatron_loaded_by_datasets(made, truth, tmp_path):
    out, wanted = made
    files = {split: str(out / "tevatron" / f"{split}.jsonl") for split in ("train", "dev")}
    loaded = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path))
    for split, rows in loaded.items():
        expected = [one for one, given in AWKWARD.items() if given == split]
        assert [unquote(row["query_id"]) for row in rows] == expected
        for row in rows:
            question = unquote(row["query_id"])
            assert row["query"] == truth["questions"][question]
            for kind in ("positive_passages", "negative_passages"):
                for passage in row[kind]:
                    assert passage["text"] == truth["texts"][unquote(passage["docid"])] and passage["title"] == ""
            good = [unquote(one["docid"]) for one in row["positive_passages"]]
            bad = [unquote(one["docid"]) for one in row["negative_passages"]]
            full = sum(truth["labels"][name] == 2 for name, owner in truth["owner"].items() if owner == question)
            assert len(set(good)) == len(good) == min(wanted.positives, full)
            assert len(set(bad)) == len(bad) == wanted.negatives
            assert all(truth["owner"][one] == question and truth["labels"][one] == 2 for one in good)
            if wanted.kind == "partial":
                assert all(truth["owner"][one] == question and truth["labels"][one] == 1 for one in bad)
            else:
                assert all(AWKWARD[truth["owner"][one]] == split != question for one in bad)
                assert all(truth["owner"][one] != question for one in bad)
            if wanted.kind == "other":  # footnote 11: positives of other questions
                assert all(truth["labels"][one] == 2 for one in bad)
    corpus = jsonl(out / "tevatron" / "corpus.jsonl")
    assert {unquote(row["docid"]): row["text"] for row in corpus} == truth["texts"]
    assert jsonl(out / "tevatron" / "queries.test.jsonl") == [{"query_id": "c-3", "query": truth["questions"]["c-3"]}]


def test_colbert_collection_is_its_line_numbers(made, truth):
    folder = made[0] / "colbert"
    rows = [line.split("\t") for line in lines_of(folder / "collection.tsv")]
    assert [row[0] for row in rows] == [str(number) for number in range(len(truth["texts"]))]
    assert [row[1] for row in rows] == [flat(text) for text in truth["texts"].values()]
    ids = [line.split("\t") for line in lines_of(folder / "passage_ids.tsv")]
    assert [unquote(row[1]) for row in ids] == truth["names"] and [row[0] for row in ids] == [row[0] for row in rows]


def test_colbert_labels_and_queries_use_the_same_integers(made, truth):
    folder = made[0] / "colbert"
    names = list(AWKWARD)
    for split in ("train", "dev", "test"):
        queries = dict(line.split("\t") for line in lines_of(folder / f"queries.{split}.tsv"))
        assert queries == {
            str(names.index(one)): truth["questions"][one] for one, given in AWKWARD.items() if given == split
        }
        rows = [[int(one) for one in line.split("\t")] for line in lines_of(folder / f"qrels.{split}.tsv")]
        assert {truth["names"][pid]: label for _, _, pid, label in rows} == {
            name: label for name, label in truth["labels"].items() if AWKWARD[truth["owner"][name]] == split
        }
        assert all(names[qid] == truth["owner"][truth["names"][pid]] for qid, _, pid, _ in rows)


def test_the_three_formats_choose_the_same_passages(made, truth):
    out, _ = made
    for split in ("train", "dev"):
        triples = triples_of(out / "colbert", split)
        assert len(triples) > 0
        chosen = {}
        for question, good, bad in triples:
            ours = chosen.setdefault(question, (set(), set()))
            ours[0].add(good), ours[1].add(bad)
        for row in jsonl(out / "tevatron" / f"{split}.jsonl"):
            sides = [{unquote(one["docid"]) for one in row[f"{side}_passages"]} for side in ("positive", "negative")]
            assert chosen[unquote(row["query_id"])] == tuple(sides), "every passage is in a triple"
        rows = [tuple(line.split("\t")) for line in lines_of(out / "monot5" / f"{split}.tsv")]
        assert rows == [
            (flat(truth["questions"][q]), flat(truth["texts"][p]), flat(truth["texts"][n])) for q, p, n in triples
        ]


def test_the_manifest_says_what_was_chosen_and_what_was_short(made, truth):
    out, wanted = made
    full = {one: 0 for one in AWKWARD}
    for name, label in truth["labels"].items():
        full[truth["owner"][name]] += label == 2
    for name in FORMATS:
        facts = verify(out / name).facts["fine_tuning"]
        assert (facts["positives"], facts["negatives"], facts["kind"]) == (
            wanted.positives, wanted.negatives, wanted.kind
        )  # fmt: skip
        assert ("miner_identity" in facts) == (wanted.kind == "hard") == ("miner" in facts)
        for split in ("train", "dev"):
            ours = [one for one, given in AWKWARD.items() if given == split]
            count = facts["splits"][split]
            assert (count["questions"], count["without_positive"]) == (len(ours), 0)
            assert count["fewer_positives"] == sum(full[one] < wanted.positives for one in ours)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_are_the_first_of_more_and_the_seed_matters(awkward, kind):
    dataset = Dataset(awkward)

    def chosen(positives, negatives, seed="export"):
        wanted = FineTuning(positives, negatives, kind, seed=seed)
        return list(Selection(dataset, wanted).examples("train"))

    for few, many in zip(chosen(2, 3), chosen(20, 150), strict=True):
        assert many.positives[:2] == few.positives and many.negatives[:3] == few.negatives
    assert [one.positives for one in chosen(20, 5)] != [one.positives for one in chosen(20, 5, "another")]


def test_a_question_with_the_same_answer_gives_no_negatives(awkward):
    rows = awkward.valid_answers.to_pylist()
    shared = next(row for row in rows if row["question_id"] == "d\u20284")
    extra = {**shared, "question_id": "a b\t1"}
    together = replace(awkward, valid_answers=pa.Table.from_pylist([*rows, extra], awkward.valid_answers.schema))
    dataset = Dataset(together)
    for kind in ("other", "any", "hard"):
        for example in Selection(dataset, FineTuning(1, 200, kind)).examples("train"):
            owners = {dataset.ids[number // 325] for number in example.negatives}
            expected = {"a b\t1": {"f 6"}, "d\u20284": {"f 6"}, "f 6": {"a b\t1", "d\u20284"}}
            assert owners == expected[dataset.ids[example.position]]
    assert normalize_answer(shared["answer"])


def test_label_1_is_a_negative_of_the_kind_any_alone(awkward):
    dataset = Dataset(awkward)
    labels = dataset.labels(np.arange(len(dataset.ids))).ravel()
    for kind, found in (("other", {2}), ("any", {1, 2})):
        examples = Selection(dataset, FineTuning(1, 50, kind)).examples("train")
        assert {int(labels[number]) for example in examples for number in example.negatives} == found


def test_a_question_gets_every_positive_of_the_others_where_these_are_few(release):
    """Footnote 11 with 200 wanted: q1 may have exactly the passages of label 2 of q2, in another order."""
    dataset = Dataset(release.make({"q1": "train", "q2": "train"}))
    labels = dataset.labels(np.arange(2))
    fully = [int(number) for number in 325 + np.flatnonzero(labels[1] == 2)]
    first, _ = Selection(dataset, FineTuning(1, 200, "other")).examples("train")
    assert sorted(first.negatives) == fully if len(fully) <= 200 else set(first.negatives) <= set(fully)
    assert first.negatives != sorted(first.negatives) or len(fully) < 3


def test_all_there_is_when_more_is_wanted(release):
    dataset = Dataset(release.make({"q1": "train", "q2": "train", "q3": "dev"}))
    selection = Selection(dataset, FineTuning(200, 200, "partial"))
    labels = dataset.labels(np.arange(3))
    for example in selection.examples("train"):
        found = {number % 325 for number in example.negatives}
        rows = np.flatnonzero(labels[example.position] == 1)
        assert found <= set(rows.tolist()) and len(found) == min(200, len(rows))
    assert list(selection.examples("dev"))
    assert list(Selection(dataset, FineTuning(1, 1, "other")).examples("dev")) == [], "dev has no other question"


def test_hard_negatives_are_the_nearest_questions_and_topped_up_where_there_are_none(release):
    """Three questions: one names the hints of the second, one nothing that any hint says."""
    given = release.make({"q1": "train", "q2": "train", "q3": "train"})
    rows = given.questions.to_pylist()
    rows[0]["question"], rows[2]["question"] = "Which xylophone?", "Zebra?"
    ranked = given.ranked_hints.to_pylist()
    for row in ranked:
        row["hint"] += " Xylophone." if row["question_id"] == "q2" else ""
    dataset = Dataset(
        replace(
            given,
            questions=pa.Table.from_pylist(rows, given.questions.schema),
            ranked_hints=pa.Table.from_pylist(ranked, given.ranked_hints.schema),
        )
    )
    selection = Selection(dataset, FineTuning(1, 4, "hard"))
    first, _, last = selection.examples("train")
    assert dataset.permutations.permutation[first.negatives[0] % 325].as_py() == "01234"
    assert {number // 325 for number in first.negatives} == {1} and len(set(first.negatives)) == 4
    assert len(set(last.negatives)) == 4 and 2 not in {number // 325 for number in last.negatives}
    assert selection.counts["train"]["topped_up"] >= 1


def test_nothing_to_tune_on_is_refused(release, tmp_path):
    with pytest.raises(InputError, match="nothing to fine-tune on"):
        export(release.make({"q1": "train", "q2": "test"}), ["colbert"], tmp_path)
    assert not (tmp_path / "colbert").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"positives": 0}, "^positives must be 1 to 200, not 0"), ({"negatives": 201}, "^negatives must be"),
     ({"kind": "hart"}, "Did you mean 'hard'"), ({"miner": "bm52"}, "Did you mean 'bm25'")],
)  # fmt: skip
def test_wrong_choices_are_named(given, message):
    with pytest.raises(SettingsError, match=message):
        FineTuning(**given)


def test_keyed_draws_are_splitmix64():
    """The published sequence of SplitMix64 for the seed 1234567."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert keyed_draws(1234567, 4).tolist() == expected
    assert keyed_draws(1234567, 2, start=2).tolist() == expected[2:]


DOCUMENTS = ["rivers of Africa", "a French painter of water lilies", "mountains of Asia", "an Asian river delta"]


def test_bm25_mines_the_nearest_and_leaves_out_what_shares_no_word():
    nearest, none = nearest_questions("bm25", ["Which painter loved lilies?", "zebra?"], DOCUMENTS)
    assert nearest.tolist() == [1] and none.tolist() == []
    [two] = nearest_questions("bm25", ["Which river?"], DOCUMENTS)
    assert sorted(two.tolist()) == [0, 3]


def test_the_encoder_mines_by_cosine():
    vectors = {"q": [1.0, 0.0], "a": [0.6, 0.8], "b": [1.0, 0.0], "c": [-1.0, 0.0], "d": [0.6, 0.8]}

    class Fixed:
        identity, dimension = "fixed@1", 2

        def encode(self, texts):
            return np.array([vectors[text] for text in texts], dtype=np.float32)

    [found] = nearest_questions("encoder", ["q"], ["a", "b", "c", "d"], Fixed())
    assert found.tolist() == [1, 0, 3, 2]
    with pytest.raises(SettingsError, match="bm25"):
        list(nearest_questions("encoder", ["q"], ["a"]))


def test_an_export_mined_with_an_encoder_says_so(awkward, truth, tmp_path):
    """The encoder sees one document a question, and its nearest gives the first negative."""
    asked = []

    class Digits:
        identity, dimension = "digits@1", 6

        def encode(self, texts):
            asked.append(list(texts))
            made = np.zeros((len(texts), 6), dtype=np.float32)
            for row, text in enumerate(texts):
                number = int(next(one for one in text if one.isdigit()))
                # A question points at the documents of question 5; documents point at themselves.
                made[row, 5 if text.startswith("Who") else number] = 1
            return made

    wanted = FineTuning(1, 2, "hard", "encoder")
    [manifest] = export(awkward, ["tevatron"], tmp_path, fine_tuning=wanted, encoder=Digits())
    assert manifest.facts["fine_tuning"]["miner_identity"] == "digits@1"
    assert sum(map(len, asked)) == 2 * sum(given != "test" for given in AWKWARD.values())
    rows = jsonl(tmp_path / "tevatron" / "train.jsonl")
    first = {unquote(row["query_id"]): unquote(row["negative_passages"][0]["docid"]) for row in rows}
    expected = passage_id("f 6", "01234")
    assert first == {"a b\t1": expected, "d\u20284": expected, "f 6": passage_id("a b\t1", "01234")}


def test_mining_with_an_encoder_that_is_not_there_is_refused(awkward, tmp_path):
    with pytest.raises(SettingsError, match="the miner bm25"):
        export(awkward, ["monot5"], tmp_path, fine_tuning=FineTuning(1, 1, "hard", "encoder"))
    assert not (tmp_path / "monot5").exists()
