"""Each instrument on its own, against hand-made cases and other tools."""

import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import pytrec_eval

import quit
from quit.errors import InputError
from quit.library import instruments
from quit.models.prompting import PROMPTS

QUESTION = "Which country is meant?"


def test_instruments_on_their_own() -> None:
    leaks = quit.find_leaks(QUESTION, ["Lesotho"], ["It pays in Lesotho maloti.", "It has mountains."])
    assert [leak.span for leak in leaks[0]] == ["Lesotho"] and not leaks[1]
    hints = ["It lies inside South Africa.", "It exists."]
    values = quit.convergence(QUESTION, "Lesotho", hints, ["Andorra", "Bhutan"])
    assert len(values) == 2 and all(0 <= value <= 1 for value in values)
    assert values == quit.convergence(QUESTION, "Lesotho", hints, ["Andorra", "andorra", "Bhutan"])  # each counts once
    names = [f"Country {number}" for number in range(11)]  # ten count, the best known first
    assert quit.convergence(QUESTION, "Lesotho", hints, ["Andorra", *names, "Andorra"]) == quit.convergence(
        QUESTION, "Lesotho", hints, ["Andorra", *names]
    )
    texts = quit.passages(list("abcde"))
    assert len(texts) == 325 and texts["402"] == "e a c"
    assert quit.judge(QUESTION, ["Lesotho"], "LESOTHO.").basis == "exact"
    assert quit.judge(QUESTION, ["Lesotho"], "Andorra").verdict.correct is False
    assert quit.judge(QUESTION, "Lesotho", "Lesotho").verdict.correct, "one text is a list of one, not of its letters"
    assert quit.find_leaks(QUESTION, "Lesotho", "It pays in Lesotho maloti.")[0] == leaks[0]
    assert quit.passages("abc") == {"0": "abc"}


@pytest.mark.parametrize(
    "form", [list, tuple, iter, np.array, pa.array, pd.Series, lambda texts: pa.chunked_array([texts])]
)
def test_texts_come_in_any_sequence(form) -> None:
    [[leak]] = quit.find_leaks(QUESTION, form(["Lesotho"]), form(["It pays in Lesotho."]))
    assert leak.span == "Lesotho" and quit.passages(form(["a", "b"]))["10"] == "b a"
    assert quit.judge(QUESTION, form(["Lesotho"]), "Lesotho").verdict.correct


@pytest.mark.parametrize("wrong", [None, 1969, float("nan"), ["x", None], [1969], [float("nan")]])
def test_what_is_no_text_is_named_with_its_argument(wrong) -> None:
    calls = {
        "answers": lambda: quit.find_leaks(QUESTION, wrong, ["x"]),
        "hints": lambda: quit.find_leaks(QUESTION, ["x"], wrong),
        "question": lambda: quit.find_leaks(wrong, ["x"], ["x"]),
        "candidates": lambda: quit.convergence(QUESTION, "x", ["y"], wrong),
        "answer": lambda: quit.judge(QUESTION, ["x"], wrong),
    }
    for name, call in calls.items():
        with pytest.raises(InputError, match=rf"^{name}\b.*expected a text"):
            call()


def test_an_edited_prompt_is_read_anew(tmp_path: Path) -> None:
    prompt, profile = tmp_path / "mine.txt", tmp_path / "p.toml"
    profile.write_text(f'profile = "server"\n[judge]\nprompt = "{prompt}"\n', encoding="utf-8")
    text = (PROMPTS / "judge.txt").read_text(encoding="utf-8")
    identities = set()
    for more in ("", "", "Be strict.\n"):
        prompt.write_text(text + more, encoding="utf-8")
        os.utime(prompt, (1, 1 if not more else 2))
        identities.add(instruments._models(profile).judge.identity)
    assert len(identities) == 2


def test_a_run_is_scored_alike_from_files_and_dictionaries_and_foreign_questions_are_named(tmp_path: Path) -> None:
    run = {"q1": {"d1": 3.0, "d2": 2.5, "d3": 1.0}, "q2": {"d9": 1.0, "d4": 0.5}}
    qrels = {"q1": {"d2": 2, "d3": 1, "d8": 1}, "q2": {"d4": 1}}
    lines = [f"{q} Q0 {d} 0 {s} x\n" for q, hits in run.items() for d, s in hits.items()]
    (tmp_path / "run").write_text("".join(lines))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {v}\n" for q, hits in qrels.items() for d, v in hits.items()))
    ours = quit.evaluate_run(tmp_path / "run", tmp_path / "qrels", ["MRR@10", "Recall@10"])
    assert quit.evaluate_run(run, qrels, "MRR@10") == {"MRR@10": ours["MRR@10"]}
    assert ours == quit.evaluate_run(run, qrels, ["MRR@10", "Recall@10"])
    assert ours == {"MRR@10": 0.5, "Recall@10": pytest.approx((2 / 3 + 1) / 2)}  # by hand: both first at rank 2
    tied = {"q1": {"d1": 1.0, "d2": 1.0, "d3": 1.00000001}}  # equal as float32: d3, d2, d1
    of_trec_eval = pytrec_eval.RelevanceEvaluator({"q1": {"d2": 1}}, {"recip_rank"}).evaluate(tied)["q1"]["recip_rank"]
    (tmp_path / "tied").write_text("".join(f"q1 Q0 {d} 0 {s} x\n" for d, s in tied["q1"].items()))
    for same in (tied, tmp_path / "tied"):
        assert quit.evaluate_run(same, {"q1": {"d2": 1}}, "MRR@10") == {"MRR@10": of_trec_eval} == {"MRR@10": 0.5}
    assert quit.evaluate_run({1: ["d2"], "2": ["d9", "d4"]}, {"1": {"d2": 2}, 2: {"d4": 1}}, ["MRR@10"]) == {
        "MRR@10": 0.75
    }
    for ids in ([7, 8], {7: 2.0, 8: 1.0}, ["7", "8"]):
        assert quit.evaluate_run({"q": ids}, {"q": {7: 1}}, ["MRR@10"]) == {"MRR@10": 1.0}
    for wrong, message in (
        (3, "qrels is of the type int; expected a file, or question -> passages"),
        ({"q1": {"d2": "high"}}, "qrels, 'q1', 'd2': 'high'. Expected a whole number"),
        ({"q1": {"d2": 0.9}}, "qrels, 'q1', 'd2': 0.9. Expected a whole number"),
        ({"q1": {"d2": None}}, "qrels, 'q1', 'd2': None. Expected a whole number"),
        ({"q1": ["d2"]}, r"qrels, 'q1': \['d2'\]. Expected passage -> label"),
    ):
        with pytest.raises(InputError, match=message):
            quit.evaluate_run(run, wrong)
    (tmp_path / "accents").write_text("q 0 cafe\u0301 1\n")  # in files and in Python, ids compare in NFC
    for ranked in (["cafe\u0301"], {"caf\u00e9": 1.0}):
        assert quit.evaluate_run({"q": ranked}, tmp_path / "accents", "Hit@1") == {"Hit@1": 1.0}
    for double in ({"q": {1: 1, "1": 2}}, {1: {"a": 1}, "1": {"a": 1}}):
        with pytest.raises(InputError, match=r"^The run.* (twice|a second time): leave one out\.$"):
            quit.evaluate_run(double, {"q": {"1": 1}})
    for score in (math.nan, math.inf, 1e300, np.float32("nan")):
        scores = {"q1": {"d1": np.float32(3), "d2": score}}
        with pytest.raises(InputError, match="^The run, .*d2.*Expected"):
            quit.evaluate_run(scores, qrels)
    for wrong_ranking in ("d2", None, [("d2", 1.0)]):
        with pytest.raises(InputError, match="^The run, 'q1': .*Expected passage -> score, or ids, best first"):
            quit.evaluate_run({"q1": wrong_ranking}, qrels)
    unanswerable = {**qrels, "q3": {"d1": 0}}  # without a relevant passage: 0 in the mean, as in quit evaluate run
    assert quit.evaluate_run(run, unanswerable, "MRR@10") == {"MRR@10": pytest.approx(1 / 3)}
    with pytest.warns(UserWarning, match="^1 of the run's 2 questions are not in the qrels, such as 'Q9': not scored"):
        assert quit.evaluate_run({"q1": ["d1"], "Q9": ["d1"]}, {"q1": {"d1": 2}}, ["Hit@1"]) == {"Hit@1": 1.0}
    with pytest.raises(InputError, match=r"^4 of the run's 4 questions .* 'a', 'b', 'c'\. Ids of the qrels are .*'q1'"):
        quit.evaluate_run({question: ["d1"] for question in "abcd"}, qrels)
    (tmp_path / "shares").write_text("q1 0 d1 1.0\nq1 0 d2 0.9\n")
    with pytest.raises(InputError, match=r"shares, line 2: the label, column 4, is '0\.9'; expected a whole number"):
        quit.evaluate_run(run, tmp_path / "shares")
    (tmp_path / "qrels").write_text("q1 d2 2\n")
    with pytest.raises(InputError, match="qrels, line 1 has [0-9] columns"):
        quit.evaluate_run(run, tmp_path / "qrels")
