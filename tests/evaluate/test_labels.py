from collections import Counter

import pyarrow as pa
import pytest
import pytrec_eval

from quit.evaluate.agreement import alpha_of_counts, cohen_kappa
from quit.evaluate.labels import labels_by_split, of_readers, reader_agreement, shared_answers

SPLITS = pa.table({"question_id": ["a", "b", "c", "d"], "split": ["test", "test", "train", "test"]})
LABELED = {
    "question_id": [*"aabbccdd", "other"],
    "permutation": [*"01010101", "0"],
    "label": [2, 1, 1, 1, 1, 2, 2, 2, 2],
}
LABELS = pa.table(LABELED)


def test_labels_by_split_counts_questions_and_passages():
    train, test, whole = labels_by_split(SPLITS, LABELS)
    assert (train.split, train.questions, train.with_label_2, train.passages, train.label_2) == ("train", 1, 1, 2, 1)
    assert (test.split, test.questions, test.without_label_2, test.passages, test.label_2) == ("test", 3, 1, 6, 3)
    assert (whole.split, whole.questions, whole.with_label_2, whole.share) == ("all", 4, 3, 0.5)
    encoded = LABELS.set_column(0, "question_id", LABELS["question_id"].dictionary_encode())
    assert labels_by_split(SPLITS, encoded) == [train, test, whole]


def test_no_run_gets_beyond_the_bound_in_trec_eval():
    """The best possible run, all of the question's own passages with label 2 first, reaches the bound exactly."""
    qrels = {"a": {"0": 2, "1": 1}, "b": {"0": 1, "1": 1}, "d": {"0": 2, "1": 2}}  # of test, in LABELS
    run = {question: {passage: float(label) for passage, label in labels.items()} for question, labels in qrels.items()}
    values = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank", "success.1"}, relevance_level=2).evaluate(run)
    test = labels_by_split(SPLITS, LABELS)[1]
    for name in ("recip_rank", "success_1"):
        assert sum(row[name] for row in values.values()) / 3 == pytest.approx(test.bound) == pytest.approx(2 / 3)


def test_agreement_of_readers_is_that_of_their_values_one_by_one():
    patterns = Counter({(7, 0): 5, (7, 1): 3, (7, 2): 1, (7, 3): 4, (7, 5): 2, (7, 7): 6})
    units = [[bool(right & 1 << bit) for bit in range(3)] for _, right in patterns.elements()]
    agreement = reader_agreement(("x", "y", "z"), patterns)
    assert agreement.passages == 21 and agreement.correct == {"x": 15 / 21, "y": 11 / 21, "z": 8 / 21}
    assert agreement.alpha == pytest.approx(alpha_of_counts((Counter(values), 1) for values in units))
    for pair in agreement.pairs:
        first, second = ([unit["xyz".index(name)] for unit in units] for name in (pair.first, pair.second))
        assert pair.kappa == pytest.approx(cohen_kappa(Counter(zip(first, second, strict=True))))
        assert pair.agreement == pytest.approx(sum(map(bool.__eq__, first, second)) / 21)


@pytest.mark.parametrize(
    ("readers", "patterns"), [(("x",), {(1, 1): 2}), (("x", "y"), {(3, 0): 3}), (("x", "y"), {(3, 3): 3})]
)
def test_agreement_is_not_defined_where_nothing_varies(readers, patterns):
    agreement = reader_agreement(readers, Counter(patterns))
    assert agreement.alpha is None and {pair.kappa for pair in agreement.pairs} <= {None}


def test_a_reader_that_was_not_asked_everything_is_compared_with_none():
    """Of ten passages y is asked about the four that x answers wrongly: its share is of these, x and z are compared."""
    patterns = Counter({(0b101, 0b101): 5, (0b101, 0b001): 1, (0b111, 0b010): 1, (0b111, 0b100): 3})
    agreement = reader_agreement(("x", "y", "z"), patterns)
    assert agreement.asked == {"x": 10, "y": 4, "z": 10} and agreement.correct == {"x": 0.6, "y": 0.25, "z": 0.8}
    assert agreement.compared == ("x", "z") and [(pair.first, pair.second) for pair in agreement.pairs] == [("x", "z")]
    units = [[True, True]] * 5 + [[True, False]] + [[False, False]] + [[False, True]] * 3
    assert agreement.alpha == pytest.approx(alpha_of_counts((Counter(values), 1) for values in units))
    assert agreement.pairs[0].kappa == pytest.approx(cohen_kappa(Counter(map(tuple, units))))
    assert of_readers(patterns, [1, 2]) == {(0b10, 0b10): 5, (0b10, 0): 1, (0b11, 0b01): 1, (0b11, 0b10): 3}


def test_answers_that_splits_share_in_normalised_form():
    splits = pa.table({"question_id": [*"abcd"], "split": ["train", "train", "test", "test"]})
    answers = {"d": ["Paris"], "c": ["the Nile"], "b": ["Nile", "Blue Nile"], "a": ["Rome"], "other": ["Rome"]}
    questions = pa.table({"question_id": [*answers], "answers": [*answers.values()]})
    (shared,) = shared_answers(splits, questions)
    assert (shared.first, shared.second, shared.answers) == ("train", "test", ("Nile",))
    assert (shared.first_questions, shared.second_questions) == (1, 1)
