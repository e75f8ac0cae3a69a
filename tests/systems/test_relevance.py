"""Verdicts in replies of a small language model (SmolLM2-135M), as it wrote them."""

import pytest

from quit.systems.relevance import read_yes_or_no


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes.", True),
        ('No, the question "Is a postage', False),
        ("The answer to this question is yes.", True),
        ('The answer to this question is "Yes', True),
        ('The answer to this question is: "', None),
        ("The answer is no", False),
        ("The seat of the county where Van Hook", None),
        ("The answer is not known.", None),
        ("Notably, yes", None),
        ("", None),
    ],
)
def test_a_verdict_is_read_where_the_reply_gives_one(reply: str, verdict: bool | None) -> None:
    assert read_yes_or_no(reply) is verdict
