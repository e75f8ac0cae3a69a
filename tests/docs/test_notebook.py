"""The notebook, run from top to bottom in a real kernel against a real Label Studio. With the variable
``QUIT_PICTURES`` set, its outputs are stored."""

import json
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from safetensors.numpy import load_file

from quit.engine.workspace import Workspace
from quit.models.folders import minilm_folder
from tests.label_studio import Live
from tests.paths import PYTHONPATH, ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
FACTS = """import json
print(json.dumps([pushed.new, pulled.versions, update.labels_up, update.labels_down, len(positives), before, after]))
"""


def _is_result(output: nbformat.NotebookNode) -> bool:
    kept = output.output_type == "execute_result" or "image/png" in output.get("data", ())
    return kept or output.get("name") == "stdout"


def _tables(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the tables that a notebook's cells show before it trains."""
    last = next(place for place, cell in enumerate(notebook.cells) if cell.source.startswith("## Train"))
    outputs = [output for cell in notebook.cells[:last] for output in cell.get("outputs", ())]
    return [
        output.data["text/html"] for output in outputs if _is_result(output) and "text/html" in output.get("data", ())
    ]


@pytest.mark.slow
def test_the_notebook_does_what_it_says(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    stored = _tables(notebook)
    for name, value in {
        "LABEL_STUDIO_URL": live.account.url,
        "LABEL_STUDIO_API_KEY": live.account.token,
        "PYTHONPATH": PYTHONPATH,
        "HF_HOME": str(tmp_path / "hf"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)
    facts = nbformat.v4.new_code_cell(FACTS)
    notebook.cells.append(facts)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()  # raises as a cell
    assert "Warning" not in json.dumps([cell.get("outputs") for cell in notebook.cells])
    tasks, versions, labels_up, labels_down, pairs, before, after = json.loads(notebook.cells.pop().outputs[0].text)
    if "QUIT_PICTURES" in os.environ:
        for cell in notebook.cells:
            cell.metadata = {}
            if cell.cell_type == "code":  # without bars
                cell.outputs = [output for output in cell.outputs if _is_result(output)]
        nbformat.write(notebook, NOTEBOOK)
    else:
        assert stored == _tables(notebook)

    workspace = Workspace.open(tmp_path / "workspace")
    splits = {row["question_id"]: row["split"] for row in workspace.read("splits").to_pylist()}
    people = {row["question_id"] for row in workspace.read("reviews").to_pylist()}
    assert people == {question for question, split in splits.items() if split != "train"}
    assert tasks == versions == len(people)
    assert labels_up > 0 and labels_down == 0
    assert (tmp_path / "workspace" / "releases" / "v1").is_dir()

    labels = workspace.read("labels").to_pylist()
    assert pairs == sum(
        row["label"] == 2 and len(row["permutation"]) <= 2 and splits[row["question_id"]] == "train" for row in labels
    )
    assert before.keys() == after.keys() == {"Hit@1", "Recall@25", "nDCG@25"} and before != after
    assert all(0 <= score <= 1 for scores in (before, after) for score in scores.values())
    packaged, trained = (
        load_file(folder / "model.safetensors") for folder in (minilm_folder(), tmp_path / "retriever")
    )
    name = "encoder.layer.0.attention.self.query.weight"
    assert packaged[name].shape == trained[name].shape and (packaged[name] != trained[name]).any()
