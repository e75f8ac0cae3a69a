"""JSON in the layout of SQuAD 1.1 (Rajpurkar et al. 2016).

``{version, data: [{title, paragraphs: [{context, qas: [{id, question, answers: [{text, answer_start}]}]}]}]}``. A
question is an article, each of its passages a paragraph with one entry of ``qas``: the passage's id, the question,
its valid answers and, beside SQuAD's keys, ``label``. The answers are inferred and appear in no context, so
``answer_start`` is -1: scripts that score texts (SQuAD's own evaluation) run on it, those that train extraction need
spans and cannot. A split without questions has no file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quit.common.safe import json_inside, json_text
from quit.dataset.dataset import SPLITS, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines

NO_SPAN = -1
VERSION = "1.1, inferential: no spans"


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write a file for each split; return the number of passages by split and what ``answer_start`` means."""
    lines = Lines(dataset, escaped=False)
    passages = {split: _write_split(lines, split, folder) for split in SPLITS if len(dataset.positions(split))}
    return {"passages": passages, "answer_start": f"{NO_SPAN}: answers are inferred and appear in no context"}


def _write_split(lines: Lines, split: str, folder: ExportFolder) -> int:
    positions = lines.dataset.positions(split)
    name, passages = f"{split}.json", 0
    with folder.path(name).open("w", encoding="utf-8") as file:
        before = f'{{"version": {json_text(VERSION)}, "data": [\n'
        for part in lines.ranges(positions):
            labels = lines.dataset.labels_of(part)
            shape = (len(part), labels.shape[1])
            ids = np.array(lines.passage_ids(part, json_inside).to_pylist(), dtype=object).reshape(shape)
            texts = np.array(lines.texts(part, json_inside).to_pylist(), dtype=object).reshape(shape)
            for position, *of_question in zip(part, ids, texts, labels.tolist(), strict=True):
                file.write(before + _article(lines.dataset, int(position), of_question))
                before = ",\n"
            passages += labels.size
        file.write("\n]}\n")
    folder.record(name, len(positions))
    return passages


def _article(dataset: Dataset, position: int, passages: list[Any]) -> str:
    """Return a question with its passages as JSON; ``passages``: their ids and texts, escaped, and labels."""
    answers = [{"text": answer, "answer_start": NO_SPAN} for answer in dataset.valid_answers_of[position]]
    head = f'"question": {json_text(dataset.question_of[position])}, "answers": {json_text(answers)}'
    paragraphs = ", ".join(
        f'{{"context": "{text}", "qas": [{{"id": "{name}", {head}, "label": {label}}}]}}'
        for name, text, label in zip(*passages, strict=True)
    )
    return f'{{"title": {json_text(dataset.ids[position])}, "paragraphs": [{paragraphs}]}}'
