"""Tasks over a Hugging Face export (``--eval``): ``eval.yaml`` for Inspect and the hub's benchmarks, ``lm_eval/`` for
lm-evaluation-harness, ``mteb_task.py`` for MTEB, and the config ``evaluation`` with the texts that the first two need.

A task asks each question without hints, with all hints, or with one passage of label 2. The prompts are those of the
readers and of the probe (:mod:`quit.models.prompting`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from quit.common.ids import passage_id
from quit.common.safe import json_text
from quit.dataset.dataset import FULLY, SPLITS, Dataset
from quit.errors import InputError
from quit.export.card import filled
from quit.export.card_facts import Shard, title
from quit.export.files import ExportFolder, Options
from quit.export.huggingface import ParquetShard
from quit.export.training import Selection
from quit.models.prompting import load_prompt

CONFIG = "evaluation"
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "question": pa.string(),
        "all_hints": pa.string(),
        "passage": pa.string(),
        "passage_id": pa.string(),
        "answer": pa.string(),  # the first gold answer
        "answers": pa.list_(pa.string()),  # all valid ones
    }
)
TASKS = {"no_hints": "probe", "all_hints": "reader", "passage": "reader"}
"""Task -> the program's prompt that it uses; its context is the column of its name."""
MAX_TOKENS = 32
"""Tokens of a reply at most, as of the readers."""
RULE = (
    "the passage: of those of label 2 that the labelers were asked about, the first in the order of a keyed hash; "
    "questions without one are left out"
)


class _Prompt(NamedTuple):
    """A task's prompt: the system's turn, pairs of the user's and the assistant's turns, and the last user's turn."""

    system: str
    examples: list[tuple[str, str]]
    last: str


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> tuple[list[Shard], dict[str, Any]]:
    """Write the config and the tasks' files; return its shards and the manifest's facts.

    The tasks take the last of train, dev and test that has a question. Raises ``InputError`` where no question has a
    passage of label 2.
    """
    selection = Selection(dataset, options.fine_tuning)
    shards: list[Shard] = []
    left_out: dict[str, int] = {}
    for split in SPLITS:
        positions = dataset.positions(split)
        rows = pa.Table.from_pylist(list(_rows(dataset, selection, positions)), SCHEMA)
        left_out[split] = len(positions) - len(rows)
        if len(rows):
            name = f"{CONFIG}/{split}-00000-of-00001.parquet"
            with ParquetShard(folder, name, SCHEMA, SCHEMA.names) as writer:
                writer.write(rows)
            shards.append(Shard(CONFIG, split, name, writer.rows, folder.path(name).stat().st_size, writer.bytes))
    if not shards:
        raise InputError(
            f"No question has a passage of label {FULLY} that a labeler was asked about: leave out --eval."
        )
    tasks = {name: _prompt(prompt) for name, prompt in TASKS.items()}
    files: dict[str, tuple[str, Any]] = {
        "eval.yaml": ("eval.jinja", tasks),
        "mteb_task.py": ("mteb_task.jinja", None),
        "lm_eval/quit.yaml": ("lm_eval_group.jinja", tasks),
        **{f"lm_eval/quit_{name}.yaml": ("lm_eval.jinja", (name, prompt)) for name, prompt in tasks.items()},
    }
    facts = {"title": title(dataset, options.card), "card": options.card, "split": shards[-1].split}
    for path, (template, about) in files.items():
        text = filled(template, about=about, json=json_text, max_tokens=MAX_TOKENS, **facts)
        folder.path(path).write_text(text, encoding="utf-8")
        folder.done(path, text.count("\n"))
    return shards, {"rule": RULE, "seed": options.fine_tuning.seed, "left_out": left_out}


def _rows(dataset: Dataset, selection: Selection, positions: np.ndarray) -> Iterator[dict[str, Any]]:
    permutations = dataset.permutations.permutation
    golds = dataset.aligned("questions")["answers"]
    fully = dataset.labels_of(positions) == FULLY
    if (predicted := dataset.predictions(positions)) is not None:
        fully &= np.isnan(predicted)
    for position, right, hints in zip(positions.tolist(), fully, dataset.hint_lists(positions), strict=True):
        if not right.any():
            continue
        permutation = permutations[int(selection.ordered("positive", position, np.flatnonzero(right))[0])].as_py()
        yield {
            "id": dataset.ids[position],
            "question": dataset.question_of[position],
            "all_hints": " ".join(hints),
            "passage": " ".join(hints[int(place)] for place in permutation),
            "passage_id": passage_id(dataset.ids[position], permutation),
            "answer": golds[position][0].as_py(),
            "answers": dataset.valid_answers_of[position],
        }


def _prompt(name: str) -> _Prompt:
    *turns, (_, last) = load_prompt(name).turns
    users, replies = ([text for role, text in turns if role == kind] for kind in ("user", "assistant"))
    system = "\n\n".join(text for role, text in turns if role == "system")
    return _Prompt(system, list(zip(users, replies, strict=True)), last)
