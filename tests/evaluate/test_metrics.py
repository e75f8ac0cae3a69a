"""Metrics against hand-computed values and ir_measures."""

import math
import random

import ir_measures
import numpy as np
import pytest

from quit import evaluate_run
from quit.errors import InputError, SettingsError
from quit.evaluate import metrics


def test_a_label_below_0_has_no_gain() -> None:
    qrels, run = {"q": {"d1": 2, "d3": 1, "d4": -1}}, {"q": ["d2", "d1", "d4"]}
    # DCG: label 2 at rank 2; ideal: 2 at rank 1, 1 at rank 2.
    assert evaluate_run(run, qrels, ["nDCG@10", "nDCG(exp)@10"]) == {
        f"nDCG{name}@10": pytest.approx((gain / math.log2(3)) / (gain + 1 / math.log2(3)))
        for name, gain in (("", 2), ("(exp)", 3))
    }


@pytest.mark.parametrize("label", [60, 1023, 1024, 10**6])
def test_high_labels_do_not_overflow(label: int) -> None:
    value = evaluate_run({"q": ["d2", "d1"]}, {"q": {"d1": label, "d2": 0}}, ["nDCG(exp)@10"])
    assert value == {"nDCG(exp)@10": pytest.approx(1 / math.log2(3))}


def _random_run(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    draw = random.Random(seed)
    qrels, run, documents = {}, {}, [f"d{i}" for i in range(150)]
    for query in (f"q{number}" for number in range(30)):
        qrels[query] = {document: draw.choice([0, 0, 1, 2]) for document in draw.sample(documents, 40)}
        qrels[query]["d0"] = 2  # the other tools have no policy for a question without a relevant passage
        ranking = draw.sample(documents, draw.choice([1, 7, 120]))
        run[query] = {document: float(-rank) for rank, document in enumerate(ranking)}
    return qrels, run


def _theirs(name: str) -> ir_measures.Measure:
    for ours, theirs in (("Hit", "Success"), ("Recall", "R"), ("MRR", "RR")):
        name = name.replace(ours, theirs)
    return ir_measures.parse_measure(name)


@pytest.mark.parametrize("seed", [1, 2])
def test_ir_measures_agrees_on_every_metric_of_every_question(seed: int) -> None:
    qrels, run = _random_run(seed)
    names = "Hit@1 Hit@10 Hit@100 Hit(rel=2)@1 Hit(rel=2)@50 Recall@5 Recall@50 MRR@100 MRR(rel=2)@100"
    measures = {name: _theirs(name) for name in names.split()}
    measures |= {f"nDCG@{k}": ir_measures.nDCG @ k for k in (1, 10, 100)}
    paper = {f"nDCG(exp)@{k}": ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3}) @ k for k in (1, 10, 100)}
    rankings = {query: sorted(scores, key=scores.__getitem__, reverse=True) for query, scores in run.items()}
    expected = {
        (str(value.measure), value.query_id): value.value
        for some in (measures, paper)  # apart: ir_measures gives plain nDCG the gains of one beside it
        for value in ir_measures.iter_calc(list(some.values()), qrels, run)
    }
    for ours, measure in (measures | paper).items():
        for question, value in metrics.run_values(rankings, qrels, metrics.Measure.parse(ours)).items():
            assert value == pytest.approx(expected[str(measure), question], abs=1e-9), (ours, question)


def test_one_policy_for_every_metric() -> None:
    qrels = {"a": {"x": 1}, "b": {"x": 0}, "c": {"x": 2}, "d": {}}
    run = {"a": ["x"], "b": ["x"]}
    for text in ("Hit@1", "Recall@5", "MRR@100", "nDCG@10", "nDCG(exp)@10"):
        values = list(metrics.run_values(run, qrels, metrics.Measure.parse(text)).values())
        assert values == [1.0, None, 0.0, None], text  # c was not retrieved: 0; b and d have nothing to retrieve: None
        assert metrics.mean(values, "zero") == 0.25 and metrics.mean(values, "skip") == 0.5
    assert metrics.mean([None], "skip") == 0.0 and metrics.mean(np.array([np.nan, 1.0]), "zero") == 0.5
    with pytest.raises(SettingsError, match="Did you mean 'skip'"):
        metrics.mean([1.0], "skipp")


def test_a_passage_twice_in_a_ranking_is_refused() -> None:
    with pytest.raises(InputError, match="'a' names a passage twice"):
        metrics.run_values({"a": ["x", "x"]}, {"a": {"x": 1}}, metrics.Measure.parse("Hit@1"))


NONE = "Hit nDGC nDGC@10 Hit(exp)@1 Hit@0 Hit(rel=0)@1 Hit()@1 Hit(by=set)@1 EM@1"


@pytest.mark.parametrize("text", [*NONE.split(), ""])
def test_what_is_no_metric(text: str) -> None:
    hint = "Did you mean 'nDCG'" if "nDGC" in text else ""
    with pytest.raises(SettingsError, match=f"not a ranking metric.*{hint}"):
        metrics.Measure.parse(text)


@pytest.mark.parametrize("text", ["Hit@1", "Recall(rel=2)@50", "MRR@100", "nDCG@10", "nDCG(exp)@10", "Hit(rel=2)@1"])
def test_measures_read_as_they_are_written(text: str) -> None:
    measure = metrics.Measure.parse(text)
    assert str(measure) == text and measure.needs_all == text.startswith(("Recall", "nDCG"))
    assert measure.value([], [2, 1]) == measure.value([0, 0], [0, 0]) == 0.0


def test_answers() -> None:
    assert metrics.exact_match("The U.S.A.", ["United States", "USA"]) == 1.0
    assert metrics.exact_match("", [""]) == 0.0 and metrics.exact_match("NO ANSWER", ["Lima"]) == 0.0
    # prediction {barack, h, obama}, gold {barack, obama}: precision 2/3, recall 1.
    assert metrics.f1("Barack H. Obama", ["Lima", "Barack Obama"]) == pytest.approx(0.8)
    assert metrics.f1("", ["x", ""]) == 0.0 and metrics.f1("x", []) == 0.0
    assert metrics.answer_value("EM", "Lima", ["Lima"]) == 1.0
    with pytest.raises(SettingsError, match="reading metric"):
        metrics.answer_value("BLEU", "a", ["a"])


@pytest.mark.parametrize(
    ("prediction", "gold", "covered", "within"),
    [
        ("It was the United-States of America!", ["Lima", "unitedstates of america"], 1, 1),
        ("I think it is New  York City.", ["the new york"], 1, 1),
        *(("Limassol", ["Lima"], 0, 1), ("Italian-American", ["Italian"], 0, 1), ("in 2012", ["12"], 0, 1)),
        *(("York is not new", ["New York"], 0, 0), ("anything", ["", "?"], 0, 0)),
    ],
)
def test_cover_em_is_on_token_boundaries_and_takes_any_alias(prediction, gold, covered: int, within: int) -> None:
    assert metrics.cover_em(prediction, gold) == covered
    assert metrics.cover_em(prediction, gold, substring=True) == within
