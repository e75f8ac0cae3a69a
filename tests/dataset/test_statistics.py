import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from bm25s.stopwords import STOPWORDS_EN_PLUS
from scipy.stats import sem

from quit.dataset.statistics import TABLES, Statistics, statistics
from quit.errors import InputError
from quit.stages.labelling.passages import permutations
from tests.export import conftest as release
from tests.qa.corpora.worlds import Dice
from tests.rows import changed


@pytest.fixture(scope="module")
def tables():
    return tables_of(release.make_tables())


def tables_of(dataset):
    return {name: getattr(dataset, name) for name in TABLES}


def with_texts(tables, hints, question="Which?", answer="none of these"):
    """Return the release with other texts for its first question; ``hints`` by rank."""
    rows = tables["ranked_hints"].to_pylist()
    for row in rows[:7]:
        row["hint"] = (hints + [""] * 7)[row["rank"]]
    ranked = pa.Table.from_pylist(rows, tables["ranked_hints"].schema)
    questions = changed(tables["questions"], 0, question=question)
    answers = changed(tables["valid_answers"], 0, answer=answer)
    return tables | {"questions": questions, "ranked_hints": ranked, "valid_answers": answers}


def plain(tables):
    """Table 1, passage by passage, in plain Python."""
    truth, left_out = release.truth_of(SimpleNamespace(**tables)), {*STOPWORDS_EN_PLUS}

    def bag(text):
        return {*text.split(" ")} - left_out

    figures = {}
    for name in ("train", "dev", "test", "all"):
        questions, lengths, answers, overlaps, contained = [], [], [], [], []
        for one, question in truth.questions.items():
            if name not in ("all", truth.split[one]):
                continue
            questions.append(len(question.split(" ")))
            answers += [len(answer.split(" ")) for answer in truth.valid[one]]
            for text in (truth.texts[passage] for passage, owner in truth.owner.items() if owner == one):
                lengths.append(len(text.split(" ")))
                q, p = bag(question), bag(text)
                overlaps.append(len(q & p) / len(q | p) if q | p else 0.0)
                contained.append(any(answer.casefold() in text.casefold() for answer in truth.valid[one]))
        figures[name] = tuple(map(np.mean, (questions, lengths, answers, overlaps, contained)))
    return figures


def compare(tables):
    names = ("question_words", "passage_words", "answer_words", "lexical_overlap", "answer_containment")
    counts = {split.split: tuple(getattr(split, name) for name in names) for split in statistics(tables).summary}
    expected = plain(tables)
    assert list(counts) == list(expected)
    assert [*counts.values()] == [pytest.approx(values) for values in expected.values()]
    return counts


def test_table_1_equals_the_plain_computation(tables):
    by_split = compare(tables)
    assert by_split["all"][4] == 0.0
    summary = statistics(tables).summary
    sizes = [(split.split, split.questions, split.passages) for split in summary]
    assert sizes == [("train", 3, 975), ("dev", 2, 650), ("test", 2, 650), ("all", 7, 2_275)]
    assert summary[-1].gold_answer_words == 2.0


def test_overlap_with_shared_words(tables):
    hints = ["It rises over Paris", "The tower of iron", "", "of the and", "Eiffel built it, in Paris"]
    by_split = compare(with_texts(tables, hints, "Which tower did Eiffel build in Paris?"))
    assert by_split["train"][3] > 0.01
    for question in ("of the", "Paris"):  # no word and one word in all
        compare(with_texts(tables, ["the", "of", "and", "a", question], question))
    compare(with_texts(tables, ["a  b", " ", "c", "d e", "f"], "two  spaces "))  # single spaces decide words


@pytest.mark.parametrize(
    ("answer", "hints", "share"),
    [
        ("PARIS", ["In paris", "b", "c", "d", "e"], 261 / 325),  # inside one hint
        ("new york", ["It is New", "York it is", "c", "d", "e"], None),  # across two
        ("a b c", ["x a", "b", "c y", "d", "e"], None),  # across three
        ("new york", ["It is New York", "York it is New", "c", "d", "e"], None),  # both
        ("paris", ["In Paris", "a Paris", "paris b", "parisian", "Paris."], 1.0),
        ("new york", ["It is new", "Yorkshire", "no", "d", "e"], None),
        ("new york", ["It is new.", "Yorkshire", "no", "d", "e"], 0.0),
    ],
)
def test_containment_inside_and_across_hints(tables, answer, hints, share):
    other = with_texts(tables, hints, answer=answer)
    by_split, figures = compare(other), statistics(other)
    if share is not None:
        assert by_split["train"][4] == pytest.approx(share / 3)
    assert figures.contained == (() if share == 0.0 else ("a-1",))


def labels_by(tables, key):
    """Return how many passages there are of each split, value of a column and label."""
    split = {row["question_id"]: row["split"] for row in tables["splits"].to_pylist()}
    described = {row["question_id"]: row for row in tables["descriptions"].to_pylist()}
    counts = Counter()
    for row in tables["labels"].to_pylist():
        facts = {**described[row["question_id"]], "n_hints": len(row["permutation"])}
        for name in (split[row["question_id"]], "all"):
            counts[name, facts[key], row["label"]] += 1
    return counts


def test_labels_by_hints_type_and_difficulty_counted_one_by_one(tables):
    figures = statistics(tables_of(release.as_dictionaries(release.make_tables(), 500)))
    groups = {"n_hints": figures.by_hints, "coarse": figures.by_type, "difficulty_bin": figures.by_difficulty}
    for name, counts in groups.items():
        rows = counts.to_pylist()
        passages = {(row["split"], row[name], row["label"]): row["passages"] for row in rows if row["passages"]}
        assert passages == labels_by(tables, name)
    expected = labels_by(tables, "n_hints")
    for size, passages in {1: 5, 2: 20, 3: 60, 4: 120, 5: 120}.items():
        rows = [row for row in figures.by_hints.to_pylist() if (row["split"], row["n_hints"]) == ("all", size)]
        shares = {row["label"]: row["share"] for row in rows}
        assert shares == pytest.approx({label: expected["all", size, label] / (7 * passages) for label in (1, 2)})


def test_passages_and_share_where_labels_are_few_unusual_or_wrong(tables):
    def of_all(labels):
        """Passages and share of each label, of all passages of one hint."""
        rows = statistics(tables | {"labels": labels}).by_hints.to_pylist()
        return [(row["passages"], row["share"]) for row in rows if (row["split"], row["n_hints"]) == ("all", 1)]

    labels = tables["labels"]
    assert len(labels["permutation"][0].as_py()) == 1
    unlabelled = np.sum(of_all(changed(labels, 0, label=0)), axis=0)
    assert unlabelled == pytest.approx([34, 34 / 35]), "not relevant: in no label's row"
    assert sorted(of_all(labels.slice(0, 1))) == [(0, 0.0), (1, 1.0)]
    assert of_all(labels.slice(0, 0)) == [(0, 0.0), (0, 0.0)]
    for wrong in (3, -1):
        with pytest.raises(InputError, match="a label other than 0 to 2"):
            of_all(changed(labels, 0, label=wrong))
    nowhere = tables | {"descriptions": changed(tables["descriptions"], difficulty_bin=None)}
    assert statistics(nowhere).by_difficulty.equals(statistics(tables).by_difficulty.slice(0, 0))


def test_similarity_is_estimated_on_a_seeded_sample(tables):
    figures = statistics(tables, encoder=Dice(), sample=500)
    total = figures.summary[-1]
    assert (figures.encoder, total.similarity_sample) == ("dice", 500)
    assert sum(split.similarity_sample for split in figures.summary[:-1]) == 500
    assert figures == statistics(tables, encoder=Dice(), sample=500)
    assert statistics(tables, encoder=Dice()).summary[-1].similarity_sample == 500  # the default
    larger = statistics(tables, encoder=Dice(), sample=2_000).summary[-1]
    assert larger.similarity_sample == 2_000
    assert abs(total.semantic_similarity - larger.semantic_similarity) < 5 * total.similarity_error
    assert statistics(tables).summary[-1].semantic_similarity is None
    one = statistics(tables, encoder=Dice(), sample=1).summary
    assert sorted(split.similarity_sample for split in one) == [0, 0, 1, 1]
    for split in one:
        assert (split.semantic_similarity is None) == (split.similarity_sample == 0) and split.similarity_error is None
    assert statistics(tables, encoder=Dice(), sample=2).summary[-1].similarity_error is not None


def test_the_whole_sample_is_the_exact_mean(tables):
    splits = tables["splits"].slice(0, 1)
    figures = statistics(tables | {"splits": splits}, encoder=Dice())
    ranked = sorted(tables["ranked_hints"].to_pylist()[:7], key=lambda row: row["rank"])
    hints = [row["hint"] for row in ranked if row["selected"]]
    texts = [" ".join(hints[index] for index in permutation) for permutation in permutations(5)]
    question = tables["questions"]["question"][0].as_py()
    [cosines] = Dice().encode([question]) @ Dice().encode(texts).T
    assert figures.summary[-1].similarity_sample == 325
    assert figures.summary[-1].semantic_similarity == pytest.approx(float(cosines.mean()), abs=1e-5)
    assert figures.summary[-1].similarity_error == pytest.approx(sem(cosines), rel=1e-4)


def test_absent_splits_are_left_out_and_missing_rows_named(tables):
    figures = statistics(tables | {"splits": tables["splits"].slice(0, 1)})
    assert [split.split for split in figures.summary] == ["train", "all"]
    assert figures.summary[-1].passages == 325
    assert sum(row["passages"] for row in figures.by_hints.to_pylist() if row["split"] == "all") == 325
    with pytest.raises(InputError, match="'descriptions' has no row for the question 'a-1'"):
        statistics(tables | {"descriptions": tables["descriptions"].slice(1)})
    ranked = tables["ranked_hints"].to_pylist()
    place = next(place for place, row in enumerate(ranked) if row["question_id"] == "a-2" and row["selected"])
    fewer = changed(tables["ranked_hints"], place, selected=False)
    with pytest.raises(InputError, match="'a-2' has 4 selected hints in the table 'ranked_hints'; its passages need 5"):
        statistics(tables | {"ranked_hints": fewer})
    with pytest.raises(InputError, match="'a-1' has 0 selected hints"):
        statistics(tables | {"ranked_hints": fewer.slice(0, 0)})
    with pytest.raises(InputError, match="holds no question"):
        statistics(tables | {"splits": tables["splits"].slice(0, 0)})


def test_what_a_release_keeps_is_the_same_again(tables) -> None:
    figures = statistics(tables)
    assert Statistics.from_dict(json.loads(json.dumps(figures.to_dict()))).to_dict() == figures.to_dict()
