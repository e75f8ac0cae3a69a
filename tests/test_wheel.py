"""What a user without a checkout has: the wheel, installed into an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
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
            shutil.copyfile(ROOT / name, folder / "source" / name, follow_symlinks=False)
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


def record(environment: Path) -> list[str]:
    [wheel] = environment.parent.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_an_installed_wheel_checks_and_builds_from_any_folder(installed, tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(program: str, *arguments: str) -> str:
        command = [str(installed / "bin" / program), *arguments]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        return result.stdout

    [top] = {name.split("/")[0] for name in record(installed) if ".dist-info/" not in name}
    assert top == "quit"
    for name in ("annotation", "flows", "schemas"):  # a user's own
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not the program')")
    packages = "quit.flows.build, quit.annotation.project"
    for file in run("python", "-c", f"import {packages}; print(*(p.__file__ for p in ({packages})))").split():
        assert Path(file).is_relative_to(installed)
    (tmp_path / "my.jsonl").write_text(STARTER.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    assert json.loads(run("quit", "check", "my.jsonl", "--no-models", "--json"))["questions"] == 1
    assert "profile embedded" in {row["origin"] for row in json.loads(run("quit", "settings", "--json"))}
    run("quit", "build", "-w", "W", "--source", "my.jsonl", "--quiet")
    stages = json.loads(run("quit", "status", "-w", "W", "--json"))["stages"]
    assert {stage["state"] for stage in stages} == {"complete"}
