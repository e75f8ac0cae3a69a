"""Whether a release's tables are what their contracts say (:class:`quit.contracts.TableContract`): keys, names,
references, required rows, columns that follow from others. Row by row, some questions at a time.

:class:`_Chunk` gives DuckDB what conditions in contracts name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.columns import first_matches, is_in, one_array, plain, positions_in
from quit.common.ids import content_key, draw
from quit.common.parquet import KEYS
from quit.common.rows import limited_database, tuples
from quit.contracts import TableContract
from quit.dataset.files import HISTORY, TABLES, TableFiles, contract
from quit.dataset.release import ReaderInfo
from quit.errors import InputError
from quit.models.protocols import NO_ANSWER
from quit.settings import Settings
from quit.settings.construction import MAX_PASSAGES
from quit.stages.labelling.design import Subset, design_passages, hints_of
from quit.stages.labelling.passages import PassageRows, permutation_name, subset_of
from quit.stages.roles import roles_of
from quit.text.answers import answer_key

GATES = SCHEMA, PASSAGES, UNJUDGED, RECOMPUTED = "schema", "missing-passage", "unjudged-answer", "label-mismatch"
"""What faults fail; all of them where the columns are others."""
_VIEWS = """
CREATE TEMP TABLE gold AS SELECT question_id, answer, answer_key_of(answer) AS answer_key FROM (SELECT DISTINCT
    question_id, unnest(answers) AS answer FROM questions) WHERE (question_id, answer) NOT IN (SELECT (question_id,
    answer) FROM changes WHERE change = 'answer_removed');
CREATE TEMP VIEW judged AS SELECT question_id, answer_key FROM verdicts WHERE correct IS NOT NULL;
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


def faults(
    files: TableFiles, readers: Sequence[ReaderInfo], settings: Settings, *, own_keys: bool = False
) -> Iterator[Fault]:
    """Yield what is wrong in a release's tables. ``settings``: ``passages``, ``difficulty``,
    ``split.seed`` and ``release.memory_mb`` count. ``own_keys``: answers have the keys that the tables give them, made
    by another rule than this program's.

    Raises its owner's error for a file that cannot be read.
    """
    others = [(name, "columns", text) for name in files.parts for text in _other_columns(files, name)]
    yield from (Fault(gate, *other) for other in others for gate in GATES)
    if others:
        return
    for chunk in files.chunks():
        yield from _Chunk(chunk, readers, settings, own_keys).faults()
    for name in files.parts if files.ids is None else ():
        if name not in HISTORY:
            yield from _foreign(files, name)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _joined(key: Sequence[object]) -> str:
    return " / ".join(str(value) for value in key if value is not None)


def _foreign(files: TableFiles, name: str) -> Iterator[Fault]:
    """Yield the rows of questions that ``splits`` lacks."""
    ids = pa.chunked_array([files.read("splits", ["question_id"])["question_id"]])
    for rows in files.batches(name, [*dict.fromkeys((*contract(name).key, "question_id"))]):
        for row in rows.filter(pc.invert(is_in(rows["question_id"], ids))).to_pylist():
            yield Fault(SCHEMA, name, _joined([*row.values()]), "the question is not in splits")


def _other_columns(files: TableFiles, name: str) -> Iterator[str]:
    schema = files.schema(name)
    for have in (files.metadata(path).schema.to_arrow_schema() for path in files.parts[name]):
        if not have.equals(schema):
            wrong = [f.name for f in schema if f.name not in have.names or not have.field(f.name).equals(f)]
            extra = [column for column in have.names if column not in schema.names]
            yield f"not those of the table ({', '.join(wrong + extra) or 'their order'})"


class _Chunk:
    """The tables of some questions, as conditions see them."""

    def __init__(
        self, files: TableFiles, readers: Sequence[ReaderInfo], settings: Settings, own_keys: bool = False
    ) -> None:
        self.files, self.readers = files, readers
        self.own_keys, self.keys = own_keys, dict[str, str]()
        self.design = settings.passages
        self.ids = plain(files.read("splits", ["question_id"])["question_id"])
        self.sql = limited_database(settings.release.memory_mb)
        self.sql.execute("SET scalar_subquery_error_on_multiple_rows = false")
        for name, value in {"hints": self.design.most_hints, "given": self.design.is_given}.items():
            self.sql.execute(f"SET VARIABLE {name} = {value}")
        key_of = (lambda answer: self.keys.get(answer)) if own_keys else answer_key
        self.sql.create_function("answer_key_of", key_of, ["VARCHAR"], "VARCHAR")
        self.sql.create_function("key_of", content_key, ["VARCHAR"], "VARCHAR")
        self.sql.create_function("draw_of", lambda key: draw(key, settings.split.seed), ["VARCHAR"], "DOUBLE")

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong with these questions' rows."""
        yield from self._load()
        for table in map(contract, (*TABLES, "answers", "distinct_answers")):
            for gate, rule, query in self._rules(table):
                for row in self.sql.execute(query).fetchall():
                    size = len(row) - rule.count("{")
                    yield Fault(gate, table.name, _joined(row[:size]), rule.format(*row[size:]))
            yield from self._values(table)

    def _rules(self, table: TableContract) -> Iterator[tuple[str, str, str]]:
        """Yield a table's rules on whole rows: gate, what a fault says (with the columns after the key), and the query
        of faults."""
        key, name = _quoted(table.key or ("stage",)), _quoted([table.name])
        if table.key and not table.passages:
            query = f"SELECT {key}, count(*) FROM {name} GROUP BY ALL HAVING count(*) > 1"
            yield SCHEMA, f"{{}} rows with the key {', '.join(table.key)}", query
        for each in table.references:
            columns, other = _quoted(each.columns), _quoted([each.table])
            rows = " AND ".join([each.rows, *(f'"{column}" IS NOT NULL' for column in each.columns)])
            query = f"SELECT {key} FROM {name} ANTI JOIN {other} USING ({columns}) WHERE {rows}"
            yield each.gate, f"{each.table} has no row with this {', '.join(each.columns)}", query
        for each in table.required:
            columns, other = _quoted(each.columns), _quoted([each.table])
            yield each.gate, "it is missing", f"SELECT {columns} FROM {other} ANTI JOIN {name} USING ({columns})"

    def _values(self, table: TableContract) -> Iterator[Fault]:
        """Yield the rows of a table whose columns are not names of their sets, or not what they follow from."""
        both_known = ' AND "{0}" IS NOT NULL AND "expected {0}" IS NOT NULL' if self.files.imported else ""
        rules = [
            (SCHEMA, column.name, f'"{column.name}" NOT IN ({", ".join(map(repr, column.values))})', "NULL")
            for column in table.columns
            if column.values
        ]
        for name in table.follows:
            condition = f'"{name}" IS DISTINCT FROM "expected {name}"{both_known.format(name)}'
            rules.append((RECOMPUTED, name, condition, f'"expected {name}"'))
        if not rules:
            return
        columns = ", ".join(f'{condition}, "{name}", {expected}' for _, name, condition, expected in rules)
        source = ", ".join(["*", *(f'{expected} AS "expected {name}"' for name, expected in table.follows.items())])
        source = f"SELECT {source} FROM {_quoted([table.name])} AS this"
        key, conditions = table.key or ("stage",), " OR ".join(condition for _, _, condition, _ in rules)
        query = f"SELECT {_quoted(key)}, {columns} FROM ({source}) WHERE {conditions}"
        for row in self.sql.execute(query).fetchall():
            for place, (gate, name, _, _) in enumerate(rules):
                wrong, value, expected = row[len(key) + 3 * place :][:3]
                if wrong:
                    rule = f"{name} is {value!r}" + (f", expected {expected!r}" if gate == RECOMPUTED else "")
                    yield Fault(gate, table.name, _joined(row[: len(key)]), rule)

    def _load(self) -> Iterator[Fault]:
        """Give DuckDB the tables; yield what is wrong with the passages that have rows."""
        tables = {name: self._read(name) for name in TABLES if not contract(name).passages}
        tables["changes"] = tables["changes"].filter(is_in(tables["changes"]["question_id"], self.ids))
        self.rows = self._expected(tables["hints"], tables["ranked_hints"])
        pieces: dict[str, list[pa.Table]] = {"passages": [], "answers": [], "labels": [], "distinct_answers": []}
        bits = np.zeros(len(self.rows) + len(self.ids), np.int64)  # labelers whose answer is valid, by place
        labelers = [info.name for info in self.readers if info.role == "labeler"]
        for info in self.readers:
            flag = 1 << labelers.index(info.name) if info.name in labelers else 0
            yield from self._load_answers(info, tables["valid_answers"], flag, bits, pieces)
        cells, right = list[np.ndarray](), np.zeros(len(bits), bool)
        for rows, question, _ in self._passages("labels", cells):
            right[cells[-1]] = rows["label"].to_numpy() == 2
            rows = rows.append_column("bits", pa.array(bits[cells[-1]]))
            pieces["labels"].append(_grouped(rows, question, ("bits", "label", "labelers"))[0])
        yield from self._misplaced("labels", cells)
        tables["changes"] = self._with_labels(tables["changes"], right)
        cells = []
        for rows, _, passage in self._passages("passages", cells):
            pieces["passages"].append(_grouped(rows, passage, ("subset", "hints"))[0])
        yield from self._misplaced("passages", cells)
        if empty := [name for name, parts in pieces.items() if not parts]:
            raise InputError(f"The table {empty[0]!r} holds no row: there is no dataset.")
        tables |= {name: pa.concat_tables(parts).unify_dictionaries() for name, parts in pieces.items()}
        sets = [[name for place, name in enumerate(labelers) if row >> place & 1] for row in range(1 << len(labelers))]
        labelers_again = pa.array(sets, pa.list_(pa.string())).take(one_array(tables["labels"]["bits"]))
        tables["labels"] = tables["labels"].append_column("right_labelers", labelers_again)
        tables |= self._roles(tables["question_roles"], right[: len(self.rows)])
        columns = ("permutation", "subset", "hints")
        tables["permutations"] = pa.table({name: getattr(self.rows.table, name) for name in columns})
        for name, table in tables.items():
            if self.own_keys and "answer_key" in table.schema.names:
                self.keys |= zip(table["answer"].to_pylist(), table["answer_key"].to_pylist(), strict=True)
            self.sql.register(name, table)
        self.sql.execute(_VIEWS)

    def _load_answers(
        self,
        info: ReaderInfo,
        valid_answers: pa.Table,
        flag: int,
        bits: np.ndarray,
        pieces: Mapping[str, list[pa.Table]],
    ) -> Iterator[Fault]:
        """Add a reader's rows to ``pieces``, and ``flag`` to the bits of the passages that it answers validly; yield
        what is wrong with their order."""
        replies = _Replies(self._read(f"distinct_answers/{info.name}"), self.ids)
        valid = first_matches(replies.distinct, valid_answers, ("question_id", "answer")) >= 0
        flags = np.append(valid, False).astype(np.int64) * flag
        cells: list[np.ndarray] = []
        for rows, question, _ in self._passages(f"answers/{info.name}", cells):
            slots = replies.slots(question, rows["number"].to_numpy())
            if flag:
                bits[cells[-1]] |= flags[replies.rows[slots]]
            pieces["answers"].append(_of_reader(info, replies.grouped(rows, slots)))
        yield from self._misplaced(f"answers/{info.name}", cells)
        pieces["distinct_answers"].append(_of_reader(info, replies.counted()))

    def _with_labels(self, changes: pa.Table, right: np.ndarray) -> pa.Table:
        """Return changes with the labels of their passages, ``label``; ``right``: whether each passage's is 2."""
        cells, _, _ = self._places(changes)
        labels = 1 + right[cells].astype(np.int8)
        return changes.append_column("label", pa.array(labels, mask=cells >= len(self.rows)))

    def _expected(self, hints: pa.Table, ranked_hints: pa.Table) -> PassageRows:
        """Return the passages that the design gives these questions. Sets of hints that cosines choose are those that
        the table has: no model is asked."""
        if self.design.is_full:
            return PassageRows.full(len(self.ids), self.design.most_hints)
        question_hints, table_sets = hints_of(self.ids, hints, ranked_hints), dict[str, set[str]]()
        if self.design.extremes and "cosine" in self.design.by:
            for rows in self.files.batches("passages", KEYS):
                for question_id, permutation in tuples(rows, *KEYS):
                    table_sets.setdefault(question_id, set()).add(subset_of(permutation))

        def by_cosine(question_id: str, sets: Sequence[Subset]) -> Iterator[int]:
            names = table_sets.get(question_id, ())
            return (place for place, ranks in enumerate(sets) if permutation_name(ranks) in names)

        possible = {
            name: rows for name, rows in question_hints.items() if 0 < self.design.count(len(rows)) <= MAX_PASSAGES
        }
        return PassageRows.of([design_passages(self.design, possible, by_cosine)], self.ids)

    def _places(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the place of each row's passage among those expected (behind them one per question, for what is no
        passage), its question, and its permutation's row."""
        places, question, passage = self.rows.places(rows, self.ids)
        return np.where(places < 0, len(self.rows) + question, places), question, passage

    def _read(self, name: str) -> pa.Table:
        """Return a table with the first letter of each reply."""
        pieces = []
        for rows in self.files.batches(name, encoded=False):
            if (column := rows.schema.get_field_index("raw")) >= 0:
                rows = rows.set_column(column, rows.field(column), pc.utf8_slice_codeunits(rows["raw"], 0, 1))
            pieces.append(rows)
        return pa.concat_tables([self.files.schema(name).empty_table(), *pieces])

    def _passages(self, name: str, cells: list[np.ndarray]) -> Iterator[tuple[pa.Table, np.ndarray, np.ndarray]]:
        """Yield a table of passages, some rows at a time, with the question and the permutation of each row; add their
        places (:meth:`_places`) to ``cells``."""
        for rows in self.files.batches(name):
            places, question, passage = self._places(rows)
            cells.append(places)
            yield rows, question, passage

    def _misplaced(self, name: str, pieces: Sequence[np.ndarray]) -> Iterator[Fault]:
        """Yield the questions that do not have every passage once, in depth-first order."""
        cells, count = np.concatenate([np.zeros(0, np.int64), *pieces]), len(self.rows)
        if np.array_equal(cells, np.arange(count)):
            return
        question = np.append(self.rows.owner, np.arange(len(self.ids)))[cells]
        order = np.argsort(question, kind="stable")
        ends = np.searchsorted(question[order], np.arange(len(self.ids) + 1))
        for place, (first, end) in enumerate(pairwise(ends)):
            places, expected = order[first:end], np.arange(*self.rows.starts[place : place + 2])
            if not np.array_equal(cells[places], expected) or (np.diff(places) != 1).any():
                what = f"{len(places)} rows, expected its {len(expected)} passages, each once, in depth-first order"
                yield Fault(PASSAGES, name, self.ids[place].as_py(), what)

    def _roles(self, question_roles: pa.Table, right: np.ndarray) -> dict[str, pa.Table]:
        """Return what roles follow from the labels, nothing where the design has none; ``right``: whether each
        passage's is 2."""
        n, ids = self.design.most_hints, self.ids
        if not self.design.is_full:
            names = ("question_roles", "hint_roles")
            return {f"{name}_again": contract(name).schema.empty_table() for name in names}
        places = pc.index_in(ids, plain(question_roles["question_id"]))
        without = question_roles["without_hints"].take(places)
        roles = roles_of(right.reshape(len(ids), len(self.rows.table)), pc.fill_null(without, np.nan).to_numpy(), n)
        columns = {name: pa.array(values.ravel(), mask=~np.isfinite(values.ravel())) for name, values in roles.items()}
        keys = {"question_id": ids}, {"question_id": np.repeat(ids, n), "rank": np.tile(np.arange(n), len(ids))}
        return {
            f"{name}_again": pa.table(key | {column: columns[column] for column in contract(name).follows})
            for name, key in zip(("question_roles", "hint_roles"), keys, strict=True)
        }


class _Replies:
    """The distinct replies of a reader and the passages that have them. A reply's slot follows from question and
    number; the last slot of each question is for numbers that none of its replies has. ``rows``: the reply of a slot,
    -1 where there is none."""

    def __init__(self, distinct: pa.Table, ids: pa.Array) -> None:
        self.distinct, number = distinct, distinct["number"].to_numpy()
        self.question = positions_in(distinct["question_id"], ids)
        self.width = 2 + max(int(number.max(initial=0)), 0)
        self.rows = np.full(len(ids) * self.width, -1)
        self.rows[self.slots(self.question, number)[::-1]] = np.arange(len(distinct))[::-1]
        self.rows[self.width - 1 :: self.width] = -1
        has_text = (pc.not_equal(distinct["answer"], NO_ANSWER), pc.not_equal(distinct["raw"], ""))
        self.says = np.append(pc.fill_null(pc.or_kleene(*has_text), False).to_numpy(), False)
        self.first_row = np.full(len(distinct), np.iinfo(np.int64).max)
        self.passages, self.start = np.zeros(len(distinct), np.int64), 0

    def slots(self, question: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Return the slots of replies by question and number."""
        last = self.width - 1
        return question * self.width + np.where(number < 0, last, np.minimum(number, last))

    def grouped(self, rows: pa.Table, slots: np.ndarray) -> pa.Table:
        """Count the next rows of ``answers``; return one row for those that agree in all that conditions see."""
        names = ("reader", "producer", "ended", "asked")
        groups, first, counts = _grouped(rows, slots, names)
        reply = self.rows[slots[first]]
        np.minimum.at(self.first_row, reply[reply >= 0], self.start + first[reply >= 0])
        np.add.at(self.passages, reply[reply >= 0], (counts * groups["asked"].to_numpy())[reply >= 0])
        self.start += len(rows)
        groups = groups.append_column("says", pa.array(self.says[reply]))
        return _grouped(groups, np.where(reply < 0, 2 + slots[first], self.says[reply]), names)[0]

    def counted(self) -> pa.Table:
        """Return the replies with ``passages`` and ``place``: that of the first passage among those of the question's
        replies."""
        order = np.lexsort((self.first_row, self.question))
        question = self.question[order]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - np.searchsorted(question, question)
        columns = {"passages": pa.array(self.passages), "place": pa.array(place)}
        return pa.table({**dict(zip(self.distinct.schema.names, self.distinct.columns)), **columns})


def _of_reader(info: ReaderInfo, rows: pa.Table) -> pa.Table:
    """Return rows of a reader's file with ``file`` and ``labels``."""
    rows = rows.append_column("file", pa.repeat(info.name, len(rows)))
    return rows.append_column("labels", pa.repeat(info.role == "labeler", len(rows)))


def _grouped(rows: pa.Table, numbers: np.ndarray, names: Sequence[str]) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Return the first of the rows that agree in their number and some columns, with their places and how many there
    are."""
    columns = [numbers - numbers.min(), *(code for name in names if len(code := _codes(rows[name])))]
    sizes = [int(column.max()) + 1 for column in columns]
    cells = np.ravel_multi_index(columns, sizes)
    if math.prod(sizes) > 8 * len(cells):
        cells = np.unique(cells, return_inverse=True)[1]
    counts = np.bincount(cells)
    first_of_cell = np.zeros(len(counts), np.int64)
    first_of_cell[cells[::-1]] = np.arange(len(cells))[::-1]
    first = first_of_cell[counts > 0]
    return rows.take(pa.array(first)), first, counts[counts > 0]


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    """Return a number from 0 per distinct value, or nothing where all rows have one value."""
    array = one_array(column)
    if pa.types.is_list(array.type):
        array = pc.binary_join(array.cast(pa.list_(pa.string())), "\0")
    if pa.types.is_string(array.type):
        array = array.dictionary_encode()
    if not pa.types.is_dictionary(array.type):
        values = array.to_numpy(zero_copy_only=False).astype(np.int64)
        return values - values.min() if values.min() < values.max() else values[:0]
    codes = pc.fill_null(array.indices, -1).to_numpy() + 1
    return codes if len(array.dictionary) > 1 or array.null_count else codes[:0]
