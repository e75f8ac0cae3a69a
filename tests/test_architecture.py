"""What the linters do not look at: late imports of the command line, long files, missing docstrings. Layers are
contracts of import-linter, in pyproject.toml."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("flows", "annotation", "quit")


def _imports_at_the_top(path: Path) -> set[str]:
    """Return the packages that a file imports as it is loaded."""
    names: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names}


def _is_command_line(relative: Path) -> bool:
    return str(relative) == "quit/cli.py" or relative.parts[:2] == ("quit", "commands")


FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize(
    "path", [path for path in FILES if _is_command_line(path.relative_to(ROOT))], ids=lambda path: path.stem
)
def test_the_command_line_imports_outer_layers_lazily(path: Path) -> None:
    assert _imports_at_the_top(path).isdisjoint({"flows", "annotation", "torch", "pyarrow"})


def test_files_can_be_read_in_one_sitting() -> None:
    long = {str(path.relative_to(ROOT)): lines for path in FILES if (lines := path.read_text().count("\n")) > 500}
    assert not long


def test_every_module_and_public_class_has_a_docstring() -> None:
    missing = []
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        missing += [f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}" for node in (tree, *classes)
                    if not ast.get_docstring(node) and node.body]  # fmt: skip
    assert not missing
