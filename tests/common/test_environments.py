"""Environments of their own: made once, never half-made, with pip's words when they cannot be made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quit.common import environments
from quit.common.cache import cache_folder
from quit.common.environments import READY, ensure_environment, environment_folder
from quit.errors import MissingDependency
from tests.running import run_process


@pytest.fixture
def package(tmp_path: Path) -> str:
    """A package of our own to install: no index is asked for it."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "quit_probe.py").write_text("VALUE = 41\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "quit-probe"\nversion = "1"\n[tool.setuptools]\npy-modules = ["quit_probe"]\n'
    )
    return str(folder)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("QUIT_ENVS", raising=False)
    return tmp_path / "cache"


def value(programs: Path) -> str:
    clean = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    return run_process(programs / "python", "-c", "import quit_probe; print(quit_probe.VALUE)", env=clean).out.strip()


@pytest.mark.slow
def test_two_processes_make_it_once_and_it_is_made_again_when_a_kill_left_it_unfinished(
    package: str, monkeypatch
) -> None:
    code = f"from quit.common.environments import *; ensure_environment('probe', [{package!r}])"
    builders = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    output = "".join(builder.communicate()[0] for builder in builders)
    assert [builder.returncode for builder in builders] == [0, 0]
    assert output.count("making the probe environment") == 1
    lines: list[str] = []
    make = {"requirements": [package, "# a comment"], "log": lines.append}
    programs = ensure_environment("probe", **make)
    assert value(programs) == "41" and lines == []
    assert not (Path(sys.prefix) / "lib").samefile(programs.parent / "lib")
    (programs.parent / READY).unlink()  # as if killed just before the end
    (programs.parent / "rubbish").touch()
    monkeypatch.setattr(environments, "LIFE_SECONDS", 0.2)
    assert ensure_environment("probe", **make) == programs
    steps = [line.partition(": step ")[2].partition(" of 3, ")[::2] for line in lines[1:]]
    expected = [("1", "making the folder"), ("2", "fetching packages, 1 so far"), ("3", "installing 1 packages")]
    assert "making the probe" in lines[0] and {*steps} <= {*expected} and len({*steps}) > 1 and sorted(steps) == steps
    assert not (programs.parent / "rubbish").exists() and value(programs) == "41"


@pytest.mark.slow
def test_pip_says_why_not(tmp_path: Path) -> None:
    requirements = [str(tmp_path / "no-such-wheel-1-py3-none-any.whl")]
    with pytest.raises(MissingDependency, match="no-such-wheel") as raised:
        ensure_environment("probe", requirements, log=lambda line: None)
    folder = environment_folder("probe", requirements)
    assert f"{folder}.log" in str(raised.value) and not (folder / READY).exists()


def test_nothing_is_installed_where_that_is_forbidden(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("QUIT_ENVIRONMENTS", "existing")
    with pytest.raises(MissingDependency, match="QUIT_ENVIRONMENTS"):
        ensure_environment("probe", ["numpy"])
    assert not cache.exists() and cache_folder("envs") == cache / "envs"


def test_comments_do_not_change_the_folder_but_requirements_do(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("# why\nnumpy==2  # because\n\n")
    assert environment_folder("probe", file) == environment_folder("probe", ["numpy==2"])
    assert environment_folder("probe", file) != environment_folder("probe", ["numpy==3"])
