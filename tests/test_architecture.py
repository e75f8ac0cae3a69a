"""What the linters do not look at: late imports of the command line, long files, missing docstrings. Layers are
contracts of import-linter, in pyproject.toml."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("flows", "annotation", "quit")


FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_the_command_line_imports_outer_layers_lazily() -> None:
    for path in (ROOT / "quit" / "cli.py", *(ROOT / "quit" / "commands").rglob("*.py")):
        packages = set(re.findall(r"^(?:from|import) (\w+)", path.read_text(encoding="utf-8"), flags=re.M))
        assert packages.isdisjoint({"flows", "annotation", "torch", "pyarrow"}), path


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
