"""What a user without a checkout has: the wheel, installed into an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import ROOT, STARTER

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel. Its dependencies are this environment's, by path: nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in sources.split("\0"):  # building writes beside the sources
        if name.startswith(("annotation/", "flows/", "quit/", "schemas/", "README", "LICENSE", "pyproject")):
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "source" / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *build, str(folder / "source")], check=True)
    shutil.rmtree(folder / "source")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    [wheel] = folder.glob("*.whl")
    python = environment / "bin" / "python"
    into = ["--python", str(python), "install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, *into], check=True)
    # After the environment's own packages; the checkout's own link, a .pth file there, is not followed from here.
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment


def test_an_installed_wheel_checks_and_builds_from_any_folder(installed, tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(program: str, *arguments: str) -> str:
        command = [str(installed / "bin" / program), *arguments]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        return result.stdout

    (tmp_path / "schemas").mkdir()  # a user's own folder
    (tmp_path / "schemas" / "__init__.py").write_text("raise ImportError('not the program')")
    packages = "quit, flows, annotation"
    for file in run("python", "-c", f"import {packages}; print(*(p.__file__ for p in ({packages})))").split():
        assert Path(file).is_relative_to(installed)
    (tmp_path / "foreign" / "flows").mkdir(parents=True)
    (tmp_path / "foreign" / "flows" / "__init__.py").touch()
    program = "from quit.cli import main; main(['build', '-w', 'V', '--source', 'starter'])"
    refused = subprocess.run(
        [installed / "bin" / "python", "-c", program],
        cwd=tmp_path / "foreign", env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 7 and "another package named flows" in refused.stderr.splitlines()[-1]
    (tmp_path / "my.jsonl").write_text(STARTER.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    assert json.loads(run("quit", "check", "my.jsonl", "--no-models", "--json"))["questions"] == 1
    assert "profile embedded" in {row["origin"] for row in json.loads(run("quit", "settings", "--json"))}
    run("quit", "build", "-w", "W", "--source", "my.jsonl", "--quiet")
    stages = json.loads(run("quit", "status", "-w", "W", "--json"))["stages"]
    assert {stage["state"] for stage in stages} == {"complete"}
