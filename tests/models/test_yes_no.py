"""What is read as Yes or No."""

import pytest

from quit.models.yes_no import parse_verdict

VERDICTS = {
    True: ["Yes", "yes.", '"Yes"', "**Yes**, it is.", "YES\n", "Yes, there is no doubt.", "Ｙｅｓ", "Verdict: Yes",
           "**Answer:** Yes", "<answer>Yes</answer>", '{"answer": "Yes"}', "### Answer\nYes", "The answer is: **yes**.",
           "Yes\tbecause",
           "Result: Yes", "It names the lake. So my answer is yes", 'The answer to this question is "Yes'],
    False: ["No", " no, it is not", "No it is not", "[No]", "**No**", "Answer: No", r"$\boxed{\text{No}}$",
            "Answer:\n\nNo", 'No, the question "Is a postage', "The answer is no", "No because it is another",
            "No - the lake is another", "Final verdict — No", "Judgment - No", "No\n\nIt is another."],
    None: ["Yes/No", "Yes or No?", "Yes and No", "[Yes/No]", "Yes|No", "Answer: Yes/No", "Yes or no answer", "Yes, no",
           "No. Yes.", "Yes\nNo", "Answer: No\nAnswer: Yes", "Neither Yes nor No", "Not sure", "Yesterday", "None",
           "No idea", "NO ANSWER", "The candidate is correct", "The answer is not yes", "The answer is no longer known",
           'The answer to this question is: "', "Notably, yes", "",
           "No Country for Old Men", "Answer: No Country for Old Men", "Yes Minister", "Yes Minister is meant",
           "The gold answer is yes, so No", "The gold answer is yes.", "The reference answer: no", "No doubt", "No-one",
           "The expected answer is yes", "The correct answer is No. 5", "It is not correct: yes, it is a city"],
}  # fmt: skip


@pytest.mark.parametrize(("reply", "verdict"), [(reply, each) for each in VERDICTS for reply in VERDICTS[each]])
def test_only_what_says_yes_or_no_and_not_both_is_a_verdict(reply: str, verdict: bool | None) -> None:
    assert parse_verdict(reply) is verdict
