"""The tree of errors, and the names that they suggest."""

import pytest

from quit import errors
from quit.errors import InputError, QuitError, SettingsError, WorkspaceError, check_known, did_you_mean, refuse_newer


def test_each_kind_of_remedy_has_its_own_exit_code() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, QuitError)]
    codes = [each.exit_code for each in kinds if "exit_code" in vars(each)]
    assert len(codes) == len({*codes}) > 8 and 0 not in codes


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("huggingfcae", {"huggingface": 1, "csv": 2}, " Did you mean 'huggingface'?"),
        ("x", ("huggingface", "csv"), " Known: huggingface, csv."),
        ("x", [], " Known: none."),
    ],
)
def test_the_nearest_name_is_suggested_else_all_are_listed(name: str, known, text: str) -> None:
    assert did_you_mean(name, known) == text
    with pytest.raises(InputError) as raised:
        check_known(name, known, "format", InputError)
    assert str(raised.value) == f"There is no format {name!r}.{text}"


def test_a_known_name_and_version_pass_and_a_newer_one_is_refused() -> None:
    check_known("csv", {"csv"}, "format")
    refuse_newer("It", 2, 2)
    with pytest.raises(WorkspaceError, match=r"version 3; this one knows up to 2"):
        refuse_newer("It", 3, 2)
    assert issubclass(SettingsError, QuitError)
