"""What the linters do not look at: late imports of the command line, long files. Layers are contracts of import-linter,
docstrings a rule of ruff, both in pyproject.toml."""

import ast
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


FILES = [path for package in ("flows", "annotation", "quit") for path in (ROOT / package).rglob("*.py")]


def test_files_can_be_read_in_one_sitting() -> None:
    assert not [path for path in FILES if path.read_text().count("\n") > 500]


def test_records_of_arrays_are_not_compared() -> None:
    """The ``==`` that a dataclass makes asks whether an array is true, its ``hash`` that of an array: both raise."""
    compared = []
    for path in FILES:
        for record in [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]:
            decorators = " ".join(map(ast.unparse, record.decorator_list))
            types = [ast.unparse(field.annotation) for field in record.body if isinstance(field, ast.AnnAssign)]
            of_arrays = any("np.ndarray" in kind and "Callable" not in kind for kind in types)
            if of_arrays and "dataclass" in decorators and "eq=False" not in decorators:
                compared.append(f"{path.name}: {record.name}")
    assert compared == []


@pytest.mark.parametrize("category", [DeprecationWarning, UserWarning, FutureWarning])
def test_a_warning_that_quit_causes_fails_the_test_that_meets_it(category) -> None:
    for module in ("quit", "quit.models.convergence"):
        with pytest.raises(category):
            warnings.warn_explicit("this will be an error", category, "file.py", 1, module)
    for module in ("quitting", "prefect.flows"):
        warnings.warn_explicit("not ours to mend", DeprecationWarning, "file.py", 1, module)
