import pytest

from quit.text.quantities import quantities_in


@pytest.mark.parametrize(
    "same",
    [
        *(("$1.5 billion", "1,500,000,000 dollars", "1.5 million dollars", None), ("-$5", "-5 dollars", "$5", "5")),
        *(("5 km", "5,000 metres", "5 miles", "5000 km"), ("2 kg", "2,000 g", "2 g", "2 tonnes")),
        *(("90 minutes", "an hour and a half", "9 minutes", None), ("half an hour", "30 minutes", "half a day", None)),
        *(("3 pm", "15:00", "3 a.m.", "15:30"), ("12 a.m.", "0:00", "12:00", None)),
        *(("19th century", "the 1800s", "the 1900s", None), ("the nineteenth century", "1800s", "18th century", None)),
        *(("one half", "50%", "5%", None), ("two-thirds", "2/3", "3/2", None), ("¾", "75 per cent", "7.5%", None)),
        *(("-40 °C", "−40 degrees Celsius", "40 °C", "-40 °F"), ("5 feet", "60 inches", "5 inches", "6 feet")),
    ],
)  # fmt: skip
def test_quantities_are_compared_with_their_units_and_signs(same: tuple[str, str, str, str | None]) -> None:
    one, equal, *others = [quantities_in(text) for text in same if text]
    assert len(one) == len(equal) == 1 and one[0].equals(equal[0])
    assert not any(one[0].equals(other[0]) for other in others)
