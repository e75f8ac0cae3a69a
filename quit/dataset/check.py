"""Whether a release's tables are what their contracts say (:class:`quit.contracts.TableContract`): keys, names,
references, required rows, columns that follow from others. Row by row, some questions at a time.

Conditions in contracts are DuckDB's. Beside the tables (``answers`` and ``distinct_answers`` of all readers together,
``file``: that of their file) they see

- ``this``: the table whose row it is; ``getvariable`` of ``hints`` (that make a question's passages), ``medium_from``
  and ``hard_from``;
- ``answers``: one row for passages with the same reply, ``passages`` of which the reader was asked about;
- ``distinct_answers`` also has ``passages``, ``labels`` (whether a labeler gave it) and ``first_row`` (in its file);
- ``readers`` (reader, producer) and ``permutations`` (permutation, subset, hints);
- ``gold``: gold answers (question_id, answer, answer_key) that people did not remove;
- ``judged``: answers (question_id, answer_key) that have a verdict, or need none;
- ``right_labelers``: question_id, permutation, and labelers whose answer is valid, where there are any;
- ``hint_roles_again``, ``question_roles_again``: roles that follow from ``labels``;
- ``answer_key_of(answer)``, ``key_of(question)``, ``draw_of(content_key)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit.common.columns import is_in, one_array, plain, positions_in
from quit.common.ids import content_key, draw
from quit.contracts import TableContract
from quit.dataset.files import HISTORY, TABLES, TableFiles, contract
from quit.dataset.release import ReaderInfo
from quit.settings import Settings
from quit.stages.labelling.answers import matching_rows
from quit.stages.labelling.passages import permutation_table
from quit.stages.roles import roles_of
from quit.text.answers import answer_key

GATES = SCHEMA, PASSAGES, UNJUDGED, RECOMPUTED = "schema", "missing-passage", "unjudged-answer", "label-mismatch"
"""What faults fail; all of them where the columns are others."""
_VIEWS = """
CREATE TEMP TABLE distinct_answers AS SELECT d.*, coalesce(passages, 0) AS passages, first_row FROM replies AS d
    LEFT JOIN (SELECT question_id, file, number, sum(passages) AS passages, min(first_row) AS first_row FROM answers
    GROUP BY ALL) USING (question_id, file, number);
CREATE TEMP TABLE gold AS SELECT question_id, answer, answer_key_of(answer) AS answer_key FROM (SELECT DISTINCT
    question_id, unnest(answers) AS answer FROM questions) WHERE (question_id, answer) NOT IN (SELECT (question_id,
    answer) FROM changes WHERE change = 'answer_removed');
CREATE TEMP VIEW judged AS SELECT question_id, answer_key FROM verdicts WHERE correct IS NOT NULL UNION ALL SELECT
    question_id, answer_key FROM distinct_answers WHERE passages = 0 OR answer = 'NO ANSWER';
"""


@dataclass(frozen=True)
class Fault:
    """A row that is not what its table's contract says; ``gate``: what it fails."""

    gate: str
    table: str
    row: str
    rule: str

    def __str__(self) -> str:
        return f"{self.table}: {self.row}: {self.rule}"


def faults(files: TableFiles, readers: Sequence[ReaderInfo], settings: Settings) -> Iterator[Fault]:
    """Yield what is wrong in a release's tables. ``settings``: ``convergence.hints``, ``difficulty``,
    ``split.seed`` and ``release.memory_mb`` count.

    Raises ``InputError`` for a file that cannot be read.
    """
    others = [(name, "columns", text) for name in files.parts for text in _other_columns(files, name)]
    yield from (Fault(gate, *other) for other in others for gate in GATES)
    if others:
        return
    for chunk in files.chunks():
        yield from _Chunk(chunk, readers, settings).faults()
    for name in files.parts if files.ids is None else ():
        if name not in HISTORY:
            yield from _foreign(files, name)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _foreign(files: TableFiles, name: str) -> Iterator[Fault]:
    """Yield the rows of questions that ``splits`` lacks."""
    ids = pa.chunked_array([files.read("splits", ["question_id"])["question_id"]])
    for rows in files.batches(name, [*dict.fromkeys((*contract(name).key, "question_id"))]):
        for row in rows.filter(pc.invert(is_in(rows["question_id"], ids))).to_pylist():
            yield Fault(SCHEMA, name, " / ".join(map(str, row.values())), "the question is not in splits")


def _other_columns(files: TableFiles, name: str) -> Iterator[str]:
    schema = files.schema(name)
    for have in map(pq.read_schema, files.parts[name]):
        if not have.equals(schema):
            wrong = [f.name for f in schema if f.name not in have.names or not have.field(f.name).equals(f)]
            extra = [column for column in have.names if column not in schema.names]
            yield f"not those of the table ({', '.join(wrong + extra) or 'their order'})"


class _Chunk:
    """The tables of some questions, as conditions see them."""

    def __init__(self, files: TableFiles, readers: Sequence[ReaderInfo], settings: Settings) -> None:
        self.files, self.readers = files, readers
        self.permutations = permutation_table(settings.convergence.hints)
        self.ids = plain(files.read("splits", ["question_id"])["question_id"])
        self.sql = duckdb.connect(config={"memory_limit": f"{settings.release.memory_mb}MB"})
        self.sql.execute("SET scalar_subquery_error_on_multiple_rows = false")
        bounds = {"medium_from": settings.difficulty.medium_from, "hard_from": settings.difficulty.hard_from}
        for name, value in ({"hints": self.permutations.n} | bounds).items():
            self.sql.execute(f"SET VARIABLE {name} = {value}")
        self.sql.create_function("answer_key_of", answer_key, ["VARCHAR"], "VARCHAR")
        self.sql.create_function("key_of", content_key, ["VARCHAR"], "VARCHAR")
        self.sql.create_function("draw_of", lambda key: draw(key, settings.split.seed), ["VARCHAR"], "DOUBLE")

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong with these questions' rows."""
        yield from self._load()
        for table in map(contract, (*TABLES, "answers", "distinct_answers")):
            for gate, rule, query in self._rules(table):
                for row in self.sql.execute(query).fetchall():
                    size = len(row) - rule.count("{")
                    key = " / ".join(str(value) for value in row[:size] if value is not None)
                    yield Fault(gate, table.name, key, rule.format(*row[size:]))

    def _rules(self, table: TableContract) -> Iterator[tuple[str, str, str]]:
        """Yield a table's rules: gate, what a fault says (with the columns after the key), and the query of faults."""
        key, name = _quoted(table.key or ("stage",)), _quoted([table.name])
        if table.key and not table.passages:
            query = f"SELECT {key}, count(*) FROM {name} GROUP BY ALL HAVING count(*) > 1"
            yield SCHEMA, f"{{}} rows with the key {', '.join(table.key)}", query
        for column in table.columns:
            if column.values:
                own = _quoted([column.name])
                query = f"SELECT {key}, {own} FROM {name} WHERE {own} NOT IN {column.values}"
                yield SCHEMA, f"{column.name} is {{!r}}", query
        for each in table.references:
            columns, other = _quoted(each.columns), _quoted([each.table])
            not_null = " AND ".join(f'"{column}" IS NOT NULL' for column in each.columns)
            query = f"SELECT {key} FROM {name} ANTI JOIN {other} USING ({columns}) WHERE {not_null}"
            yield each.gate, f"{each.table} has no row with this {', '.join(each.columns)}", query
        for each in table.required:
            columns, other = _quoted(each.columns), _quoted([each.table])
            yield each.gate, "it is missing", f"SELECT {columns} FROM {other} ANTI JOIN {name} USING ({columns})"
        for derived, expected in table.follows.items():
            not_null = f"AND {derived} IS NOT NULL AND expected IS NOT NULL" if self.files.imported else ""
            query = f"SELECT {key}, {derived}, expected FROM (SELECT *, {expected} AS expected FROM {name} AS this)"
            query += f" WHERE {derived} IS DISTINCT FROM expected {not_null}"
            yield RECOMPUTED, f"{derived} is {{!r}}, expected {{!r}}", query

    def _load(self) -> Iterator[Fault]:
        """Give DuckDB the tables; yield what is wrong with the passages that have rows."""
        tables, one = {name: self.files.read(name, encoded=True) for name in TABLES}, self.permutations
        tables["changes"] = tables["changes"].filter(is_in(tables["changes"]["question_id"], self.ids))
        bits, labelers = (
            np.zeros(len(self.ids) * len(one) + 1, np.int64),
            list[str](),
        )  # the last: of what is no passage
        answers, replies = list[pa.Table](), list[pa.Table]()
        for info in self.readers:
            rows, distinct = (
                self.files.read(f"{name}/{info.name}", encoded=True) for name in ("answers", "distinct_answers")
            )
            cells, is_labeler = self._cells(rows), info.role == "labeler"
            yield from self._misplaced(f"answers/{info.name}", rows, cells)
            if is_labeler:
                bits[cells] |= self._right(rows, distinct, tables["valid_answers"]) << len(labelers)
                labelers.append(info.name)
            for table, pieces in ((_grouped(rows), answers), (distinct, replies)):
                pieces.append(
                    table.append_column("file", pa.repeat(info.name, len(table))).append_column(
                        "labels", pa.repeat(is_labeler, len(table))
                    )
                )
        labels = tables["labels"]
        cells = self._cells(labels)
        yield from self._misplaced("passages", tables["passages"], self._cells(tables["passages"]))
        yield from self._misplaced("labels", labels, cells)
        sets = [
            [name for place, name in enumerate(labelers) if number >> place & 1] for number in range(1 << len(labelers))
        ]
        tables["labels"] = labels.append_column(
            "right_labelers", pa.array(sets, labels.schema.field("labelers").type).take(pa.array(bits[cells]))
        )
        tables |= self._roles(tables, cells)
        tables["permutations"] = pa.table({"permutation": one.permutation, "subset": one.subset, "hints": one.hints})
        tables |= {"answers": pa.concat_tables(answers), "replies": pa.concat_tables(replies)}
        for name, table in tables.items():
            self.sql.register(name, table)
        self.sql.execute(_VIEWS)

    def _cells(self, rows: pa.Table) -> np.ndarray:
        """Return each row's passage among all of these questions, -1 for what is none."""
        passage = positions_in(rows["permutation"], self.permutations.permutation)
        return np.where(passage < 0, -1, positions_in(rows["question_id"], self.ids) * len(self.permutations) + passage)

    def _misplaced(self, name: str, rows: pa.Table, cells: np.ndarray) -> Iterator[Fault]:
        """Yield the questions that do not have every passage once, in depth-first order."""
        count = len(self.permutations)
        if np.array_equal(cells, np.arange(len(self.ids) * count)):
            return
        question = positions_in(rows["question_id"], self.ids)
        order = np.argsort(question, kind="stable")
        ends = np.searchsorted(question[order], np.arange(len(self.ids) + 1))
        for place, (first, end) in enumerate(pairwise(ends)):
            own = order[first:end]
            if (
                len(own) != count
                or own[-1] - own[0] != count - 1
                or (cells[own] != place * count + np.arange(count)).any()
            ):
                what = f"{len(own)} rows, expected its {count} passages, each once, in depth-first order"
                yield Fault(PASSAGES, name, self.ids[place].as_py(), what)

    def _right(self, rows: pa.Table, distinct: pa.Table, valid: pa.Table) -> np.ndarray:
        """Return which rows of ``answers`` have a valid answer: int64, 1 or 0."""
        accepted = distinct.filter(pa.array(matching_rows(distinct, valid, "answer") >= 0))
        width = 1 + max(pc.max(table["number"]).as_py() or 0 for table in (rows, distinct))
        flags = np.zeros(width * len(self.ids), np.int64)
        flags[positions_in(accepted["question_id"], self.ids) * width + accepted["number"].to_numpy()] = 1
        return flags[positions_in(rows["question_id"], self.ids) * width + rows["number"].to_numpy()]

    def _roles(self, tables: Mapping[str, pa.Table], cells: np.ndarray) -> dict[str, pa.Table]:
        """Return what roles follow from the labels."""
        n, question_roles, ids = self.permutations.n, tables["question_roles"], self.ids
        right = np.zeros(len(ids) * len(self.permutations) + 1, bool)
        right[cells] = tables["labels"]["label"].to_numpy() == 2
        places = pc.index_in(ids, plain(question_roles["question_id"]))
        without = question_roles["without_hints"].take(places)
        roles = roles_of(
            right[:-1].reshape(len(ids), len(self.permutations)), pc.fill_null(without, np.nan).to_numpy(), n
        )
        columns = {name: pa.array(values.ravel(), mask=~np.isfinite(values.ravel())) for name, values in roles.items()}
        keys = {"question_id": ids}, {"question_id": np.repeat(ids, n), "rank": np.tile(np.arange(n), len(ids))}
        return {
            f"{name}_again": pa.table(key | {column: columns[column] for column in contract(name).follows})
            for name, key in zip(("question_roles", "hint_roles"), keys, strict=True)
        }


def _grouped(rows: pa.Table) -> pa.Table:
    """Return the first of the rows of ``answers`` that agree in all but the passage, with ``first_row`` and
    ``passages``: how many, where the reader was asked."""
    codes = []
    for name in ("question_id", "reader", "producer", "ended"):
        column = one_array(rows[name])
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes.append(pc.fill_null(column.indices, -1).to_numpy() + 1)
    codes += [rows["number"].to_numpy() - (pc.min(rows["number"]).as_py() or 0), rows["asked"].to_numpy().astype(int)]
    cells = np.ravel_multi_index(codes, [int(code.max(initial=0)) + 1 for code in codes])
    _, first, counts = np.unique(cells, return_index=True, return_counts=True)
    groups = rows.take(pa.array(first))
    passages = counts * groups["asked"].to_numpy()
    return groups.append_column("first_row", pa.array(first)).append_column("passages", pa.array(passages))
