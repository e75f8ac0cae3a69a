"""Answers in replies of a small language model (SmolLM2-135M), as it wrote them."""

import pytest

from quit.models.protocols import NO_ANSWER
from quit.systems.sunar.reading import final_answer, short


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Dunn County", "Dunn County"),
        ("No answer", NO_ANSWER),
        ("", NO_ANSWER),
        ("The answer is: Sachin Tendulkar", "Sachin Tendulkar"),
        ("The answer is:", NO_ANSWER),
        ("The answer is: Oliver\n\n[5] The person who issued the Tamworth manifesto was Hal.", "Oliver"),
        ("[1] Rochester County\n[2] Michigan\n[3] Oakland Township, Michigan", "Rochester County"),
        ("The evidence does not provide any information about the political party.", NO_ANSWER),
        ("The evidence does not say who it is. The answer is no, it is not possible to determine her name.", NO_ANSWER),
        ("The King of England in 1950 was King George VI.", "The King of England in 1950 was King George VI."),
        ("He crossed the river.\n[Final Answer]: Alme", "Alme"),
        ("Alme\n\nEvidence:\n[1] Brenholt\nQuestion: Who?\n[Final Answer]: Otis Varga", "Alme"),
    ],
)
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
