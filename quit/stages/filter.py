"""Filter: questions whose hints give an answer away leave the collection (paper, section 3.1.2).

What gives an answer away is found by :mod:`quit.stages.leaks.find`.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from quit import contracts
from quit.common.cache import ContentStore, leak_store
from quit.common.rows import grouped
from quit.models.protocols import Encoder, Equivalence
from quit.settings import Leakage
from quit.stages.stage import Context, Tables, stage

if TYPE_CHECKING:
    from quit.stages.leaks.find import Finding


@stage(
    "filter",
    outputs=("leak_findings", "usable_hints", "rejects"),
    sections=("leakage", "passages.hints", "passages.sizes"),
    models=("leak_rules", "equivalence", "encoder"),
    overrides="leak",
    version=3,
)
def filter_stage(context: Context, questions: pa.Table, hints: pa.Table) -> Tables:
    """Discard questions whose hints give the answer away; of given passages, only say which contain it."""
    models, settings = context.models, context.settings
    return filter_leaks(
        questions,
        hints,
        models.equivalence,
        models.encoder,
        settings.leakage,
        settings.passages.needed_hints,
        context.overrides,
        leak_store(),
        given=settings.passages.is_given,
    )


def filter_leaks(
    questions: pa.Table,
    hints: pa.Table,
    equivalence: Equivalence | None,
    encoder: Encoder | None,
    settings: Leakage,
    keep: int,
    overrides: pa.Table | None = None,
    store: ContentStore | None = None,
    given: bool = False,
) -> dict[str, pa.Table]:
    """Return the tables ``leak_findings``, ``usable_hints`` and ``rejects``.

    ``overrides``: the rows of that table that are in force and of kind ``leak``. What they call no leak stays among the
    findings but discards nothing; what they call a leak is found by ``person``. ``equivalence`` and ``encoder`` None:
    rules and people only. ``store``: where findings are kept (None: nowhere). ``keep`` is the number of hints a
    question must keep. With ``mode = "question"`` one leaking hint discards the question; with ``"hint"`` leaking hints
    go, and the question only when fewer than ``keep`` remain. ``given``: hints are passages, which may contain an
    answer (as whole words: findings say so), and all stay.
    """
    from quit.stages.leaks.find import LeakItem, overrides_by_hint
    from quit.stages.leaks.kept import cached_leaks_of

    by_question = grouped((hint["question_id"], hint) for hint in hints.to_pylist())
    overrides_of = overrides_by_hint(overrides, hints)
    if given:
        settings = settings.model_copy(update={"method": "full", "contained": False})
    finding_rows, usable, rejects = [], [], []
    rows = questions.to_pylist()
    items = []
    for question in rows:
        mine = by_question.get(question["question_id"], [])
        hint_ids = [hint["hint_id"] for hint in mine]
        applying = [overrides_of.get(hint_id) for hint_id in hint_ids]
        texts = [hint["hint"] for hint in mine]
        items.append(LeakItem(question["question"], question["answers"], texts, applying, hint_ids))
    findings = chain.from_iterable(cached_leaks_of(items, equivalence, encoder, settings, store))
    leaks_of = dict(zip((hint_id for item in items for hint_id in item.hint_ids), findings, strict=True))
    for question in rows:
        mine = by_question.get(question["question_id"], [])
        finding_rows += [
            {"hint_id": hint["hint_id"], "question_id": question["question_id"], **asdict(leak)}
            for hint in mine
            for leak in leaks_of[hint["hint_id"]]
        ]
        leaking, clean_hints = [], []
        for hint in mine:
            standing = [leak for leak in leaks_of[hint["hint_id"]] if not leak.overridden]
            if standing and not given:
                leaking.append((hint, standing[0]))
            else:
                clean_hints.append(hint)
        identity = {"stage": "filter", "question_id": question["question_id"], "source": question["source"]}
        if settings.mode == "hint":
            rejects += [
                {**identity, "kind": "hint", "reason": "answer_leak", "detail": _says(leak), "hint_id": hint["hint_id"]}
                for hint, leak in leaking
            ]
        if leaking and (settings.mode == "question" or len(clean_hints) < keep):
            hint, leak = leaking[0]
            detail = f"{len(leaking)} of {len(mine)} hints leak; {hint['hint_id']}: {_says(leak)}"
            reason = "answer_leak" if settings.mode == "question" else "too_few_hints_left"
            rejects.append({**identity, "kind": "question", "reason": reason, "detail": detail})
        else:
            usable += [{"hint_id": hint["hint_id"], "question_id": hint["question_id"]} for hint in clean_hints]
    return {
        "leak_findings": contracts.table("leak_findings").from_rows(finding_rows),
        "usable_hints": contracts.table("usable_hints").from_rows(usable),
        "rejects": contracts.table("rejects").from_rows(rejects),
    }


def _says(leak: Finding) -> str:
    return f"{leak.span!r} gives away {leak.answer!r} ({leak.method}, {leak.probability:.2f})"
