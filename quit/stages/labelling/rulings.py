"""People's settled decisions, and verdicts with these in the place of the judge's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import first_matches
from quit.common.rows import tuples
from quit.settings import Review
from quit.stages.labelling.verdicts import settled_rows, under_review

JUDGE = "review"
"""Basis and judge of people's verdicts in ``verdicts``."""

Key = tuple[str, str]


class Ruling(NamedTuple):
    """A settled decision: columns of ``quit.stages.labelling.verdicts.DECISIONS``."""

    key: str
    answer: str | None
    decision: bool
    yes: int
    no: int
    basis: str
    reviews: list[str]

    @property
    def votes(self) -> str:
        return f"by {self.yes if self.decision else self.no} of {self.yes + self.no} ({self.basis})"

    def about(self, answer: str) -> str:
        """Return the reason of a change, in words."""
        return f"{answer!r} {'accepted' if self.decision else 'rejected'} {self.votes}"


@dataclass(frozen=True)
class SettledDecisions:
    """The settled decisions on some questions: by (question id, answer's key), and by (question id, flag)."""

    answers: Mapping[Key, Ruling]
    flags: Mapping[Key, Ruling]

    @property
    def touched(self) -> list[str]:
        """Questions whose labels or valid answers may change, sorted."""
        return sorted({question for question, _ in (*self.answers, *self.flags)})


def settled_decisions(decisions: pa.Table, splits: pa.Table, settings: Review) -> SettledDecisions:
    """Return what settled decisions (schema ``quit.stages.labelling.verdicts.DECISIONS``) say.

    Only questions of the splits under review count, and only flags that remove.
    """
    rows = settled_rows(under_review(decisions, splits, settings))
    rulings: dict[str, dict[Key, Ruling]] = {"answer": {}, "flag": {}}
    for kind, question, *values in tuples(rows, "kind", "question_id", *Ruling._fields):
        ruling = Ruling(*values)
        if kind == "answer" or (ruling.decision and ruling.key in settings.removing_flags):
            rulings[kind][question, ruling.key] = ruling
    return SettledDecisions(rulings["answer"], rulings["flag"])


def with_rulings(verdicts: pa.Table, settled: SettledDecisions) -> pa.Table:
    """Return the verdicts with people's in the place of the judge's, wherever there is a settled one."""
    if not settled.answers:
        return verdicts
    schema = contracts.table("verdicts").schema
    by_people = {"probability": None, "basis": JUDGE, "judge": JUDGE, "note": None}
    rows = [
        {"question_id": question, "answer_key": key, "correct": each.decision, **by_people}
        | {"producer": f"{JUDGE}:{each.basis}", "raw": f"{each.yes} yes, {each.no} no"}
        for (question, key), each in settled.answers.items()
    ]
    rulings = pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in rows[0]]))
    rows_of = first_matches(verdicts, rulings, ("question_id", "answer_key"))
    places = pa.array(rows_of, mask=rows_of < 0)
    for name in rulings.column_names[2:]:
        values = pc.if_else(pc.is_valid(places), rulings[name].take(places), verdicts[name])
        verdicts = verdicts.set_column(verdicts.schema.get_field_index(name), verdicts.schema.field(name), values)
    return verdicts
