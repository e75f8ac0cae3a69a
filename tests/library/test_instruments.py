"""Each instrument on its own, against hand-made cases and other tools."""

import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from datasets import Dataset

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
    frames = [pd.DataFrame([(q, d, v) for q, hits in rows.items() for d, v in hits.items()]) for rows in (run, qrels)]
    assert ours == quit.evaluate_run(
        frames[0], Dataset.from_pandas(frames[1].rename(columns=str)), ["MRR@10", "Recall@10"]
    )
    mixed = pd.DataFrame({"relevance": [2, 1], "doc_id": ["d2", "d4"], "query_id": [1, 2]})
    assert quit.evaluate_run({1: ["d2"], "2": ["d9", "d4"]}, mixed, ["MRR@10"]) == {"MRR@10": 0.75}
    numbers = pd.DataFrame({"question": ["q"], "passage": [7], "label": [1]})
    for ids in ([7, 8], {7: 2.0, 8: 1.0}, ["7", "8"]):
        assert quit.evaluate_run({"q": ids}, numbers, ["MRR@10"]) == {"MRR@10": 1.0}
        assert quit.evaluate_run({"q": ids}, {"q": {7: 1}}, ["MRR@10"]) == {"MRR@10": 1.0}
    for wrong, message in (
        (mixed[["doc_id", "query_id"]], "qrels has the columns doc_id, query_id; expected"),
        (mixed.assign(relevance=["high", "low"]), "qrels, row 0: .* relevance 'high'. Expected two ids and a whole"),
        (mixed.assign(relevance=[1, 0.9]), "qrels, row 1: .* relevance 0.9. Expected two ids and a whole number"),
        (pd.concat([mixed, mixed[:1]]), "qrels, row 2: .* An earlier row has this passage for this question"),
        (3, "type int cannot be read as a table"),
        ({"q1": {"d2": None}}, "qrels, 'q1', 'd2': None. Expected a whole number"),
        ({"q1": ["d2"]}, r"qrels, 'q1': \['d2'\]. Expected passage -> label"),
    ):
        with pytest.raises(InputError, match=message):
            quit.evaluate_run(run, wrong)
    (tmp_path / "accents").write_text("q 0 cafe\u0301 1\n")  # in files and in Python, ids compare in NFC
    for ranked in (["cafe\u0301"], {"caf\u00e9": 1.0}, pd.DataFrame([("q", "cafe\u0301", 1.0)])):
        ranking = ranked if isinstance(ranked, pd.DataFrame) else {"q": ranked}
        assert quit.evaluate_run(ranking, tmp_path / "accents", "Hit@1") == {"Hit@1": 1.0}
    for double in ({"q": {1: 1, "1": 2}}, {1: {"a": 1}, "1": {"a": 1}}):
        with pytest.raises(InputError, match=r"^The run.* (twice|a second time): leave one out\.$"):
            quit.evaluate_run(double, {"q": {"1": 1}})
    for score in (math.nan, math.inf, 1e300, np.float32("nan")):
        scores = {"q1": {"d1": np.float32(3), "d2": score}}
        for wrong_run in (scores, pd.DataFrame([("q1", *pair) for pair in scores["q1"].items()])):
            with pytest.raises(InputError, match="^The run, .*d2.*Expected"):
                quit.evaluate_run(wrong_run, qrels)
    for wrong_ranking in ("d2", None, [("d2", 1.0)]):
        with pytest.raises(InputError, match="^The run, 'q1': .*Expected passage -> score, or ids, best first"):
            quit.evaluate_run({"q1": wrong_ranking}, qrels)
    with pytest.raises(InputError, match="^The run, row 3: .* An earlier row has this passage"):
        quit.evaluate_run(pd.concat([frames[0][:3], frames[0][:1]]), qrels)
    terrier = pd.DataFrame({"qid": ["q1", "q1"], "docid": [0, 1], "docno": ["d9", "d2"], "score": [2.0, 1.0]})
    assert quit.evaluate_run(terrier, {"q1": {"d2": 1}}, "MRR@10") == {"MRR@10": 0.5}  # docid: PyTerrier's own number
    for columns in (range(4), ["query", "iter", "doc", "rel"]):  # TREC's four columns, named or not
        frame = pd.DataFrame([("q1", 0, "d2", 1)], columns=columns)
        assert quit.evaluate_run(terrier, frame, "MRR@10") == {"MRR@10": 0.5}
    six = pd.DataFrame([("q1", "Q0", "d2", 1, 2.5, "mine")])
    assert quit.evaluate_run(six, {"q1": {"d2": 1}}, "MRR@10") == {"MRR@10": 1.0}
    with pytest.raises(InputError, match="^The run has the columns 0, 1, 2, 3, 4; expected question, passage, value"):
        quit.evaluate_run(six[[0, 1, 2, 3, 4]], {"q1": {"d2": 1}})
    both = pd.DataFrame({"qid": "q1", "docno": ["d9", "d2"], "score": [1, 3], "label": [2, 0]})
    assert quit.evaluate_run(both, both, "Hit(rel=2)@1") == {"Hit(rel=2)@1": 0.0}  # score of the run, label of qrels
    with pytest.raises(InputError, match="run has no score, and a rank is lower for better passages"):
        quit.evaluate_run(terrier.rename(columns={"score": "rank"}), {"q1": {"d2": 1}})
    by_question = quit.evaluate_run(frames[0], frames[1], ["MRR@10"], per_question=True)
    assert by_question == {"MRR@10": {"q1": 0.5, "q2": 0.5}}
    unanswerable = {**qrels, "q3": {"d1": 0}}  # without a relevant passage: 0 in the mean, as in quit evaluate run
    assert quit.evaluate_run(run, unanswerable, "MRR@10") == {"MRR@10": pytest.approx(1 / 3)}
    assert quit.evaluate_run(run, unanswerable, "MRR@10", per_question=True)["MRR@10"]["q3"] is None
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
