"""Names are found by quotation marks and capitals alone, with the faults that this has."""

import pytest

from quit.text.names import names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            'This band wrote "Sweet Child" and toured the United States of America in 1991.',
            ["Sweet Child", "United States of America", "1991"],
        ),
        ("It is large and blue.", []),
        ("It borders Chile and Peru.", ["Chile and Peru"]),
        ("He was born in Paris. The city honours him.", ["Paris. The"]),
        ("Their album 'Abbey Road' and X are loved.", ["Abbey Road", "Road' and X"]),
    ],
)
def test_names_are_titles_and_capitalised_runs(text: str, names: list[str]) -> None:
    assert names_in(text) == names
