"""The base installation, without extras: an environment that has neither torch nor Prefect opens, looks at, exports and
scores a dataset, and names the extra that anything else needs."""

import tomllib
from functools import partial
from pathlib import Path

import pytest

from quit.common.environments import ensure_environment
from quit.errors import MissingDependency
from tests.paths import ROOT
from tests.running import run_process

pytestmark = pytest.mark.slow

LIBRARY = """
import importlib.util, json, sys
import quit
assert not [name for name in ("torch", "prefect", "sklearn", "transformers") if importlib.util.find_spec(name)]
tables = quit.open(sys.argv[1])
labels = tables.pandas("labels")
qrels = {"q": {"d1": 2, "d2": 1}}
scores = quit.evaluate_run({"q": {"d2": 2.0, "d1": 1.0}}, qrels)
try:
    quit.judge("Who?", ["Ada"], "Grace")
except Exception as error:
    fault = f"{type(error).__name__}: {error}"
print(json.dumps({"labels": len(labels), "scores": len(scores), "fault": fault}))
"""


def light_environment() -> Path:
    """Return the folder of programs of an environment with the base's dependencies, made at the first call (a minute);
    else skips the test."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    try:
        return ensure_environment("light", dependencies, options=["--constraint", str(ROOT / "constraints.txt")])
    except MissingDependency as error:
        pytest.skip(str(error))


def test_the_base_opens_exports_and_scores_and_names_the_extra_of_the_rest(built: Path, tmp_path: Path) -> None:
    run = partial(run_process, light_environment() / "python", cwd=tmp_path, PYTHONPATH=str(ROOT))
    facts = run("-c", LIBRARY, built).json()
    assert facts["labels"] and facts["scores"]
    assert facts["fault"].startswith("MissingDependency") and "'.[models]'" in facts["fault"]
    shell = ("-m", "quit")
    count = run(*shell, "query", "-w", built, "--csv", "SELECT count(*) AS labels FROM labels").out
    assert count.split() == ['"labels"', str(facts["labels"])]
    run(*shell, "export", "-w", built, "--format", "csv,huggingface,release-json", "--out", "E")
    assert {path.name for path in (tmp_path / "E").iterdir()} >= {"csv", "huggingface", "release-json"}
    refused = run(*shell, "build", "-w", "W", "--source", "starter", code=5).err.splitlines()
    assert len(refused) == 1 and "'.[models]'" in refused[0]
