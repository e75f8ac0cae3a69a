"""Answers in replies of a small language model (SmolLM2-135M), as it wrote them."""

import pytest

from quit.qa.sunar.reading import final_answer, short
from tests.rows import cases


@pytest.mark.parametrize(("reply", "answer"), cases(__file__, "answers.jsonl"))
def test_the_answer_in_a_reply(reply: str, answer: str) -> None:
    assert short(reply) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a [Final Answer]: b\nc", "b"),
        ("[Final Answer]: a [Final Answer]: b", "b"),
        ("finally", None),
        ("Final Answer:\n b ", "b"),
        # an example that the model made up does not count
        ("[Final Answer]: 1477\n\nQuestion: Who?\n[Answer]: x\n[Final Answer]: Alma Reyes", "1477"),
        ("Well.\n\nExisting steps:\n(none)\n[Final Answer]: Alma Reyes", None),
    ],
)
def test_the_final_answer_is_the_last_one_named(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer
