"""Make a release of a dataset that was published as the paper's release JSON (``quit release import``).

Labels are the published ones: 2 if a labeler's answer is among the question's ``answers`` as written, else 1, which is
what the paper's scripts compute. They are compared with those of our rule, which compares keys of answers.
What the files do not hold is null and is named in the release; nothing of it is guessed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.checksums import file_checksum
from quit.common.columns import first_matches
from quit.common.ids import content_key, hint_id
from quit.common.rows import tuples
from quit.dataset.description import Content, Description, Source
from quit.dataset.files import TableFiles, imported_schema, names_of
from quit.dataset.writing import TableWriter
from quit.evaluate.labels import SPLITS
from quit.models.protocols import Encoder, JudgeItem, Verdict
from quit.release.freezing import Created, check_target, entry_of, facts_of, put, refuse_failed, table_path
from quit.release.gates import Subject, check, coverage
from quit.release.import_json import Published, ReleaseFiles
from quit.settings import parse
from quit.stages.judge import judge_answers
from quit.stages.label import labels_of
from quit.stages.labelling.answers import Answers, accepted_answers
from quit.stages.labelling.passages import enumerate_passages
from quit.stages.roles import role_tables
from quit.stages.stage import Tables
from quit.text.answers import answer_key
from quit.version import __version__

KIND = "release-json"
AT_ONCE = 128
"""Questions whose tables are made at a time: what is in memory."""
EXAMPLES = 20
"""Differing labels that the release names."""
UNKNOWN = (
    "which of a question's valid answers are gold",
    "question types and difficulty",
    "who or what produced convergence, answers and verdicts, with which prompts and settings",
    "convergence and origin of a hint, where it has none",
    "replies as the models wrote them",
    "verdicts on answers that only evaluation readers gave, unless they equal a valid answer",
    "which verdicts people gave",
    "leak findings, answers without hints, and what was left out",
)
"""What the files do not hold: null, or not there, in the tables."""
RULE = "2 if a labeler's answer is among the question's answers as written, else 1"
WAIVED = ("answer-in-passage", "question-on-two-sides", "unjudged-answer", "human-coverage")
"""Gates that say something of the published data: reported, never a reason to refuse it."""


@dataclass
class _Differences:
    """Passages whose published label is not that of our rule, over all blocks."""

    passages: int = 0
    found: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    def add(self, published: pa.Table, ours: pa.Table) -> None:
        self.passages += len(published)
        rows = np.flatnonzero(published["label"].to_numpy() != ours["label"].to_numpy())
        self.found += len(rows)
        for row in rows[: EXAMPLES - len(self.examples)].tolist():
            passage = {name: published[name][row].as_py() for name in ("question_id", "permutation")}
            labels = {"published": published["label"][row].as_py(), "ours": ours["label"][row].as_py()}
            self.examples.append({**passage, **labels, "labelers": ours["labelers"][row].as_py()})


class _AsPublished:
    """A judge that knows what labelers answered: where it is not among the published answers, it was judged wrong. What
    only evaluation readers answered was never judged."""

    name, identity = "published", "published"

    def __init__(self, labelers: Iterable[Answers]) -> None:
        self._given: set[tuple[str, str]] = set()
        for answers in labelers:
            self._given.update(tuples(answers.distinct, "question_id", "answer_key"))

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item; null where no labeler gave the answer."""
        judged_before = ((item.question_id, answer_key(item.candidate)) in self._given for item in items)
        return [Verdict(False if judged else None, None, "") for judged in judged_before]


def import_release(folder: Path, out: Path, name: str | None = None, encoder: Encoder | None = None) -> Created:
    """Make the release ``name`` (by default the last part of ``out``) in the folder ``out`` of the three files.

    ``encoder`` measures the semantic similarity. The files are read and the tables written a block at a time; gates and
    statistics take what they take of any release. Raises ``InputError`` for files that are not as expected (which file,
    question and field), and ``InputError`` or ``SettingsError`` for target and name as
    :func:`quit.release.create.create` does. Nothing is left then.
    """
    files, named = ReleaseFiles(Path(folder)), name or Path(out).name
    check_target(Path(out), named)
    return put(Path(out), lambda hidden: _write(hidden, files, named, encoder))


def _write(folder: Path, files: ReleaseFiles, name: str, encoder: Encoder | None) -> Description:
    differences = _Differences()
    rows = _write_tables(folder, files, differences)
    tables = TableFiles({table: [table_path(folder, table)] for table in rows}, imported=True)
    design = {"hints": files.permutations.n, "sizes": [*range(1, files.permutations.n + 1)]}
    settings = parse({"passages": design})
    reason = "The data are imported as they were published: this is reported, and nothing is repaired."
    results = check(Subject(tables, files.readers, settings), dict.fromkeys(WAIVED, reason))
    refuse_failed(results)
    sources: list[Source] = [
        {"name": KIND, "file": path.name, "checksum": file_checksum(path), "licence": None, "citation": None}
        for path in files.paths.values()
    ]
    content: Content = {
        "settings": {
            "passages": design,
            "split": {"near_duplicate": settings.split.near_duplicate},
            "review": {"splits": settings.review.splits},
            "release": {"human_coverage": settings.release.human_coverage},
        },
        "fingerprints": {},
        "sources": sources,
        "program_version": __version__,
        "tables": {table: entry_of(folder, table, count) for table, count in rows.items()},
        "readers": [asdict(info) for info in files.readers],
        "models": {},
        "prompts": {},
        "reviews": {"reviews": 0, "reviews_hash": None, "decisions_hash": None, "annotators": [], "settled": 0,
                    "open": 0, "coverage": coverage(tables, settings.review.splits)},
        "imported": {
            "labels": {"kept": "published", "rule": RULE, "passages": differences.passages,
                       "differences": differences.found, "examples": differences.examples},
            "subsets": files.subsets,
            "unread": dict(sorted(files.unread.items())),
            "repeated_answers": files.repeated,
            "unknown": list(UNKNOWN),
        },
    }  # fmt: skip
    return facts_of(name, content, tables, results, encoder)


def _write_tables(folder: Path, files: ReleaseFiles, differences: _Differences) -> dict[str, int]:
    """Write all tables, a block of questions at a time; return the rows of each."""
    ids: dict[str, list[str]] = {}
    writers: dict[str, TableWriter] = {}
    with ExitStack() as stack:

        def write(name: str, rows: pa.Table) -> None:
            if name not in writers:
                writers[name] = stack.enter_context(TableWriter(table_path(folder, name), imported_schema(name)))
            writers[name].write(rows)

        for split in SPLITS:
            ids[split] = []
            questions = files.questions(split)
            while block := list(islice(questions, AT_ONCE)):
                ids[split] += [question.question_id for question in block]
                for name, rows in _tables_of(block, f"{split}.json", files, differences).items():
                    write(name, rows)
        _ = files.permutations  # raises where there is no question
        write("splits", _splits(ids))
        names = names_of(info.name for info in files.readers)
        for name in names:
            if name not in writers:
                write(name, imported_schema(name).empty_table())
    return {name: writers[name].rows for name in names}


def _splits(ids: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return the table ``splits``: each split in the order of its file, and all by id where the files are."""
    pairs = ([(question_id, split) for question_id in question_ids] for split, question_ids in ids.items())
    rows = [dict(zip(("question_id", "split"), pair, strict=True)) for pair in heapq.merge(*pairs, key=itemgetter(0))]
    return pa.Table.from_pylist(rows, imported_schema("splits"))


def _tables_of(block: Sequence[Published], file: str, files: ReleaseFiles, differences: _Differences) -> Tables:
    """Return the rows that some questions have in every table except ``splits``."""
    passages = enumerate_passages([question.question_id for question in block], files.permutations)
    replies: dict[str, Tables] = {
        info.name: _numbered(block, passages, key, info.name)
        for key, info in zip(files.keys, files.readers, strict=True)
    }
    answers = {name: Answers.numbered(tables) for name, tables in replies.items()}
    labelers = {info.name: answers[info.name] for info in files.readers if info.role == "labeler"}
    small = _small_tables(block, file)
    valid = small["valid_answers"]
    verdicts = judge_answers(small["questions"], list(answers.values()), _AsPublished(labelers.values()))
    as_written = {
        name: first_matches(given.distinct, valid, ("question_id", "answer")) for name, given in labelers.items()
    }
    labels = labels_of(passages, labelers, [rows >= 0 for rows in as_written.values()])
    ours = labels_of(passages, labelers, [accepted_answers(given.distinct, verdicts) for given in labelers.values()])
    differences.add(labels, ours)
    counts = np.zeros(len(valid) + 1, dtype=np.int64)
    for name, rows in as_written.items():
        np.add.at(counts, rows, labelers[name].counts)  # others: the last place
    return {
        **small,
        "valid_answers": _with(valid, passages=pa.array(counts[:-1])),
        "passages": passages,
        "labels": labels,
        **role_tables(labels, small["ranked_hints"], files.permutations.n),
        "verdicts": _with(verdicts, basis=None, producer=None, raw=None),
        **{f"{name}/{reader}": rows for reader, tables in replies.items() for name, rows in tables.items()},
    }


def _numbered(block: Sequence[Published], passages: pa.Table, key: str, reader: str) -> Tables:
    """Return the tables ``answers`` and ``distinct_answers`` of a reader; what is not published is null."""
    replies = [question.answers[key] for question in block]
    texts = [text for each in replies for text in each.texts]
    columns: dict[str, dict[str, Any]] = {
        "answers": {
            **{name: passages[name] for name in ("question_id", "permutation")},
            "number": [number for each in replies for number in each.numbers],
            "asked": pa.repeat(True, len(passages)),
        },
        "distinct_answers": {
            "question_id": [question.question_id for question in block for _ in question.answers[key].texts],
            "number": [number for each in replies for number in range(len(each.texts))],
            "answer": texts,
            "answer_key": [answer_key(text) for text in texts],
        },
    }
    tables = {}
    for name, values in columns.items():
        schema, rows = imported_schema(name), len(values["number"])
        values["reader"] = pa.repeat(reader, rows)
        tables[name] = pa.table({field.name: values.get(field.name, pa.nulls(rows)) for field in schema}).cast(schema)
    return tables


def _with(table: pa.Table, **columns: pa.Array | None) -> pa.Table:
    """Return a table with other columns; None: unknown."""
    for name, values in columns.items():
        index, kind = table.schema.get_field_index(name), table.schema.field(name).type
        table = table.set_column(index, name, pa.nulls(len(table), kind) if values is None else values)
    return table


def _small_tables(block: Sequence[Published], file: str) -> Tables:
    """Return the rows of the tables that have a row per question, hint or valid answer."""
    rows: dict[str, list[dict[str, Any]]] = {
        "questions": [
            {"question_id": question.question_id, "question": question.question, "answers": question.valid_answers,
             "source": KIND, "content_key": content_key(question.question)}
            for question in block
        ],
        "hints": [
            {"hint_id": hint_id(question.question_id, rank), "question_id": question.question_id, "hint": hint.hint,
             "convergence": hint.convergence, "position": rank, "source": hint.origin, "file": file}
            for question in block
            for rank, hint in enumerate(question.hints)
        ],
        "valid_answers": [
            {"question_id": question.question_id, "answer": answer, "answer_key": answer_key(answer)}
            for question in block
            for answer in question.valid_answers
        ],
    }  # fmt: skip
    rows["ranked_hints"] = [{**row, "rank": row["position"], "selected": True} for row in rows["hints"]]
    rows["descriptions"] = [{"question_id": question.question_id} for question in block]
    return {name: pa.Table.from_pylist(rows[name], imported_schema(name)) for name in rows}
