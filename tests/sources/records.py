"""A valid record of each kind of source, as in a file, and files of such records."""

import json
from pathlib import Path
from typing import Any

from quit.sources import hinteval, jsonl, triviahg, wikihint
from quit.sources.records import SourceRecord

READERS = {"triviahg": triviahg, "wikihint": wikihint, "hinteval": hinteval, "jsonl": jsonl}
SCORES = {"Venus": 0, "Mars": 1}


def metric(value: object, **metadata: object) -> dict[str, Any]:
    """Return a metric of HintEval."""
    return {"name": "convergence", "value": value, "metadata": metadata}


METRICS = {
    "convergence-specificity-bert-base": metric(0.1),
    "convergence-nn-bert-base": metric(0.2),
    "convergence-llm-llama-3-8b": metric(0.67, scores={"Graz": 1, "Linz": 0, "Vienna": 1}),
}
BARE = {"entities": [], "metrics": {}, "metadata": {}}
GOOD: dict[str, dict[str, Any]] = {
    "triviahg": {
        "Q_ID": "q1",
        "Question": "Which country is number 1?",
        "Hints": ["It is an island. [^1^]", "It is far away."],
        "ExactAnswer": ["Fiji", "Fiji", " FIJI "],
        "MajorType": "LOC:LOCATION",
        "MinorType": "country:Country",
        "Candidates_Answers": ["Samoa", "Tonga", "Fiji"],
        "Scores": [{"Samoa": 1, "Tonga": 0, "Fiji": 1}, {"Samoa": 1, "Tonga": 1, "Fiji": 1}],
        "Convergence": [0.67, 0.33],
        "Exact_Answer_Popularity": {"Normalized": 1.0, "Category": "Easy"},
    },
    "wikihint": {
        "id": "q1",
        "question": {
            "question": "Name the deity.",
            "question_type": {"major": "HUM:HUMAN", "minor": "ind:Individual"},
            "difficulty": "Easy",
            "candidate_answers": ["Hastur", "Cthulhu"],
        },
        "answer": {"answer": "Cthulhu"},
        "hints": [{"hint": "It\xa0sleeps.", "source": "https://x.org", "rank": "2", "metrics": {"convergence": 0.5}}],
    },
    "hinteval": {
        "question": {
            "question": "What is the capital of Austria?",
            "question_type": {"major": "LOC:LOCATION", "minor": "city:City"},
            "entities": [],
            "metrics": {},
            "metadata": {"candidate_answers-llama-3-8b": ["Graz", "Linz", "Vienna"], "difficulty": "Easy"},
        },
        "answers": [{"answer": "Vienna", **BARE}],
        "hints": [
            {**BARE, "hint": "Mozart lived in this city.", "source": "https://x.org", "metrics": METRICS},
            {**BARE, "hint": "It is on the Danube.", "source": None},
        ],
        "metadata": {},
    },
    "jsonl": {
        "id": "q1",
        "question": "Which planet is red?",
        "answers": ["Mars"],
        "hints": [
            "It is a neighbour.",
            {"hint": "It has two moons.", "rank": 1, "convergence": 0.5, "url": "https://x.org", "scores": SCORES},
            {"text": "Its name is that of a god."},
        ],
        "candidates": ["Venus", "Mars"],
        "question_type": {"coarse": "LOC:LOCATION", "fine": "other:Other location"},
        "difficulty": "Easy",
        "metadata": {"anything": 1},
    },
}


def good(kind: str, **changes: object) -> dict[str, Any]:
    """Return the record with some fields replaced; ``...`` takes a field away."""
    return {key: value for key, value in {**GOOD[kind], **changes}.items() if value is not ...}


def dataset(**subsets: dict[str, Any]) -> dict[str, Any]:
    """Return a dataset of HintEval: subset -> id -> instance."""
    named = {name: {"name": name, "metadata": {}, "instances": instances} for name, instances in subsets.items()}
    return {"name": "d", "version": None, "description": None, "url": None, "metadata": {}, "subsets": named}


def read(kind: str, folder: Path, value: object) -> list[SourceRecord]:
    """Write a file ``s.json``, a text or bytes as they are, and return what the reader of the kind makes of it."""
    path = folder / "s.json"
    content = value if isinstance(value, str | bytes) else json.dumps(value)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(READERS[kind].read(path))


def read_two(kind: str, folder: Path, first: dict[str, Any], second: dict[str, Any]) -> list[SourceRecord]:
    """Read a file of two records; HintEval has their ids outside, here ``q1`` and ``q2``."""
    if kind == "jsonl":
        return read(kind, folder, "\n".join(map(json.dumps, (first, second))))
    return read(kind, folder, dataset(test={"q1": first, "q2": second}) if kind == "hinteval" else [first, second])
