"""Filter: questions whose hints give an answer away leave the collection (paper, section 3.1.2).

What gives an answer away is found by :mod:`quit.stages.leaks.find`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa

from quit import contracts
from quit.common.cache import ContentStore, leak_store
from quit.common.rows import tuples
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
    from quit.stages.leaks.find import leak_items, overrides_by_hint
    from quit.stages.leaks.kept import cached_leaks_of

    if given:
        settings = settings.model_copy(update={"method": "full", "contained": False})
    texts = tuples(questions, "question_id", "question", "answers")
    items = leak_items(texts, hints, overrides_by_hint(overrides, hints))
    findings = cached_leaks_of(items, equivalence, encoder, settings, store)
    finding_rows, usable, rejects = [], [], []
    for question, item, findings_by_hint in zip(questions.to_pylist(), items, findings, strict=True):
        leaking: dict[str, Finding] = {}
        for hint_id, leaks in zip(item.hint_ids, findings_by_hint, strict=True):
            place = {"hint_id": hint_id, "question_id": question["question_id"]}
            finding_rows += [place | asdict(leak) for leak in leaks]
            standing = [leak for leak in leaks if not leak.overridden]
            if standing and not given:
                leaking[hint_id] = standing[0]
        identity = {"stage": "filter", "question_id": question["question_id"], "source": question["source"]}
        if settings.mode == "hint":
            rejects += [
                {**identity, "kind": "hint", "reason": "answer_leak", "detail": leak.words, "hint_id": hint_id}
                for hint_id, leak in leaking.items()
            ]
        if leaking and (settings.mode == "question" or len(item.hints) - len(leaking) < keep):
            hint_id, leak = next(iter(leaking.items()))
            detail = f"{len(leaking)} of {len(item.hints)} hints leak; {hint_id}: {leak.words}"
            reason = "answer_leak" if settings.mode == "question" else "too_few_hints_left"
            rejects.append({**identity, "kind": "question", "reason": reason, "detail": detail})
        else:
            clean = (hint_id for hint_id in item.hint_ids if hint_id not in leaking)
            usable += [{"hint_id": hint_id, "question_id": question["question_id"]} for hint_id in clean]
    return {
        "leak_findings": contracts.table("leak_findings").from_rows(finding_rows),
        "usable_hints": contracts.table("usable_hints").from_rows(usable),
        "rejects": contracts.table("rejects").from_rows(rejects),
    }
