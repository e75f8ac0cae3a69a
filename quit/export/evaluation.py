"""Tasks over a Hugging Face export (``--eval``): ``eval.yaml`` for Inspect and the hub's benchmarks, ``lm_eval/`` for
lm-evaluation-harness, ``mteb_task.py`` for MTEB, and the config ``evaluation`` with the texts that the first two need.

A task asks each question without hints, with all hints, or with one passage of label 2. The prompts are those of the
readers and of the probe (:mod:`quit.models.prompting`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.rows import Row
from quit.common.safe import json_text
from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.description import section_of
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from quit.export.card_facts import title
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.lines import PassageIds, PassageTexts
from quit.export.parquet_shards import ParquetShard, Shard
from quit.export.templates import fill_template
from quit.export.training import Selection
from quit.models.prompting import load_prompt
from quit.settings.card import Card
from quit.settings.construction import Labels

CONFIG = "evaluation"
FILES = (f"{CONFIG}/*.parquet", "eval.yaml", "lm_eval/*.yaml", "mteb_task.py")
_TEXTS = ("id", "question", "all_hints", "passage", "passage_id", "answer")
SCHEMA = pa.schema([*((name, pa.string()) for name in _TEXTS), ("answers", pa.list_(pa.string()))])
"""Columns of the config: ``passage``, of label 2, and its id; ``answer``, the first gold one that people did not
reject; ``answers``, all valid ones."""
TASKS = {"no_hints": "probe", "all_hints": "reader", "passage": "reader"}
"""Task -> the program's prompt that it uses; its context is the column of its name."""
TARGETS = {"quit": "answers", "quit_first_answer": "answer"}
"""Group of tasks of lm-evaluation-harness -> the column with what counts; the second counts what Inspect does."""


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> tuple[list[Shard], FormatFacts]:
    """Write the config and the tasks' files; return its shards and the manifest's facts.

    A question's passage is, of those of label 2 that the labelers were asked about, the first in the order of a keyed
    hash. Questions without one are left out of all tasks, and counted. The tasks take the last of train, dev and test
    that has questions. Raises ``InputError`` where none has.
    """
    selection = Selection(dataset, options.fine_tuning)
    texts = PassageTexts(dataset)
    shards: list[Shard] = []
    left_out: dict[str, int] = {}
    for split in SPLITS:
        if len(positions := dataset.positions(split)):
            rows = pa.Table.from_pylist(list(_rows(selection, texts, positions)), SCHEMA)
            left_out[split] = len(positions) - len(rows)
            with ParquetShard(folder, CONFIG, split, SCHEMA, _TEXTS) as writer:
                writer.write(rows)
            shards += writer.shards
    if not shards:
        raise InputError(f"No question has a passage of label {FULLY} that labelers were asked about: omit --eval.")
    _write_tasks(dataset, folder, options.card, shards[-1].split)
    return shards, {"left_out": left_out, "seed": options.fine_tuning.seed}


def _write_tasks(dataset: Dataset, folder: ExportFolder, card: Card, split: str) -> None:
    """Write the files of the three tools, whose tasks take ``split``."""
    values = {
        **{"title": title(dataset.provenance, card), "card": card, "split": split, "json": json_text},
        "prompts": {name: _prompt(prompt) for name, prompt in TASKS.items()},
        "max_tokens": section_of(dataset.provenance, "labels").get("max_new_tokens", Labels().max_new_tokens),
    }
    for path, name in (("eval.yaml", "eval.jinja"), ("mteb_task.py", "mteb_task.jinja")):
        folder.text(path, fill_template(name, **values))
    for group, target in TARGETS.items():
        for task in TASKS:
            text = fill_template("lm_eval.jinja", **values, group=group, target=target, task=task)
            folder.text(f"lm_eval/{group}_{task}.yaml", text)


def _rows(selection: Selection, texts: PassageTexts, positions: np.ndarray) -> Iterator[Row]:
    """Yield the rows of those of some questions that have a passage of label 2."""
    dataset, ids = selection.dataset, PassageIds(selection.dataset, escaped=False)
    fully = dataset.rows.take(positions).by_question(dataset.labels_of(positions) == FULLY)
    for position, right, hints in zip(positions.tolist(), fully, dataset.hint_lists(positions), strict=True):
        if right.any():
            number = dataset.rows.starts[position] + selection.ordered("positive", position, np.flatnonzero(right))[0]
            yield {
                "id": dataset.ids[position],
                "question": dataset.question_of[position],
                "all_hints": " ".join(hints),
                "passage": texts[number],
                "passage_id": ids[number],
                "answer": dataset.gold_answers_of[position][0],
                "answers": dataset.valid_answers_of[position],
            }


def _prompt(name: str) -> dict[str, Any]:
    """Return a prompt's system turn, its ``examples`` (user, assistant) and its ``last`` turn."""
    (_, system), *turns, (_, last) = load_prompt(name).turns
    texts = [text for _, text in turns]
    return {"system": system, "examples": list(zip(texts[::2], texts[1::2], strict=True)), "last": last}
