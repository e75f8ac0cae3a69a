"""TREC: topics (tab-separated and classic), relevance judgements and a collection, for trec_eval and similar tools.

``topics.<split>.tsv`` (``qid <tab> question``), ``topics.<split>.txt`` (classic ``<top>`` blocks),
``qrels.<split>.txt`` (``qid 0 docid label``) and ``collection.tsv`` (``docid <tab> text``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quit.common.safe import one_line
from quit.dataset.dataset import SPLITS, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines, line_file

_NO_TAGS = str.maketrans("<>", "  ")  # classic topics know no escapes


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the collection, and topics and labels of each split; return rows and what was escaped."""
    lines = Lines(dataset)
    passages = lines.write_passages(folder, "collection.tsv", "", "\t", "")
    topics, qrels = {}, {}
    for split in SPLITS:
        positions = dataset.positions(split)
        topics[split] = lines.write_queries(folder, f"topics.{split}.tsv", positions)
        with line_file(folder, f"topics.{split}.txt") as put:
            put(
                pa.array(
                    [topic(lines.ids[position], dataset.question_of[position]) for position in positions], pa.string()
                )
            )
        qrels[split] = lines.write_trec_qrels(folder, f"qrels.{split}.txt", split)
    tags = sum("<" in text or ">" in text for text in dataset.question_of)
    escaped = lines.escapes(texts=True) | {"classic_topics_without_angle_brackets": tags}
    return {"passages": passages, "topics": topics, "qrels": qrels, "escaped": escaped}


def topic(name: str, question: str) -> str:
    """Return one classic topic; angle brackets in a question become spaces."""
    text = one_line(question).translate(_NO_TAGS)
    return f"<top>\n\n<num> Number: {name}\n<title> {text}\n\n<desc> Description:\n{text}\n\n</top>\n\n"
