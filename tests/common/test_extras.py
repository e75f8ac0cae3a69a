"""What to install for a package that is missing, against pyproject.toml and the installed packages."""

import re
import tomllib
from importlib.metadata import packages_distributions

import pytest

from quit.common.extras import _EXTRA_OF, importing, missing_extra, require
from quit.errors import MissingDependency
from tests.paths import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
REQUIRED = {
    extra: {re.match(r"[\w-]+", text)[0].lower() for text in texts} - {"quit-builder"}
    for extra, texts in EXTRAS.items()
    if extra != "all"
}


def test_every_requirement_of_an_extra_shows_by_a_package_that_it_installs() -> None:
    """Of the extras that are installed, which are not all with the newest packages."""
    of_package = {"vllm": ["vllm"], **packages_distributions()}
    shown = {
        extra: {name.lower() for package in packages for name in of_package[package]}
        for extra, packages in _EXTRA_OF.items()
        if of_package.keys() >= {*packages}
    }
    assert shown == {extra: REQUIRED[extra] for extra in shown}
    assert _EXTRA_OF.keys() == REQUIRED.keys() and len(shown) > 5


def test_a_missing_package_is_named_with_its_extra_and_others_are_left_alone() -> None:
    text = r"^A build needs the package gguf, .*'smollm'.*'\.\[smollm\]'$"
    with pytest.raises(MissingDependency, match=text), importing("A build"):
        raise ModuleNotFoundError("No module", name="gguf.reader")
    for error in (ModuleNotFoundError("No module", name="own"), ImportError("cut short", name="torch")):
        with pytest.raises(type(error)) as raised, importing():
            raise error
        assert raised.value is error
    assert missing_extra("json") is None
    require("json")


def test_a_package_that_is_not_there_is_required_without_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quit.common.extras.find_spec", lambda package: None)
    with pytest.raises(MissingDependency, match="^A build needs the package torch"):
        require("torch", "A build")
