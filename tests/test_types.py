"""Types, as a user's editor and mypy see them: in a script beside an editable installation, and in what jobs return."""

import json
import re
import shutil
import sys
from pathlib import Path
from types import UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

import quit
from quit.library.results import ExportResult
from tests.paths import ROOT, starter_lines
from tests.rows import write_lines
from tests.running import run_process

SCRIPT = """import quit

tables = quit.build("W", "starter", settings={"judge.threshold": 0.6})
for passage in tables.question("jsonl-geo-003")["passages"]:
    print(passage["text"].upper(), passage["label"])
for fault in quit.check("mine.jsonl")["faults"]:
    print(fault["detail"].upper())
quit.build("W", "starter", setings={"judge.threshold": 0.6})
print(tables.review_status()["agreements"], tables.nope())
tables.passages(split="test").read_pandas()
"""


@pytest.mark.slow
def test_an_editable_installation_shows_its_types_to_a_users_script(tmp_path: Path) -> None:
    source, environment = tmp_path / "source", tmp_path / "environment"
    for name in run_process("git", "ls-files", "-z").out.split("\0"):  # installing writes beside the sources
        if name.startswith(("annotation/", "flows/", "quit/", "schemas/", "README", "LICENSE", "pyproject")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name, follow_symlinks=False)
    run_process(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    build = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"
    run_process(sys.executable, "-c", build, tmp_path, cwd=source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python, "install"]
    run_process(*pip, "--ignore-installed", "--no-deps", "--no-index", *tmp_path.glob("*.whl"))
    (tmp_path / "script.py").write_text(SCRIPT)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--python-executable", python]
    found = run_process(*mypy, "script.py", cwd=tmp_path, PYTHONPATH="", code=1).out
    assert re.findall(r'^script.py:(\d+): error: .*(setings|agreements|nope)".*', found, re.M) == [
        ("8", "setings"),
        ("9", "agreements"),
        ("9", "nope"),
    ], found
    assert "Found 3 errors" in found


def wrong(value: Any, kind: Any, where: str = "") -> list[str]:
    """Return where a value is not of a type: of its keys, if that is a TypedDict, and of all that is in it."""
    if is_typeddict(kind):
        kinds = get_type_hints(kind, include_extras=True)
        must = {key for key, of_key in kinds.items() if get_origin(of_key) is not NotRequired}
        if not (must <= value.keys() <= kinds.keys()):
            return [f"{where}: {sorted(value.keys() ^ must)}"]
        return [line for key in value for line in wrong(value[key], kinds[key], f"{where}.{key}")]
    origin, of = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return wrong(value, of[0], where)
    if origin in (UnionType, Union):
        return min((wrong(value, one, where) for one in of), key=len)
    if origin is list:
        return [line for one in value for line in wrong(one, of[0], where)]
    good = kind is Any or isinstance(value, (int, float) if kind is float else origin or kind)
    return [] if good else [f"{where}: {value!r}"]


def test_what_is_no_such_type_is_seen() -> None:
    good = {"out": "E", "formats": [{"format": "csv", "files": 2, "bytes": 3}]}
    assert wrong(good, ExportResult) == []
    assert wrong({"out": "E"}, ExportResult) and wrong({**good, "more": 1}, ExportResult)
    assert wrong({"out": "E", "formats": [{"format": "csv", "files": 2, "bytes": None}]}, ExportResult)


def test_a_check_is_of_its_type(tmp_path: Path) -> None:
    record = json.loads(starter_lines()[0])
    path = write_lines(tmp_path / "mine.jsonl", [{**record, "candidates": []}, {}])
    checked = quit.check(path, models=False)
    assert checked["faults"] and checked["notes"] and wrong(checked, quit.SourceCheck) == []


@pytest.mark.slow
def test_what_tables_return_is_of_its_type(few_built, tmp_path: Path) -> None:
    tables = quit.open(few_built)
    for question_id in tables.pandas("questions")["question_id"]:
        assert wrong(tables.question(question_id), quit.Story) == []
    assert wrong(tables.review_status(), quit.ReviewStatus) == []
    assert wrong(tables.export("csv", tmp_path / "E", progress=False), ExportResult) == []
