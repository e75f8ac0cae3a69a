"""How agreement and disagreements of judges are shown; what they are is in tests/qa/test_evaluate.py."""

from quit.status.judges import JudgeAgreement, agreement_tables, disagreement_table


def test_agreement_is_shown_with_its_interval_where_it_has_one() -> None:
    every = JudgeAgreement("a", "b", "", "all", 1, 0, 2, 1, 5, 0.2, None, None)
    part = JudgeAgreement("a", "b", "family", "gpt, that of b", 0, 0, 2, 2, 0, None, None, None)
    sure = JudgeAgreement("a", "b", "words", "1 word", 1, 0, 0, 1, 0, 1.0, -0.001, 1.0)
    whole, parts = agreement_tables([every, part, sure])
    assert whole.cells == [["a, b", "all", "4", "50.0%", "0.20", "25.0%, 75.0%"]]
    assert whole.note.endswith(" a, b: 5 not readable.") and not parts.note.endswith("readable.")
    assert parts.cells[0] == ["a, b", "of the family gpt, that of b", "4", "50.0%", "–", "0.0%, 50.0%"]
    assert parts.cells[1] == ["a, b", "of 1 word", "2", "100.0%", "1.00 (0.00 to 1.00)", "50.0%, 50.0%"]
    assert not agreement_tables([])


def test_disagreements_are_cut_and_say_so() -> None:
    verdicts = {"correct": True, "second": "b", "second_correct": False, "second_probability": 0.25}
    row = {"passages": 1_200, **verdicts, "answer": "Pera", "gold": ["Istanbul", "Pera"], "question": "Which?"}
    few, every = (disagreement_table([row] * 3, limit) for limit in (1, 0))
    assert few.cells == [["1,200", "correct", "b: wrong 0.25", "Pera", "Istanbul; Pera", "Which?"]]
    assert (few.more, bool(few.note), every.more, len(every.rows)) == (2, True, 0, 3)
