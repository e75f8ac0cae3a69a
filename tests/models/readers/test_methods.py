"""What a method is called in identities: its name, and a hash of every parameter."""

from dataclasses import fields, replace

import pytest

from quit.errors import SettingsError
from quit.models.readers.methods import EMBEDDED_READERS, Late, Method, Softmax, embedded_method

WITH_ALL = Method("m", 0.9, names=0.5, contrast=0.5, softmax=Softmax(0.1, 0.2), late=Late(1.0, 8))
OTHERS = {"templates": ("x {}",), "softmax": Softmax(0.1, 0.3), "late": Late(1.0, 9)}


@pytest.mark.parametrize("name", [field.name for field in fields(Method) if field.name != "name"])
def test_every_parameter_changes_the_hash(name: str) -> None:
    other = OTHERS.get(name, 0.123)
    assert replace(WITH_ALL, **{name: other}).describe() != WITH_ALL.describe()


def test_the_name_stands_before_the_hash_and_does_not_change_it() -> None:
    assert replace(WITH_ALL, name="n").describe() == "n" + WITH_ALL.describe().removeprefix("m")
    assert EMBEDDED_READERS["minilm-late"].describe() == "minilm-late@1-0d6c8e70"  # replies are kept by it


def test_an_unknown_reader_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match="minilm-late"):
        embedded_method("minilm-lat")
