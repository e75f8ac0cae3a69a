import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from bm25s.stopwords import STOPWORDS_EN_PLUS
from scipy.stats import sem

from quit.dataset.statistics import Statistics, _overlap, statistics
from quit.errors import InputError
from quit.stages.labelling.passages import permutations
from tests.export import conftest as release
from tests.rows import changed

NAMES = ("questions", "ranked_hints", "descriptions", "splits", "labels", "valid_answers")


@pytest.fixture(scope="module")
def tables():
    return release.make_tables()


def count(tables, **other):
    return statistics(**{name: getattr(tables, name) for name in NAMES}, **other)


def with_texts(tables, question=None, hints=None, answer=None):
    """Return the release with other texts for its first question; ``hints`` by rank."""
    other = {}
    if question is not None:
        other["questions"] = changed(tables.questions, 0, question=question)
    if hints is not None:
        rows = tables.ranked_hints.to_pylist()
        for row in rows[:7]:
            row["hint"] = (hints + [""] * 7)[row["rank"]]
        other["ranked_hints"] = pa.Table.from_pylist(rows, tables.ranked_hints.schema)
    if answer is not None:
        other["valid_answers"] = changed(tables.valid_answers, 0, answer=answer)
    return replace(tables, **other)


def plain(tables):
    """Table 1, passage by passage, in plain Python."""
    truth, left_out = release.truth_of(tables), {*STOPWORDS_EN_PLUS}

    def bag(text):
        return {*text.split(" ")} - left_out

    figures = {}
    for name in ("train", "dev", "test", "all"):
        lengths, overlaps, contained, asked, answers = [], [], [], [], []
        for one, question in truth.questions.items():
            if name not in ("all", truth.split[one]):
                continue
            asked.append(len(question.split(" ")))
            answers += [len(answer.split(" ")) for answer in truth.valid[one]]
            for text in (truth.texts[passage] for passage, owner in truth.owner.items() if owner == one):
                lengths.append(len(text.split(" ")))
                q, p = bag(question), bag(text)
                overlaps.append(len(q & p) / len(q | p) if q | p else 0.0)
                contained.append(any(answer.casefold() in text.casefold() for answer in truth.valid[one]))
        figures[name] = tuple(map(np.mean, (asked, lengths, answers, overlaps, contained)))
    return figures


def compare(tables):
    names = ("question_words", "passage_words", "answer_words", "lexical_overlap", "answer_containment")
    counted = {split.split: tuple(getattr(split, name) for name in names) for split in count(tables).summary}
    expected = plain(tables)
    assert list(counted) == list(expected)
    for split, values in expected.items():
        assert counted[split] == pytest.approx(values), split
    return counted


def test_table_1_equals_the_plain_computation(tables):
    by_split = compare(tables)
    assert by_split["all"][4] == 0.0
    summary = count(tables).summary
    assert [(split.split, split.questions, split.passages) for split in summary] == [
        ("train", 3, 975), ("dev", 2, 650), ("test", 2, 650), ("all", 7, 2_275)
    ]  # fmt: skip
    assert summary[-1].gold_answer_words == 2.0


def test_overlap_with_shared_words(tables):
    hints = ["It rises over Paris", "The tower of iron", "", "of the and", "Eiffel built it, in Paris"]
    by_split = compare(with_texts(tables, "Which tower did Eiffel build in Paris?", hints))
    assert by_split["train"][3] > 0.01
    for question in ("of the", "Paris"):  # no word and one word in all
        compare(with_texts(tables, question, ["the", "of", "and", "a", question]))
    compare(with_texts(tables, "two  spaces ", ["a  b", " ", "c", "d e", "f"]))  # single spaces decide words


@pytest.mark.parametrize(
    ("hint", "share"),
    [
        ("It was the tower of Eiffel", 2 / 6),  # It tower Eiffel beside Which tower Eiffel build Paris?
        ("in Paris tower", 1 / 6),  # Paris is not Paris?
        ("did the in", 0.0),
    ],
)
def test_overlap_is_counted_as_by_the_papers_script(hint, share):
    assert _overlap(["Which tower did Eiffel build in Paris?"], [[hint]]) == pytest.approx(share)


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
    changed = with_texts(tables, hints=hints, answer=answer)
    by_split = compare(changed)
    figures = count(changed)
    if share is not None:
        assert by_split["train"][4] == pytest.approx(share / 3)
    assert figures.contained == (() if share == 0.0 else ("a-1",))


def test_labels_by_number_of_hints_counted_by_hand(tables):
    expected = {}
    split = {row["question_id"]: row["split"] for row in tables.splits.to_pylist()}
    for row in tables.labels.to_pylist():
        for name in (split[row["question_id"]], "all"):
            key = (name, len(row["permutation"]), row["label"])
            expected[key] = expected.get(key, 0) + 1
    rows = count(tables).by_hints.to_pylist()
    assert {(r["split"], r["n_hints"], r["label"]): r["passages"] for r in rows if r["passages"]} == expected
    sizes = {1: 5, 2: 20, 3: 60, 4: 120, 5: 120}
    assert {row["n_hints"] for row in rows} == set(sizes)
    for size, each in sizes.items():
        both = [row for row in rows if (row["split"], row["n_hints"]) == ("all", size)]
        assert sum(row["passages"] for row in both) == 7 * each
        assert sum(row["share"] for row in both) == pytest.approx(1)


def test_labels_by_type_and_difficulty_counted_by_hand(tables):
    figures = count(release.as_dictionaries(tables, 500))
    for name, counted in (("coarse", figures.by_type), ("difficulty_bin", figures.by_difficulty)):
        group = {row["question_id"]: row[name] for row in tables.descriptions.to_pylist()}
        expected = {}
        for row in tables.labels.to_pylist():
            key = (group[row["question_id"]], row["label"])
            expected[key] = expected.get(key, 0) + 1
        assert {(r[name], r["label"]): r["passages"] for r in counted.to_pylist() if r["split"] == "all"} == expected


def test_passages_and_share_where_labels_are_few_unusual_or_wrong(tables):
    def of_all(labels):
        """Passages and share of each label, of all passages of one hint."""
        rows = count(replace(tables, labels=labels)).by_hints.to_pylist()
        return [(row["passages"], row["share"]) for row in rows if (row["split"], row["n_hints"]) == ("all", 1)]

    labels = tables.labels
    assert len(labels["permutation"][0].as_py()) == 1
    unlabelled = np.sum(of_all(changed(labels, 0, label=0)), axis=0)
    assert unlabelled == pytest.approx([34, 34 / 35]), "not relevant: in no label's row"
    assert sorted(of_all(labels.slice(0, 1))) == [(0, 0.0), (1, 1.0)]
    assert of_all(labels.slice(0, 0)) == [(0, 0.0), (0, 0.0)]
    for wrong in ({"label": 3}, {"label": -1}, {"permutation": "012340"}):
        with pytest.raises(InputError, match="a label other than 0 to 2, or a passage of over 5 hints"):
            of_all(changed(labels, 0, **wrong))
    nowhere = replace(tables, descriptions=changed(tables.descriptions, difficulty_bin=None))
    assert count(nowhere).by_difficulty.equals(count(tables).by_difficulty.slice(0, 0))


class Letters:
    """An encoder of letter counts, for which cosines are easily worked out."""

    identity, dimension = "letters@1", 26

    def encode(self, texts):
        assert len(texts) <= 2_000
        counts = [[text.lower().count(chr(97 + i)) + 1e-6 for i in range(26)] for text in texts]
        counts = np.array(counts, dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_similarity_is_estimated_on_a_seeded_sample(tables):
    figures = count(tables, encoder=Letters(), sample=500)
    total = figures.summary[-1]
    assert (figures.encoder, total.similarity_sample) == ("letters@1", 500)
    assert sum(split.similarity_sample for split in figures.summary[:-1]) == 500
    assert figures == count(tables, encoder=Letters(), sample=500)
    assert count(tables, encoder=Letters()).summary[-1].similarity_sample == 500  # the default
    larger = count(tables, encoder=Letters(), sample=2_000).summary[-1]
    assert larger.similarity_sample == 2_000
    assert abs(total.semantic_similarity - larger.semantic_similarity) < 5 * total.similarity_error
    assert count(tables).summary[-1].semantic_similarity is None
    one = count(tables, encoder=Letters(), sample=1).summary
    assert sorted(split.similarity_sample for split in one) == [0, 0, 1, 1]
    for split in one:
        assert (split.semantic_similarity is None) == (split.similarity_sample == 0) and split.similarity_error is None
    assert count(tables, encoder=Letters(), sample=2).summary[-1].similarity_error is not None


def test_the_whole_sample_is_the_exact_mean(tables):
    splits = tables.splits.slice(0, 1)
    figures = count(replace(tables, splits=splits), encoder=Letters())
    ranked = sorted(tables.ranked_hints.to_pylist()[:7], key=lambda row: row["rank"])
    hints = [row["hint"] for row in ranked if row["selected"]]
    texts = [" ".join(hints[index] for index in permutation) for permutation in permutations(5)]
    question = tables.questions["question"][0].as_py()
    [cosines] = Letters().encode([question]) @ Letters().encode(texts).T
    assert figures.summary[-1].similarity_sample == 325
    assert figures.summary[-1].semantic_similarity == pytest.approx(float(cosines.mean()), abs=1e-5)
    assert figures.summary[-1].similarity_error == pytest.approx(sem(cosines), rel=1e-4)


def test_absent_splits_are_left_out_and_missing_rows_named(tables):
    figures = count(replace(tables, splits=tables.splits.slice(0, 1)))
    assert [split.split for split in figures.summary] == ["train", "all"]
    assert figures.summary[-1].passages == 325
    assert sum(row["passages"] for row in figures.by_hints.to_pylist() if row["split"] == "all") == 325
    with pytest.raises(InputError, match="'descriptions' has no row for the question 'a-1'"):
        count(replace(tables, descriptions=tables.descriptions.slice(1)))
    ranked = tables.ranked_hints.to_pylist()
    place = next(place for place, row in enumerate(ranked) if row["question_id"] == "a-2" and row["selected"])
    fewer = changed(tables.ranked_hints, place, selected=False)
    with pytest.raises(InputError, match="'a-2' has 4 selected hints, 'a-1' has others"):
        count(replace(tables, ranked_hints=fewer))
    with pytest.raises(InputError, match="'a-1' has 0 selected hints"):
        count(replace(tables, ranked_hints=fewer.slice(0, 0)))
    with pytest.raises(InputError, match="holds no question"):
        count(replace(tables, splits=tables.splits.slice(0, 0)))


def test_what_a_release_keeps_is_the_same_again(tables) -> None:
    figures = count(tables)
    assert Statistics.from_dict(json.loads(json.dumps(figures.to_dict()))).to_dict() == figures.to_dict()
