"""How a review is going: annotators, agreement, disagreements, control questions, and what was applied."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.words import counted
from quit.engine.workspace import Workspace
from quit.evaluate.agreement import alpha_of, cohen_kappa, pair_agreements
from quit.review.apply import change_counts
from quit.review.controls import Controls, control_scores, load_controls
from quit.review.store import ReviewStore
from quit.review.verdicts import decide, disagreements, live_reviews, votes
from quit.settings import Review


def agreement(live: pa.Table) -> dict[str, Any]:
    """Return agreement on answers (an item is a question's answer): alpha, kappa of every pair, and of each annotator
    with the others.

    Keys: ``items`` (judged by two or more), ``alpha``, ``pairs``, ``annotators``.
    """
    judged: dict[str, dict[Hashable, Hashable]] = {}
    cast = votes(live)
    columns = (cast.column(name).to_pylist() for name in ("kind", "question_id", "key", "annotator", "yes"))
    seen: dict[Hashable, int] = {}
    for kind, question, key, annotator, yes in zip(*columns, strict=True):
        if kind == "answer":
            judged.setdefault(annotator, {})[question, key] = yes
            seen[question, key] = seen.get((question, key), 0) + 1
    pairs = pair_agreements(judged)
    people = []
    for annotator, mine in sorted(judged.items()):
        own, others = [], []
        for other, theirs in judged.items():
            if other != annotator:
                shared = sorted(mine.keys() & theirs.keys(), key=repr)
                own += [mine[item] for item in shared]
                others += [theirs[item] for item in shared]
        people.append(
            {
                "annotator": annotator,
                "answers": len(mine),
                "shared": len(own),
                "kappa_with_others": cohen_kappa(own, others),
            }
        )
    return {
        "items": sum(count > 1 for count in seen.values()),
        "alpha": alpha_of(judged),
        "pairs": [asdict(pair) for pair in pairs],
        "annotators": people,
    }


def review_status(workspace: Workspace, settings: Review) -> dict[str, Any]:
    """Return the state of a workspace's review as JSON-like values; nothing is asked of a server."""
    store = ReviewStore(workspace)
    reviews = store.read()
    live = live_reviews(reviews)
    decisions = decide(reviews, settings)
    controls = controls_of(settings)
    headers = live.filter(pc.equal(live.column("kind"), "annotation")).to_pylist()
    people: dict[str, dict[str, Any]] = {}
    for row in headers:
        mine = people.setdefault(row["annotator"], {"annotator": row["annotator"], "questions": 0, "seconds": 0.0})
        mine["questions"] += 1
        mine["seconds"] += row["lead_seconds"] or 0.0
    project, sync = store.project, store.sync
    return {
        "project": {
            "id": project.get("id"),
            "url": project.get("url"),
            "tasks": sync.get("tasks"),
            "done": sync.get("done"),
        },
        "reviews": {
            "pulls": len(store.parts),
            "rows": len(reviews),
            "annotations": len(headers),
            "questions": len({row["question_id"] for row in headers}),
            "queued_events": len(store.queued()),
        },
        "annotators": sorted(people.values(), key=lambda row: row["annotator"]),
        "agreement": agreement(live),
        "controls": control_scores(live, controls),
        "decided": len(decisions) - decisions.column("decision").null_count,
        "disagreements": disagreements(decisions),
        "applied": {
            "pulls": len(store.applied),
            "waiting": len(set(store.parts) - set(store.applied)) if store.applied else len(store.parts),
            **change_counts(workspace),
        },
        "problems": list(sync.get("problems") or []),
    }


def controls_of(settings: Review) -> Controls | None:
    """Return the control questions that the settings name, or None."""
    return load_controls(settings.controls) if settings.controls else None


def markdown(status: dict[str, Any]) -> str:
    """Return a review's state as Markdown: done, open, agreement, label changes."""
    project, agreed, applied = status["project"], status["agreement"], status["applied"]
    tasks, done = project["tasks"] or 0, project["done"] or 0
    alpha = "not defined yet" if agreed["alpha"] is None else f"{agreed['alpha']:.2f}"
    lines = [
        "# Review",
        "",
        f"Project {project['id']} at {project['url']}: **{done:,} of {tasks:,} tasks done**, {tasks - done:,} open.",
        "",
        f"- {counted(status['reviews']['annotations'], 'annotation')} of "
        f"{counted(status['reviews']['questions'], 'question')} by "
        f"{counted(len(status['annotators']), 'person', 'people')}",
        f"- Krippendorff's alpha {alpha} over {agreed['items']:,} answers that two or more people judged",
        f"- {len(status['disagreements']):,} disagreements open, {status['decided']:,} verdicts settled",
        f"- labels: {applied['labels_up']:,} up to 2, {applied['labels_down']:,} down to 1; valid answers: "
        f"{applied['answers_added']:,} added, {applied['answers_removed']:,} removed; questions removed: "
        f"{sum(applied['questions_removed'].values()):,}",
    ]
    if status["annotators"]:
        kappa = {row["annotator"]: row["kappa_with_others"] for row in agreed["annotators"]}
        controls = {row["annotator"]: row for row in status["controls"]}
        lines += [
            "",
            "| annotator | questions | minutes | kappa with others | control questions |",
            "|---|---|---|---|---|",
        ]
        for row in status["annotators"]:
            name = row["annotator"]
            with_others = "" if kappa.get(name) is None else f"{kappa[name]:.2f}"
            control = f"{controls[name]['right']} of {controls[name]['asked']}" if name in controls else ""
            lines.append(f"| {name} | {row['questions']} | {row['seconds'] / 60:.0f} | {with_others} | {control} |")
    lines += ["", *(f"- **Attention**: {problem}" for problem in status["problems"])] if status["problems"] else []
    return "\n".join(lines) + "\n"
