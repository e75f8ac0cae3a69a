"""What the linters do not look at: late imports of the command line, long files. Layers are contracts of import-linter,
docstrings a rule of ruff, both in pyproject.toml."""

import sys
import warnings
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.running import run_process

OUTER = ("torch", "prefect", "label_studio_sdk", "quit.flows", "quit.annotation")


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("quit.cli", (*OUTER, "pyarrow", "duckdb")),
        ("quit.commands.console", OUTER),
        ("quit.settings", (*OUTER, "pyarrow")),  # servers' environments have none
        ("quit.models.generation.base", (*OUTER, "pyarrow")),
        ("quit.library.tables", (*OUTER, "quit.stages.order", "quit.models.factory", "ftfy")),
    ],
)
def test_the_command_line_is_there_at_once_because_it_loads_outer_layers_late(module, late) -> None:
    code = f"import sys, {module}; print([name for name in {late} if name in sys.modules])"
    assert run_process(sys.executable, "-c", code).out.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "late"), [(("status",), ["duckdb"]), (("show", "jsonl-geo-001"), [])])
def test_a_quick_look_at_a_workspace_loads_neither_pandas_nor_models(few_built: Path, command, late) -> None:
    loaded = run_process(sys.executable, "-X", "importtime", "-m", "quit", *command, "-w", few_built).err
    assert "pyarrow" in loaded and not [name for name in ("pandas.core", "torch", "prefect", *late) if name in loaded]


def test_files_can_be_read_in_one_sitting() -> None:
    files = [path for package in ("flows", "annotation", "quit") for path in (ROOT / package).rglob("*.py")]
    assert not [path for path in files if path.read_text().count("\n") > 500]


@pytest.mark.parametrize("category", [DeprecationWarning, UserWarning, FutureWarning])
def test_a_warning_that_quit_causes_fails_the_test_that_meets_it(category) -> None:
    for module in ("quit", "quit.models.convergence"):
        with pytest.raises(category):
            warnings.warn_explicit("this will be an error", category, "file.py", 1, module)
    for module in ("quitting", "prefect.flows"):
        warnings.warn_explicit("not ours to mend", DeprecationWarning, "file.py", 1, module)
