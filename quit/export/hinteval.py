"""HintEval (Mozafari et al. 2025): one JSON file for its ``Dataset.load_json``, a subset a split.

Each question has its gold answers, except those that people rejected (all valid answers where none is left), and the
hints that make its passages, in rank order, each with its convergence. Valid answers and our difficulty are metadata.
``quit build --source hinteval:FILE`` reads the file again.
"""

from __future__ import annotations

import json
from typing import Any

from quit.dataset.dataset import SPLITS, Dataset
from quit.export.files import MADE_BY, ExportFolder, Options

FILE = "hinteval.json"


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the file; return its questions by split.

    It is plain ASCII, since HintEval reads it in the encoding of the machine it runs on.
    """
    provenance = dataset.provenance
    descriptions = dataset.aligned("descriptions").to_pylist()
    subsets = {}
    for split in SPLITS:
        positions = dataset.positions(split).tolist()
        instances = {
            dataset.ids[position]: {
                "question": _question(dataset.question_of[position], descriptions[position]),
                "answers": [_part("answer", answer) for answer in dataset.gold_answers_of[position]],
                "hints": [_hint(row) for row in dataset.selected_hints[position]],
                "metadata": {"valid_answers": dataset.valid_answers_of[position]},
            }
            for position in positions
        }
        subsets[split] = {"name": split, "metadata": {}, "instances": instances}
    record = {
        "name": provenance.get("release") or "quit",
        "version": provenance.get("release"),
        "description": f"Made by {MADE_BY}.",
        "url": None,
        "metadata": {"fingerprint": dataset.fingerprint, "canary": dataset.canary},
        "subsets": subsets,
    }
    folder.path(FILE).write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="ascii")
    folder.record(FILE, len(dataset.ids))
    return {"questions": {split: len(subset["instances"]) for split, subset in subsets.items()}}


def _part(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {kind: text, "entities": [], "metrics": {}, "metadata": {}} | more


def _question(text: str, description: dict[str, Any]) -> dict[str, Any]:
    kind = {"major": description["coarse"], "minor": description["fine"]} if description["coarse"] else {}
    difficulty = {"difficulty": description["difficulty_bin"]} if description["difficulty_bin"] else {}
    return _part("question", text, question_type=kind, metadata=difficulty)


def _hint(row: dict[str, Any]) -> dict[str, Any]:
    metric = {"name": "convergence", "value": row["convergence"], "metadata": {"producer": row["producer"]}}
    metrics = {"convergence": metric} if row["convergence"] is not None else {}
    return _part("hint", row["hint"], source=row["url"], metrics=metrics)
