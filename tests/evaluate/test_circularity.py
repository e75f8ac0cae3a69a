"""Without which labelers no label rests on a model under test, by hand."""

import pytest

from quit.evaluate.circularity import Circularity

RELATED = {"a": ("a", "b"), "dense": ("a", "b"), "b": ("a", "b"), "gpt": ("c",), "all": ("a", "b", "c")}


@pytest.mark.parametrize(
    ("models", "left_out"),
    [
        (("a",), ("a", "b")),  # a labeler: its whole family
        (("dense", "", ""), ("a", "b")),
        (("bm25", "", "c"), ()),  # c is a labeler of this name, and is not related
        (("dense", "gpt"), ()),  # together they leave none, and neither is a labeler
        (("all",), ()),
        (("gpt", "a"), ("a",)),  # together they leave none: the labeler itself
        (("", "bm25"), ()),
    ],
)
def test_whose_labels_are_left_out(models: tuple[str, ...], left_out: tuple[str, ...]) -> None:
    assert Circularity(("a", "b", "c"), RELATED).left_out(models) == left_out


def test_models_are_told_with_their_reason() -> None:
    text = Circularity(("a", "b", "c"), {"a": ("a", "b"), "dense": ("a", "b")}).sentence()
    assert text.startswith("a is a labeler; dense is of the family of a, b. Such scores rest on")
    assert Circularity(("a",)).sentence() == ""
