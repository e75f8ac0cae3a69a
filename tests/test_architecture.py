"""What the linters do not look at: late imports of the command line, long files. Layers are contracts of import-linter,
docstrings a rule of ruff, both in pyproject.toml."""

import re

from tests.paths import ROOT


def test_the_command_line_imports_outer_layers_lazily() -> None:
    for path in (ROOT / "quit" / "cli.py", *(ROOT / "quit" / "commands").rglob("*.py")):
        imports = re.findall(r"^(?:from|import) ([\w.]+)", path.read_text(encoding="utf-8"), flags=re.M)
        assert not [name for name in imports if re.match(r"quit\.(flows|annotation)|torch|pyarrow", name)], path


def test_files_can_be_read_in_one_sitting() -> None:
    files = [path for package in ("flows", "annotation", "quit") for path in (ROOT / package).rglob("*.py")]
    assert not [path for path in files if path.read_text().count("\n") > 500]
