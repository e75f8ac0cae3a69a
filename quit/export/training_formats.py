"""Positives and negatives of questions (:mod:`quit.export.training`) for tools that train retrievers and rerankers:
Tevatron, ColBERT, MonoT5."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.safe import json_inside, json_text, one_line
from quit.dataset.dataset import Dataset
from quit.dataset.paper_names import paper_id
from quit.evaluate.labels import SPLITS
from quit.export import training
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.lines import Lines, PassageIds, PassageTexts, QrelsLayout, write_arrays, write_texts
from quit.export.retrieval_formats import COLLECTION
from quit.export.training import PAIRS, Selection


def write_tevatron(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write ``train.jsonl`` and ``dev.jsonl`` with pairs of a positive and a negative, ``corpus.jsonl`` and the queries
    of each split (Gao et al. 2022); return the choices.

    A record has one pair, since Tevatron takes one positive of a record per epoch. Titles are empty, as in ``beir``,
    and for the same reason; with ``paper_keys`` they are the question's id, as in the inputs of the paper's programs.
    """
    lines = Lines(PassageIds(dataset))

    def title(question_id: str) -> str:
        return json_inside(paper_id(question_id)) if options.paper_keys else ""

    selection = Selection(dataset, options.fine_tuning)
    texts = PassageTexts(dataset, json_inside)

    def query(position: int, suffix: str = "") -> str:
        name = f"{lines.ids.questions[position]}{suffix}"
        return json_text({"query_id": name, "query": dataset.question_of[position]})

    def record(position: int, place: int, good: int, bad: int) -> str:
        passages = f'"positive_passages": [{passage(good)}], "negative_passages": [{passage(bad)}]'
        return f"{query(position, f'_{place}')[:-1]}, {passages}}}\n"

    def passage(number: int) -> str:
        name = title(lines.ids.questions[dataset.rows.owner[number]])
        return f'{{"docid": "{json_inside(lines.ids[number])}", "title": "{name}", "text": "{texts[number]}"}}'

    facts = _write_pairs(selection, folder, "{}.jsonl", record)
    for split in SPLITS:
        queries = (query(position) + "\n" for position in dataset.positions(split))
        write_texts(folder, f"queries.{split}.jsonl", queries)

    def records(part: np.ndarray) -> pa.StringArray:
        ids, titles = lines.ids.of(part, json_inside), lines.ids.of_questions(part, title)
        columns = ('{"docid": "', ids, '", "title": "', titles, '", "text": "', lines.texts(part, json_inside))
        return pc.binary_join_element_wise(*columns, '"}\n', "")

    passages = write_arrays(folder, "corpus.jsonl", map(records, lines.ranges()))
    return {**facts, "passages": passages, "escaped": lines.escapes(texts=False)}


def write_monot5(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write ``train.tsv`` and ``dev.tsv`` of ``query <tab> positive <tab> negative``, as texts (Nogueira et al. 2020);
    return the choices and what was escaped."""
    lines = Lines(PassageIds(dataset))
    selection = Selection(dataset, options.fine_tuning)
    texts = PassageTexts(dataset, one_line)

    def triple(position: int, _: int, good: int, bad: int) -> str:
        return f"{one_line(dataset.question_of[position])}\t{texts[good]}\t{texts[bad]}\n"

    facts = _write_pairs(selection, folder, "{}.tsv", triple)
    return {**facts, "escaped": lines.escapes(texts=True)}


def write_colbert(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write ``collection.tsv``, ``queries.<split>.tsv``, ``triples.<split>.jsonl`` and ``qrels.<split>.tsv`` with
    integer ids (Khattab and Zaharia 2020); return the choices and what was escaped.

    A passage's integer is its line in the collection, a question's its place in the release. ``passage_ids.tsv`` and
    ``query_ids.tsv`` (``int <tab> id``) lead back to the ids of the other formats.
    """
    ids, lines = PassageIds(dataset), Lines(_Numbers(dataset))
    selection = Selection(dataset, options.fine_tuning)
    triple = "[{0}, {2}, {3}]\n".format
    facts = _write_pairs(selection, folder, "triples.{}.jsonl", triple)
    write_texts(folder, "query_ids.tsv", (f"{number}\t{name}\n" for number, name in enumerate(ids.questions)))
    passages = lines.write_passages(folder, "collection.tsv", COLLECTION)
    pairs = (pc.binary_join_element_wise(lines.ids.of(part), "\t", ids.of(part), "\n", "") for part in lines.ranges())
    write_arrays(folder, "passage_ids.tsv", pairs)
    qrels = {}
    for split in SPLITS:
        positions = dataset.positions(split).tolist()
        queries = (f"{position}\t{one_line(dataset.question_of[position])}\n" for position in positions)
        write_texts(folder, f"queries.{split}.tsv", queries)
        qrels[split] = lines.write_qrels(folder, QrelsLayout("qrels.{}.tsv", "\t0\t", "\t"), split)
    return {**facts, "passages": passages, "qrels": qrels, "escaped": lines.escapes(texts=True)}


class _Numbers(PassageIds):
    """Integers for ids: a question's place in the release, a passage's line in the collection."""

    def of(self, positions: np.ndarray, prepare: Callable[[str], str] = str) -> pa.StringArray:
        return pa.array(self.dataset.rows.rows(positions)).cast(pa.string())

    def of_questions(self, positions: np.ndarray, prepare: Callable[[str], str] = str) -> pa.StringArray:
        return pa.array(np.repeat(positions, self.dataset.rows.counts[positions])).cast(pa.string())


def _write_pairs(
    selection: Selection, folder: ExportFolder, file: str, line: Callable[[int, int, int, int], str]
) -> FormatFacts:
    """Write a ``line`` of each pair of train and dev: of the question's place, the pair's, and the places of its
    positive and its negative. Return the choices. ``file``: name with room for the split."""
    counts = {}
    for split in training.TUNING_SPLITS:
        pairs = (
            (each.position, place, *pair)
            for each in selection.examples(split)
            for place, pair in enumerate(each.pairs())
        )
        counts[split] = write_texts(folder, file.format(split), starmap(line, pairs))
    return {"triples": counts, "triple_rule": PAIRS, "fine_tuning": selection.facts()}
