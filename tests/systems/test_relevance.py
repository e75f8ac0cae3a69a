"""Verdicts in replies of a small language model (SmolLM2-135M), as it wrote them."""

import pytest

from quit.systems.relevance import read_yes_or_no

VERDICTS = {
    True: ["Yes.", "The answer to this question is yes.", 'The answer to this question is "Yes'],
    False: ['No, the question "Is a postage', "The answer is no"],
    None: ['The answer to this question is: "', "The seat of the county where Van Hook", "The answer is not known.",
           "Notably, yes", ""],
}  # fmt: skip


@pytest.mark.parametrize(("reply", "verdict"), [(reply, each) for each in VERDICTS for reply in VERDICTS[each]])
def test_a_verdict_is_read_where_the_reply_gives_one(reply: str, verdict: bool | None) -> None:
    assert read_yes_or_no(reply) is verdict
