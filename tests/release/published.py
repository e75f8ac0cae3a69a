"""Files of the paper's release JSON by hand: three questions, two hints and so four passages each, the paper's six
readers. Nothing of the code under test makes them."""

import json
from pathlib import Path
from typing import Any

LABELERS = ("gemma-3-1b", "qwen-3-4b", "llama-31-8b")
READERS = ("llama-32-1b", "gemma-3-4b", "qwen-3-8b")
PLACES = (("0", "0"), ("1", "1"), ("01", "01"), ("01", "10"))
BITS = {"0": "10", "1": "01", "01": "11"}
Splits = dict[str, list[dict[str, Any]]]


def question(question_id: str, answers: list[str], right: dict[str, str], keys: dict[str, str] | None = None) -> dict:
    """Return a question. ``right``: permutation -> what the second labeler answers; all else is ``NO ANSWER``, but the
    last reader says ``Atlantis`` to both hints in order. ``keys``: other names of subsets."""
    subsets: dict[str, dict] = {}
    for subset, permutation in PLACES:
        replies = dict.fromkeys((*LABELERS, *READERS), "NO ANSWER")
        replies["qwen-3-4b"] = right.get(permutation, "NO ANSWER")
        if permutation == "01":
            replies["qwen-3-8b"] = "Atlantis"
        subsets.setdefault((keys or {}).get(subset, subset), {})[permutation] = replies
    hints = [{"hint": f"First of {question_id}."}, {"hint": "Secönd\u2028one."}]
    about = {"id": question_id, "question": f"What is {question_id}?", "answers": answers}
    return {**about, "hints": hints, "subsets": subsets}


def splits(keys: dict[str, str] | None = None) -> Splits:
    """Return the questions of each split. By the paper's rule 3 of 12 passages have label 2: ``b`` 1, ``a`` 01 and 10.
    ``c`` 0 has an answer that is accepted only when case and articles do not count."""
    return {
        "train": [question("b", ["Nile", "the Nile"], {"1": "the Nile", "0": "Amazon"}, keys)],
        "dev": [question("c", ["Lima"], {"0": "the LIMA"}, keys)],
        "test": [question("a", ["Oslo"], {"01": "Oslo", "10": "Oslo"}, keys)],
    }


def write(folder: Path, questions: Splits) -> Path:
    """Write the three files and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in questions.items():
        (folder / f"{split}.json").write_text(json.dumps(rows, indent=4), encoding="utf-8")
    return folder
