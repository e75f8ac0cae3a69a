"""The way of the data, one entry a stage: what it reads, what it makes, which settings and models it depends on.

A stage is a function from tables to tables. It knows nothing of Prefect, paths or progress bars; :mod:`quit.pipeline` gives it its
tables, shard by shard, and keeps what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

import schemas
from quit.construct.convergence import rank_hints
from quit.construct.describe import describe
from quit.construct.label import judge_answers, label_passages, read_passages
from quit.construct.leakage import Finding, LeakItem, filter_leaks, find_leaks_of, overrides_by_hint
from quit.construct.passages import enumerate_passages
from quit.construct.probe import parametric, probe
from quit.construct.question_type import question_types
from quit.construct.split import split_questions
from quit.construct.update import LabelTables, decided, update_labels
from quit.models.factory import Models
from quit.settings import Settings

Tables = Mapping[str, pa.Table]


class Inputs(Mapping[str, pa.Table]):
    """A stage's inputs, each read when it is first asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], pa.Table], only: Callable[..., pa.Table]) -> None:
        self._names = tuple(names)
        self._read = read
        self._only = only
        self._made: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._read(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def only(
        self, name: str, question_ids: Sequence[str], columns: Sequence[str], reader: str | None = None
    ) -> pa.Table:
        """Return some columns of a few questions' rows of one input (of one ``reader``'s run of the stage that makes it)."""
        if name not in self._names:
            raise KeyError(name)
        return self._only(name, question_ids, columns, reader)


@dataclass(frozen=True)
class Context:
    """What a stage is given beside its shard: ``whole`` tables of the collection, settings, models, and its reader if it has one."""

    whole: Tables
    settings: Settings
    models: Models
    reader: str | None = None


@dataclass(frozen=True)
class Stage:
    """One stage.

    ``inputs``: tables it gets shard by shard; ``whole``: tables it gets whole. ``sections``: settings in its fingerprint.
    ``models``: models in its fingerprint (``reader``: its own, ``readers``: all, ``labelers``: the labelers' names). ``scope``:
    ``shard`` or ``collection`` (one task). ``per_reader``: it runs once a reader, so a new reader leaves the others' answers alone.
    ``overrides``: the kind of overrides it heeds; it gets those in force as the whole table ``overrides``. ``supersedes``: outputs
    that take the place of an earlier stage's. ``version`` rises whenever the same inputs would give other rows.
    """

    name: str
    number: int
    run: Callable[[Tables, Context], dict[str, pa.Table]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    whole: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    scope: Literal["shard", "collection"] = "shard"
    per_reader: bool = False
    overrides: str | None = None
    supersedes: tuple[str, ...] = ()
    version: int = 1
    doc: str = ""


def _filter(tables: Tables, context: Context) -> dict[str, pa.Table]:
    models, settings = context.models, context.settings
    return filter_leaks(
        tables["questions"],
        tables["hints"],
        models.equivalence,
        models.encoder,
        settings.leakage,
        settings.convergence.hints,
        context.whole["overrides"],
    )


def _rank(tables: Tables, context: Context) -> dict[str, pa.Table]:
    models, settings = context.models, context.settings
    return rank_hints(
        tables["questions"],
        tables["hints"],
        tables["usable_hints"],
        tables["candidates"],
        tables["scores"],
        models.convergence,
        lambda questions: question_types(questions, models.question_types, settings.question_type),
        lambda: models.candidate_pool(context.whole["questions"]),
        settings.convergence,
    )


def _describe(tables: Tables, context: Context) -> dict[str, pa.Table]:
    models, settings = context.models, context.settings
    return describe(
        tables["questions"],
        tables["ranked_hints"],
        models.question_types,
        models.encoder,
        settings.question_type,
        settings.difficulty,
    )


def _reader(name: str, context: Context):
    return context.models.reader(name, context.whole)


def _probe(tables: Tables, context: Context) -> dict[str, pa.Table]:
    readers = [_reader(reader.name, context) for reader in context.settings.readers]
    made = probe(
        tables["questions"], tables["descriptions"], readers, context.models.judge, context.settings.probe.repetitions
    )
    return {"probe_answers": made}


def _split(tables: Tables, context: Context) -> dict[str, pa.Table]:
    return split_questions(tables["questions"], parametric(tables["probe_answers"]), context.settings.split)


def _enumerate(tables: Tables, context: Context) -> dict[str, pa.Table]:
    return {"passages": enumerate_passages(tables["splits"].column("question_id"), context.settings.convergence.hints)}


def _read(tables: Tables, context: Context) -> dict[str, pa.Table]:
    assert context.reader is not None
    reader = _reader(context.reader, context)
    made = read_passages(
        tables["questions"], tables["ranked_hints"], tables["descriptions"], tables["passages"], reader
    )
    return {"answers": made}


def _judge(tables: Tables, context: Context) -> dict[str, pa.Table]:
    models, asked = context.models, (tables["questions"], tables["answers"])
    second = models.second_judge
    return {
        "verdicts": judge_answers(*asked, models.judge),
        "second_verdicts": judge_answers(*asked, second) if second else schemas.table("second_verdicts").from_rows([]),
    }


def _label(tables: Tables, context: Context) -> dict[str, pa.Table]:
    answers = tables["answers"]
    named = {
        labeler.name: answers.filter(pc.equal(answers.column("reader"), labeler.name))
        for labeler in context.settings.labelers
    }
    return label_passages(tables["questions"], tables["passages"], named, tables["verdicts"])


def _update(tables: Tables, context: Context) -> dict[str, pa.Table]:
    assert isinstance(tables, Inputs)
    settings = context.settings
    whole = LabelTables(
        *(tables[name] for name in ("questions", "ranked_hints", "splits", "verdicts", "labels", "valid_answers"))
    )
    said = overrides_by_hint(context.whole["overrides"])
    found = decided(context.whole["decisions"], whole, settings.review)
    answers = {
        labeler.name: tables.only("answers", found.touched, ["question_id", "answer"], labeler.name)
        for labeler in settings.labelers
    }

    def leaks(items: Sequence[LeakItem]) -> list[list[list[Finding]]]:
        models = context.models  # loaded only if there is something to check
        asked = [replace(item, overrides=[said.get(hint, []) for hint in item.hint_ids]) for item in items]
        return find_leaks_of(asked, models.equivalence, models.encoder, settings.leakage)

    return update_labels(whole, answers, found, leaks)


_COLLECTION = ("questions", "candidates", "ranked_hints", "descriptions")
"""Tables from which a reader may draw what it can answer."""


def _collect(tables: Tables, context: Context) -> dict[str, pa.Table]:
    raise NotImplementedError("collect reads files, not tables: quit.pipeline calls it with its sources")


STAGES: tuple[Stage, ...] = (
    Stage(
        "collect",
        1,
        _collect,
        inputs=(),
        outputs=("questions", "origins", "hints", "candidates", "scores", "rejects"),
        sections=("collect", "convergence.hints"),
        scope="collection",
        doc="Read the sources, repair and pool their records.",
    ),
    Stage(
        "filter",
        2,
        _filter,
        inputs=("questions", "hints"),
        outputs=("leak_findings", "usable_hints", "rejects"),
        sections=("leakage", "convergence.hints"),
        models=("leak_rules", "equivalence", "encoder"),
        overrides="leak",
        version=3,
        doc="Discard questions whose hints give the answer away.",
    ),
    Stage(
        "rank",
        3,
        _rank,
        inputs=("questions", "hints", "usable_hints", "candidates", "scores"),
        whole=("questions",),
        outputs=("ranked_hints", "drawn_candidates", "rejects"),
        sections=("convergence", "question_type"),
        models=("convergence", "candidates", "question_types", "equivalence", "encoder"),
        version=2,
        doc="Order hints by convergence and keep five.",
    ),
    Stage(
        "describe",
        4,
        _describe,
        inputs=("questions", "ranked_hints"),
        outputs=("descriptions", "rejects"),
        sections=("question_type", "difficulty"),
        models=("question_types", "difficulty", "encoder"),
        scope="collection",
        version=2,
        doc="Question type and difficulty.",
    ),
    Stage(
        "probe",
        5,
        _probe,
        inputs=("questions", "descriptions"),
        whole=_COLLECTION,
        outputs=("probe_answers",),
        sections=("probe",),
        models=("readers", "judge"),
        doc="Ask every reader the question alone.",
    ),
    Stage(
        "split",
        6,
        _split,
        inputs=("questions", "probe_answers"),
        outputs=("splits", "rejects"),
        sections=("split",),
        scope="collection",
        version=2,
        doc="Draw train, dev and test.",
    ),
    Stage(
        "enumerate",
        7,
        _enumerate,
        inputs=("splits",),
        outputs=("passages",),
        sections=("convergence.hints",),
        doc="List the 325 ordered selections of five hints.",
    ),
    Stage(
        "read",
        8,
        _read,
        inputs=("questions", "ranked_hints", "descriptions", "passages"),
        whole=_COLLECTION,
        outputs=("answers",),
        sections=("labels",),
        models=("reader",),
        per_reader=True,
        doc="Each reader answers from every passage.",
    ),
    Stage(
        "judge",
        9,
        _judge,
        inputs=("questions", "answers"),
        outputs=("verdicts", "second_verdicts"),
        sections=("judge.name",),
        models=("judge",),
        doc="One verdict on each distinct answer.",
    ),
    Stage(
        "label",
        10,
        _label,
        inputs=("questions", "passages", "answers", "verdicts"),
        outputs=("labels", "valid_answers"),
        models=("labelers",),
        doc="Label each passage 2 or 1.",
    ),
    Stage(
        "update",
        11,
        _update,
        inputs=("questions", "ranked_hints", "splits", "answers", "verdicts", "labels", "valid_answers"),
        whole=("decisions",),
        outputs=("changes", "labels", "valid_answers", "verdicts", "splits", "leak_findings", "rejects"),
        supersedes=("labels", "valid_answers", "verdicts", "splits"),
        sections=("review.splits", "review.removing_flags", "leakage"),
        models=("leak_rules", "equivalence", "encoder", "labelers"),
        overrides="leak",
        scope="collection",
        doc="Apply people's verdicts to labels and valid answers.",
    ),
)
"""The stages in pipeline order. The last one runs only where reviews are applied (``quit review apply``)."""
