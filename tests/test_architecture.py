"""The arrows of the house: cli -> flows -> annotation -> quit -> schemas. An import against them is a defect."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("flows", "annotation", "quit", "schemas")
ALLOWED = {
    "schemas": {"schemas"},
    "quit": {"quit", "schemas"},
    "annotation": {"annotation", "quit", "schemas"},
    "flows": {"flows", "annotation", "quit", "schemas"},
    "cli": {"flows", "annotation", "quit", "schemas"},
}
FORBIDDEN = {
    "quit": {"prefect", "label_studio_sdk"},
    "schemas": {"prefect", "label_studio_sdk"},
    "annotation": {"prefect"},
}


def _imports(path: Path) -> list[tuple[str, int, bool]]:
    """Return (top-level package, line, whether at module level) of every import of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
        else:
            continue
        found += [(name, node.lineno, id(node) in top) for name in names]
    return found


def _is_command_line(relative: Path) -> bool:
    return str(relative) == "quit/cli.py" or relative.parts[:2] == ("quit", "commands")


FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_arrows(path: Path) -> None:
    relative = path.relative_to(ROOT)
    layer = "cli" if _is_command_line(relative) else relative.parts[0]
    for name, line, _ in _imports(path):
        package = name.partition(".")[0]
        if package in PACKAGES:
            assert package in ALLOWED[layer], f"{relative}:{line} imports {name}"
        assert package not in FORBIDDEN.get(layer, set()), f"{relative}:{line} imports {name}"
        if layer != "cli":
            assert name.split(".")[:2] not in (["quit", "cli"], ["quit", "commands"]), (
                f"{relative}:{line} imports the outermost layer"
            )


@pytest.mark.parametrize(
    "path", [path for path in FILES if _is_command_line(path.relative_to(ROOT))], ids=lambda path: path.stem
)
def test_the_command_line_imports_outer_layers_lazily(path: Path) -> None:
    top_level = [name for name, _, top in _imports(path) if top]
    assert not [name for name in top_level if name.partition(".")[0] in ("flows", "annotation", "torch", "pyarrow")]


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
