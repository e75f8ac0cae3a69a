"""Passages, queries and relevance labels for retrieval tools: BEIR, TREC, Pyserini."""

from __future__ import annotations

from typing import Any

from quit.common.safe import json_text, one_line
from quit.dataset.dataset import SPLITS, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines, write_texts

_NO_TAGS = str.maketrans("<>", "  ")  # classic topics know no escapes


def write_beir(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/{train,dev,test}.tsv`` (Thakur et al. 2021); return rows
    and what was escaped.

    Titles are empty: BEIR's models read title and text together, and anything that names the question would give the
    relevant passages away.
    """
    lines = Lines(dataset)
    passages = lines.write_passages(folder, "corpus.jsonl", '{"_id": "', '", "title": "", "text": "', '"}')
    rows = zip(lines.ids, dataset.question_of, dataset.split_names, strict=True)
    queries = ({"_id": name, "text": text, "metadata": {"split": split}} for name, text, split in rows)
    count = write_texts(folder, "queries.jsonl", (json_text(query) + "\n" for query in queries))
    parts = ("", "\t", "\t", "")
    qrels = {
        split: lines.write_qrels(folder, f"qrels/{split}.tsv", split, parts, "query-id\tcorpus-id\tscore\n")
        for split in SPLITS
    }
    return {"passages": passages, "queries": count, "qrels": qrels, "escaped": lines.escapes(texts=False)}


def write_trec(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write ``collection.tsv`` (``docid <tab> text``), and of each split ``topics.<split>.tsv`` (``qid <tab>
    question``), ``topics.<split>.txt`` (classic ``<top>`` blocks) and ``qrels.<split>.txt`` (``qid 0 docid label``);
    return rows and what was escaped."""
    lines = Lines(dataset)
    passages = lines.write_passages(folder, "collection.tsv", "", "\t", "")
    for split in SPLITS:
        names = ((lines.ids[position], dataset.question_of[position]) for position in dataset.positions(split))
        write_texts(folder, f"topics.{split}.txt", (topic(*pair) for pair in names))
    tags = sum("<" in text or ">" in text for text in dataset.question_of)
    escapes = lines.escapes(texts=True) | {"classic_topics_without_angle_brackets": tags}
    return {"passages": passages, **_topics_and_qrels(lines, folder), "escaped": escapes}


def topic(name: str, question: str) -> str:
    """Return one classic topic; angle brackets in a question become spaces."""
    text = one_line(question).translate(_NO_TAGS)
    return f"<top>\n\n<num> Number: {name}\n<title> {text}\n\n<desc> Description:\n{text}\n\n</top>\n\n"


def write_pyserini(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the sharded collection ``corpus/docs-*.jsonl`` of ``{"id", "contents"}``, ``topics.<split>.tsv`` and
    ``qrels.<split>.txt`` for Pyserini and Anserini; return rows and escapes.

    The folder ``corpus`` is what ``pyserini.index.lucene --collection JsonCollection --input`` takes.
    """
    lines = Lines(dataset)
    layout = ('{"id": "', '", "contents": "', '"}')
    passages = sum(
        lines.write_passages(folder, f"corpus/docs-{number:05d}.jsonl", *layout, shard)
        for number, shard in enumerate(lines.shards())
    )
    return {"passages": passages, **_topics_and_qrels(lines, folder), "escaped": lines.escapes(texts=True)}


def _topics_and_qrels(lines: Lines, folder: ExportFolder) -> dict[str, dict[str, int]]:
    positions = {split: lines.dataset.positions(split) for split in SPLITS}
    return {
        "topics": {split: lines.write_queries(folder, f"topics.{split}.tsv", positions[split]) for split in SPLITS},
        "qrels": {split: lines.write_trec_qrels(folder, f"qrels.{split}.txt", split) for split in SPLITS},
    }
