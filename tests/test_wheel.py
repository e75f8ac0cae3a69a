"""What a user without a checkout has: the wheel, installed into an environment of its own."""

import os
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.paths import ROOT, starter_lines
from tests.running import Result, run_process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel. Its dependencies are this environment's, by path: nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = run_process("git", "ls-files", "-z").out
    for name in sources.split("\0"):  # building writes beside the sources
        if name.startswith(("annotation/", "flows/", "quit/", "schemas/", "README", "LICENSE", "pyproject")):
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "source" / name, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, folder / "source"]
    run_process(*pip, *build)
    shutil.rmtree(folder / "source")
    environment = folder / "environment"
    run_process(sys.executable, "-m", "venv", "--without-pip", environment)
    [wheel] = folder.glob("*.whl")
    into = ["--python", environment / "bin" / "python", "install", "--no-deps", "--no-index", "--no-compile", wheel]
    run_process(*pip, *into)
    # After the environment's own packages; the checkout's own link, a .pth file there, is not followed from here.
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment


def record(environment: Path) -> list[str]:
    [wheel] = environment.parent.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_an_installed_wheel_checks_and_builds_from_any_folder(installed, tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(program: str, *arguments: str) -> Result:
        return run_process(installed / "bin" / program, *arguments, cwd=tmp_path, env=environment)

    [top] = {name.split("/")[0] for name in record(installed) if ".dist-info/" not in name}
    assert top == "quit" and "quit/py.typed" in record(installed)
    assert run("python", "-m", "quit", "--version").out == run("quit", "--version").out
    for name in ("annotation", "flows", "schemas"):  # a user's own
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not the program')")
    packages = "quit.flows.build, quit.annotation.push"
    for file in run("python", "-c", f"import {packages}; print(*(p.__file__ for p in ({packages})))").out.split():
        assert Path(file).is_relative_to(installed)
    (tmp_path / "my.jsonl").write_text(starter_lines()[0], encoding="utf-8")
    assert run("quit", "check", "my.jsonl", "--no-models", "--json").json()["questions"] == 1
    assert "profile embedded" in {row["origin"] for row in run("quit", "settings", "--json").json()}
    run("quit", "build", "-w", "W", "--source", "my.jsonl", "--quiet")
    stages = run("quit", "status", "-w", "W", "--json").json()["stages"]
    assert {stage["state"] for stage in stages} == {"complete"}
