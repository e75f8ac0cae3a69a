"""Every script of ``benchmarks/`` and ``training/`` finds what it takes from ``quit`` and from others."""

from importlib import import_module
from importlib.util import find_spec

import pytest

from quit.errors import MissingDependency
from tests.paths import ROOT

OF_OTHER_ENVIRONMENTS = {"benchmarks.clients", "benchmarks.encoder_int8"}
SCRIPTS = [
    f"{path.parent.name}.{path.stem}" for folder in ("benchmarks", "training") for path in (ROOT / folder).glob("*.py")
]


@pytest.mark.parametrize("name", sorted({*SCRIPTS} - OF_OTHER_ENVIRONMENTS))
def test_script_can_be_imported(name):
    try:
        assert import_module(name).__doc__
    except MissingDependency:
        if find_spec("label_studio_sdk"):
            raise
        pytest.skip("the extra review is not installed")
