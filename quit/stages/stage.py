"""A stage: a function from tables to tables that declares everything its output depends on.

A stage knows nothing of Prefect, paths or progress bars; :mod:`quit.engine.pipeline` gives it its inputs, shard by
shard, and keeps what it returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import pyarrow as pa

from quit.settings import Settings

if TYPE_CHECKING:
    from quit.models.factory import Models

Tables = Mapping[str, pa.Table]

OUTSIDE = ("sources", "decisions")
"""Inputs that no stage makes: records, and what people's reviews come to."""
ANSWER_POOL_TABLES = ("questions", "candidates", "ranked_hints", "descriptions")
"""Tables from which a reader may draw what it can answer."""


class LazyTable(Protocol):
    """An input of which a stage reads what it needs, by calling it."""

    def __call__(
        self, columns: Sequence[str], reader: str | None = None, question_ids: Sequence[str] | None = None
    ) -> pa.Table:
        """Return some columns of the shard's rows: of one reader's run of the stage that makes the table, of some
        questions, or of all. Question ids and permutations are dictionary-encoded."""


@dataclass(frozen=True)
class Context:
    """Everything a stage gets in addition to its inputs.

    ``whole``: the tables it declared as whole; ``overrides``: the overrides in force of the kind it declared;
    ``reader``: the name of its reader, where it runs once per reader; ``rejected``: (question id, content, key of the
    answer) of the answers that applied reviews reject of questions with that content.
    """

    whole: Tables
    settings: Settings
    models: Models
    reader: str | None = None
    overrides: pa.Table | None = None
    rejected: Set[tuple[str, str, str]] = frozenset()


@dataclass(eq=False)
class Declaration:
    """What a stage declares of its function: ``@stage("name", outputs=..., ...)`` makes a :class:`Stage` of one.

    Args:
        name: Name of the stage, and of its folder in a workspace.
        outputs: Tables it returns.
        whole: Tables it gets whole, in its context.
        sections: Settings that its output depends on.
        models: Models that its output depends on (``reader``: its own, ``labelers``: the labelers' names).
        before: What runs in the build before the function; what it returns is the function's argument after the
            context.
        after: What runs in the build after the function: it gets the function's tables after the context, and returns
            those of the stage.
        scope: ``shard``, or ``collection`` where one task does all questions.
        shard_factor: How many times ``run.shard_questions`` questions a shard has: over 1 where a question is little
            work.
        per_reader: Whether it runs once per reader, each with a folder for its tables.
        also: What its output depends on besides, of the settings and of its reader: parts of its fingerprint.
        contents: Setting of its sections that names a file or folder -> what stands for what that says.
        overrides: The kind of people's overrides that it applies.
        supersedes: Outputs that replace an earlier stage's: later stages read only these.
        version: Raise it whenever the same inputs would give other rows.
    """

    name: str
    outputs: tuple[str, ...]
    whole: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    before: Callable[..., Any] | None = None
    after: Callable[..., Tables] | None = None
    scope: Literal["shard", "collection"] = "shard"
    shard_factor: int = 1
    per_reader: bool = False
    also: Callable[[Settings, str | None], Sequence[Any]] = lambda settings, reader: ()
    contents: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    overrides: str | None = None
    supersedes: tuple[str, ...] = ()
    version: int = 1

    def __call__(self, function: Callable[..., Tables]) -> Stage:
        return Stage(**vars(self), function=function)


stage = Declaration


@dataclass(eq=False, kw_only=True)
class Stage(Declaration):
    """A declared stage.

    The names of its functions' parameters after the context are its inputs. An input is a table that earlier stages
    make, shard by shard (annotated ``LazyTable``: only the columns, readers and questions that the stage reads), or one
    of :data:`OUTSIDE`. An input with a default is optional: the stage gets it where an earlier run, also one of the
    same stage, makes it for this one (:meth:`quit.engine.plan.BuildPlan.producers_of`).

    ``function`` may run in another process, which has its arguments and nothing else; ``before`` and ``after`` run in
    the build. ``number``: its place in the pipeline, from 1: :func:`number_stages` sets it in the stage itself, since
    plans know a stage by identity (``run.stage is read_stage``).

    Attributes:
        inputs: Names of the inputs without a default.
        optional: Names of the inputs with a default.
        lazy_inputs: Names of the inputs that are lazy.
        takes_tables_alone: Whether the function gets a shard's tables, none of them lazy.
    """

    function: Callable[..., Tables]
    number: int = 0

    def __post_init__(self) -> None:
        # Types stand for their names: one that a module imports for type checkers only is a NameError.
        steps = ((self.function, 2 if self.before else 1), (self.before, 1), (self.after, 2))
        self._inputs_of = {
            step: dict([*inspect.signature(step, eval_str=True).parameters.items()][first:])
            for step, first in steps
            if step
        }
        inputs = {name: each for of_step in self._inputs_of.values() for name, each in of_step.items()}
        hints = {name: (each.annotation, *get_args(each.annotation)) for name, each in inputs.items()}
        self.inputs = tuple(name for name, each in inputs.items() if each.default is each.empty)
        self.optional = tuple(name for name in inputs if name not in self.inputs)
        self.lazy_inputs = {name for name in inputs if LazyTable in hints[name]}
        self.takes_tables_alone = self.scope == "shard" and self.lazy_inputs.isdisjoint(self._inputs_of[self.function])

    def run(self, context: Context, inputs: Mapping[str, Any], function: Callable[..., Tables] | None = None) -> Tables:
        """Return the stage's tables. ``function``: called in place of the stage's, with the same arguments."""

        def given(step: Callable[..., Any]) -> dict[str, Any]:
            return {name: inputs[name] for name in self._inputs_of[step] if name in inputs}

        chosen = [self.before(context, **given(self.before))] if self.before else []
        tables = (function or self.function)(context, *chosen, **given(self.function))
        return self.after(context, tables, **given(self.after)) if self.after else tables

    @property
    def doc(self) -> str:
        """What it does, in one sentence."""
        return (self.function.__doc__ or "").partition("\n")[0]


def number_stages(*stages: Stage) -> tuple[Stage, ...]:
    """Number stages in pipeline order, from 1, and return them.

    Raises ``ValueError`` where a stage reads a table that no earlier stage makes.
    """
    tables = {*OUTSIDE}
    for number, stage in enumerate(stages, 1):
        for name in (*stage.inputs, *stage.whole, *stage.optional):
            if name not in tables and not (name in stage.optional and name in stage.outputs):
                later = "".join(f"; {each.name!r} does" for each in stages[number:] if name in each.outputs)
                raise ValueError(f"The stage {stage.name!r} reads {name!r}, which no earlier stage makes{later}.")
        tables.update(stage.outputs)
        stage.number = number
    return stages
