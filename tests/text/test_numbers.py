import pytest

from quit.text.numbers import numbers_in
from tests.rows import cases


@pytest.mark.parametrize(("text", "values"), cases(__file__, "numbers.jsonl"))
def test_numbers_are_read_in_words_and_digits(text: str, values: list[float]) -> None:
    numbers = numbers_in(text)
    assert [value for value, _, _ in numbers] == values
    assert all(text[start:end].strip() == text[start:end] for _, start, end in numbers)
