"""How a review is going, and what a dataset card says of it: annotators, blind or not, agreement, control questions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, NotRequired, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.arithmetic import sum_in_order
from quit.common.rows import tuples
from quit.engine.questions import decision_counts, fitting_rows
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.evaluate.agreement import alpha_of, cohen_kappa, pair_agreements
from quit.render import table
from quit.render.table import Table, number, percent
from quit.review.apply import change_counts
from quit.review.audit import audit_figures, audit_pieces
from quit.review.controls import Controls, control_scores, load_controls
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.sources.lines import keyed_lines
from quit.stages.labelling.verdicts import (
    FLAGS,
    coverage,
    decide,
    disagreements,
    live_reviews,
    rows_of_pages,
    unclear_annotations,
    votes,
)
from quit.stages.update import settled_decisions, with_rulings
from quit.text.words import counted

_LOG = logging.getLogger(__name__)
_PERSON = '{"annotator": "...", "gender": "...", "age": "...", "education": "..."}'


def agreement(live: pa.Table) -> dict[str, Any]:
    """Return agreement on answers (an item is a question's answer): alpha, kappa of every pair, and of each annotator
    with the others.

    Keys: ``items`` (judged by two or more), ``alpha``, ``pairs``, ``annotators``.
    """
    judged: dict[str, dict[Hashable, Hashable]] = {}
    counts: dict[Hashable, int] = {}
    for kind, question, key, annotator, yes in tuples(votes(live), "kind", "question_id", "key", "annotator", "yes"):
        if kind == "answer":
            judged.setdefault(annotator, {})[question, key] = yes
            counts[question, key] = counts.get((question, key), 0) + 1
    pairs = pair_agreements(judged)
    people = []
    for annotator, verdicts in sorted(judged.items()):
        shared = Counter[tuple[Hashable, Hashable]]()
        for other, theirs in judged.items():
            if other != annotator:
                shared.update((verdicts[item], theirs[item]) for item in verdicts.keys() & theirs.keys())
        people.append(
            {
                "annotator": annotator,
                "answers": len(verdicts),
                "shared": shared.total(),
                "kappa_with_others": cohen_kappa(shared),
            }
        )
    return {
        "items": sum(count > 1 for count in counts.values()),
        "alpha": alpha_of(judged),
        "pairs": [asdict(pair) for pair in pairs],
        "annotators": people,
    }


def kinds(live: pa.Table, controls: Controls | None) -> list[dict[str, Any]]:
    """Return what people did on blind pages and on others, a dict for each kind that occurs, blind first.

    Keys: ``blind``, ``annotators``, ``annotations``, ``questions``, ``twice`` (questions that two or more people did),
    ``seconds`` (median of an annotation; None: unknown), ``answers`` (verdicts), ``items`` (answers with two or more),
    ``alike`` (share of pairs of verdicts on one answer that agree; None: no pair), ``alpha`` (Krippendorff's; None: not
    defined), ``controls`` and ``controls_right`` (verdicts on control questions).
    """
    rows = []
    for blind in (True, False):
        page_rows = rows_of_pages(live, blind)
        headers = page_rows.filter(pc.equal(page_rows.column("kind"), "annotation")).to_pylist()
        if not headers:
            continue
        questions = [row["question_id"] for row in headers]
        seconds = [row["lead_seconds"] for row in headers if row["lead_seconds"] is not None]
        figures, scores = agreement(page_rows), control_scores(page_rows, controls)
        pairs = sum(pair["items"] for pair in figures["pairs"])
        alike = sum_in_order(pair["items"] * pair["agreement"] for pair in figures["pairs"])
        rows.append(
            {
                "blind": blind,
                "annotators": len({row["annotator"] for row in headers}),
                "annotations": len(headers),
                "questions": len(set(questions)),
                "twice": sum(count > 1 for count in Counter(questions).values()),
                "seconds": round(median(seconds), 1) if seconds else None,
                "answers": sum(person["answers"] for person in figures["annotators"]),
                "items": figures["items"],
                "alike": alike / pairs if pairs else None,
                "alpha": figures["alpha"],
                "controls": sum(person["asked"] for person in scores),
                "controls_right": sum(person["right"] for person in scores),
            }
        )
    return rows


def flags(live: pa.Table, settings: Review) -> list[dict[str, Any]]:
    """Return how often each flag was set, a dict of each; none without annotations.

    Keys: ``flag``, ``questions`` (with it by at least one person), ``agreed`` (on which the owner's rule settles that
    it holds) and ``share`` (``questions`` of all annotated ones).
    """
    decisions = decide(live, settings)
    rows = decisions.filter(pc.equal(decisions.column("kind"), "flag")).to_pylist()
    by_anyone = Counter(flag for flag, _ in {(row["key"], row["question_id"]) for row in rows})
    agreed = Counter(flag for flag, _ in {(row["key"], row["question_id"]) for row in rows if row["decision"]})
    annotated = len(live["question_id"].unique())
    return [
        {"flag": flag, "questions": by_anyone[flag], "agreed": agreed[flag], "share": by_anyone[flag] / annotated}
        for flag in FLAGS
        if annotated
    ]


def verification(live: pa.Table, settings: Review) -> dict[str, Any]:
    """Return the facts of a dataset card about the people behind these reviews (the rows that count), without names.

    Keys: ``annotators``, ``annotations``, ``questions``: numbers; ``kinds``: see :func:`kinds`; ``flags``: see
    :func:`flags`; ``people``: what annotators say of themselves (``review.people``), a dict each of ``evaluator`` (a
    number), ``gender``, ``age`` and ``education`` (None: not given): the paper's table 9. Their order follows from
    these facts, not from names. A file of people or of control questions that is no longer there is left out, and the
    log says so. Raises :class:`InputError` for a bad one.
    """
    settings = _without_absent(settings, "people", "controls")
    headers = live.filter(pc.equal(live.column("kind"), "annotation"))
    annotators = set(headers.column("annotator").to_pylist())
    data = load_people(settings.people) if settings.people else {}
    there = {name.lower() for name in annotators} & data.keys()
    people = sorted((data[name] for name in there), key=lambda row: [*map(str, row.values())])
    return {
        "annotators": len(annotators),
        "annotations": len(headers),
        "questions": len(headers.column("question_id").unique()),
        "kinds": kinds(live, controls_of(settings)),
        "flags": flags(live, settings),
        "people": [{"evaluator": number, **person} for number, person in enumerate(people, start=1)],
    }


def _without_absent(settings: Review, *keys: str) -> Review:
    absent = [key for key in keys if (path := getattr(settings, key)) and not Path(path).exists()]
    if absent:
        files = " and ".join(f"review.{key} ({getattr(settings, key)})" for key in absent)
        _LOG.warning("%s: there is no such file, so its figures are left out.", files)
    return settings.model_copy(update=dict.fromkeys(absent))


def load_people(path: str | Path) -> dict[str, dict[str, str | None]]:
    """Read a JSONL file of ``{annotator, gender, age, education}`` and return annotator (in lower case) -> the other
    three, as text.

    Raises :class:`InputError` that names the line for anything else.
    """
    people: dict[str, dict[str, str | None]] = {}
    facts = ("gender", "age", "education")
    for where, row in keyed_lines(Path(path), _PERSON, ("annotator", *facts), str.lower):
        person = {}
        for name in facts:
            value = row.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
                raise InputError(f"{where}: {name!r} must be a text or a whole number, found {str(value)[:40]!r}.")
            person[name] = None if value is None else str(value)
        people[row["annotator"].lower()] = person
    return people


def absent_people(settings: Review, annotators: set[str]) -> list[str]:
    """Return in words whom settings name although no annotation is theirs; nothing before the first annotation."""
    names = {name.lower() for name in annotators}
    if not names:
        return []
    lines = []
    adjudicator = settings.adjudicator or ""
    if settings.adjudication == "adjudicator" and adjudicator.lower() not in names:
        lines.append(
            f"review.adjudicator is {adjudicator}, who has no annotation that counts: disagreements wait until there "
            "is one. Check the address."
        )
    absent = sorted(load_people(settings.people).keys() - names) if settings.people else []
    if absent:
        first = ", ".join([*absent[:3], *(["..."] if len(absent) > 3 else [])])
        lines.append(
            f"review.people names {first}, and no annotation that counts is theirs: cards leave them out. Check the "
            "addresses."
        )
    return lines


class ProjectStatus(TypedDict):
    """The project in Label Studio, as of the last push or pull."""

    id: int | None
    url: str | None
    tasks: int
    controls: int
    done: int


class ReviewCounts(TypedDict):
    """What was pulled, and what of it does not count: of questions that have changed, flags on hints that have."""

    pulls: int
    rows: int
    annotations: int
    questions: int
    set_aside: int
    set_aside_questions: list[str]
    set_aside_flags: int


class Applied(TypedDict):
    """What applied pulls changed; ``waiting``: pulls that are not applied."""

    pulls: int
    waiting: int
    questions: int
    labels_up: int
    labels_down: int
    answers_added: int
    answers_removed: int
    questions_removed: dict[str, int]


class ReviewFigures(TypedDict):
    """What :func:`described` shows of a review, also in the report."""

    reviews: ReviewCounts
    annotators: list[dict[str, Any]]
    kinds: list[dict[str, Any]]
    flags: list[dict[str, Any]]
    agreement: dict[str, Any]
    controls: list[dict[str, Any]]
    decided: int
    open: int
    coverage: dict[str, dict[str, Any]]
    applied: Applied


class ReviewStatus(ReviewFigures):
    """How far a review is. ``decided`` and ``open``: decisions on the splits under review; ``coverage``: of each of
    these splits, as of all pulls (:func:`quit.stages.labelling.verdicts.coverage`); ``problems``: in words, each with
    what to do."""

    project: ProjectStatus
    unclear: list[dict[str, Any]]
    disagreements: list[dict[str, Any]]
    problems: list[str]
    audit: NotRequired[dict[str, Any]]


def review_status(workspace: Workspace, settings: Review) -> ReviewStatus:
    """Return the state of a workspace's review as JSON-like values; nothing is asked of a server.

    A file of control questions or of people that is no longer there is left out, and the log says so.
    """
    settings = _without_absent(settings, "people", "controls")
    store = ReviewStore(workspace)
    reviews = store.read()
    every = live_reviews(reviews)
    live = fitting_rows(workspace, every)
    decisions = decide(live, settings)
    controls = controls_of(settings)
    headers = live.filter(pc.equal(live.column("kind"), "annotation")).to_pylist()
    fits = pc.is_in(every["review_id"], live["review_id"].combine_chunks())
    set_aside = every.filter(pc.invert(fits))
    ids = set_aside["question_id"].unique().to_pylist()
    changed_questions = workspace.read("questions", columns=["question_id"], question_ids=ids)
    people: dict[str, dict[str, Any]] = {}
    for row in headers:
        person = people.setdefault(row["annotator"], {"annotator": row["annotator"], "questions": 0, "seconds": 0.0})
        person["questions"] += 1
        person["seconds"] += row["lead_seconds"] or 0.0
    project, sync = store.project, store.sync
    tasks = project.get("tasks") or ()
    decided, undecided = decision_counts(workspace, decisions, settings)
    status = {
        "project": {
            "id": project.get("id"),
            "url": project.get("url"),
            "tasks": len(tasks) or sync.get("tasks", 0),
            "controls": len(controls.questions & {*tasks}) if controls else 0,
            "done": sync.get("done", 0) if sync.get("project") == [project.get("key"), project.get("id")] else 0,
        },
        "reviews": {
            "pulls": len(store.parts),
            "rows": len(reviews),
            "annotations": len(headers),
            "questions": len({row["question_id"] for row in headers}),
            "set_aside": len(set_aside["review_id"].unique()),
            "set_aside_questions": sorted(changed_questions["question_id"].to_pylist()),
            "set_aside_flags": len(every.filter(fits)) - len(live),
        },
        "annotators": sorted(people.values(), key=lambda row: row["annotator"]),
        "kinds": kinds(live, controls),
        "flags": flags(live, settings),
        "agreement": agreement(live),
        "controls": control_scores(live, controls),
        "unclear": unclear_annotations(reviews),
        "decided": decided,
        "open": undecided,
        "coverage": _coverage(workspace, decisions, settings),
        "disagreements": disagreements(decisions),
        "applied": {
            "pulls": len(store.applied),
            "waiting": len(set(store.parts) - set(store.applied)) if store.applied else len(store.parts),
            **change_counts(workspace),
        },
        "problems": [*(sync.get("problems") or ()), *absent_people(settings, set(people))],
        **audit_figures(workspace, settings, live),
    }
    return cast(ReviewStatus, status)


def _coverage(workspace: Workspace, decisions: pa.Table, settings: Review) -> dict[str, dict[str, Any]]:
    """Return split under review -> how far people judged it, if these decisions were applied."""
    splits = workspace.read("splits", runs=["split"])
    verdicts = workspace.read("verdicts", runs=["judge"])
    by_people = with_rulings(verdicts, settled_decisions(decisions, splits, settings))
    return {split: coverage([by_people], splits, [split]) for split in settings.splits}


def controls_of(settings: Review) -> Controls | None:
    """Return the control questions that the settings name, or None."""
    return load_controls(settings.controls) if settings.controls else None


def _set_aside(reviews: ReviewCounts) -> list[str]:
    """Return sentences on the annotations and flags that do not count, if there are any."""
    lines = []
    if reviews["set_aside_flags"]:
        flags_aside = counted(reviews["set_aside_flags"], "flag")
        lines = [f"Set aside: {flags_aside} on hints that have changed. They count again when these come back."]
    if not reviews["set_aside"]:
        return lines
    sentence = (
        f"Set aside: {counted(reviews['set_aside'], 'annotation')} of questions that had another text or other gold "
        "answers. They count again when these come back."
    )
    question_ids = reviews["set_aside_questions"]
    if question_ids:
        names = ", ".join([*question_ids[:3], *(["..."] if len(question_ids) > 3 else [])])
        sentence += f" Or have {names} judged again: delete the annotations in Label Studio."
    return [sentence, *lines]


def described(status: ReviewFigures, most: int = 0) -> list[Table | str]:
    """Return what people did, their agreement and its effects, as sentences and tables. ``most``: rows per table,
    0 for all."""
    reviews, agreement, applied = status["reviews"], status["agreement"], status["applied"]
    reviewed = [f"{split} {row['reviewed']:,} of {row['questions']:,}" for split, row in status["coverage"].items()]
    kinds = [
        ("yes" if row["blind"] else "no", *(f"{row[name]:,}" for name in ("annotators", "annotations", "questions",
         "twice")), number(row["seconds"], ",.0f"), number(row["alike"], ".1%"), number(row["alpha"]),
         _right(row["controls_right"], row["controls"]))
        for row in status["kinds"]
    ]  # fmt: skip
    others = {row["annotator"]: row for row in agreement["annotators"]}
    scores = {row["annotator"]: (row["right"], row["asked"]) for row in status["controls"]}
    people = [
        (name, f"{row['questions']:,}", f"{others[name]['answers'] if name in others else 0:,}",
         f"{row['seconds'] / 60:,.0f}", number(others.get(name, {}).get("kappa_with_others")),
         _right(*scores.get(name, (0, 0))))
        for row in status["annotators"] if (name := row["annotator"])
    ]  # fmt: skip
    pairs = [
        (f"{row['first']}, {row['second']}", f"{row['items']:,}", percent(row["agreement"]), number(row["kappa"]))
        for row in agreement["pairs"]
    ]
    heads = "blind,people,annotations,questions,twice,seconds,alike,alpha,controls"
    controls = "Controls: control questions answered right."
    blind = (
        "On a blind task nothing is ticked and no judge is shown; on the others the judge's verdicts are ticked. "
        f"Twice: questions that two or more people judged. Seconds: the median of an annotation. {controls}"
    )
    flagged = [
        (row["flag"].replace("_", " "), row["questions"], percent(row["share"]), row["agreed"])
        for row in status["flags"]
    ]
    of_flags = "Questions that somebody flagged, of all annotated ones; agreed: the rule settles that the flag holds."
    tables = (
        Table("Blind tasks and others", heads.split(","), kinds, note=blind),
        Table(
            "Annotators",
            "annotator,questions,answers,minutes,kappa,controls".split(","),
            people,
            note=f"Kappa: Cohen's, with all others. {controls}",
        ),
        Table("Pairs of annotators", ("pair", "answers", "alike", "Cohen's kappa"), pairs, text=(0,)),
        Table("Flags", ("flag", "questions", "share", "agreed"), flagged, note=of_flags),
    )
    return [
        f"{counted(reviews['annotations'], 'annotation')} of {counted(reviews['questions'], 'question')} by "
        f"{counted(len(people), 'person', 'people')}; {status['decided']:,} verdicts settled, {status['open']:,} "
        "open.",
        f"Questions whose answers people have all judged: {', '.join(reviewed)}.",
        *_set_aside(reviews),
        f"Krippendorff's alpha {number(agreement['alpha'])} over the {agreement['items']:,} answers that two or more "
        "people judged."
        if agreement["items"]
        else "No answer was judged by two people yet, so their agreement is not known.",
        f"Applied since the build: {applied['labels_up']:,} passages up to 2, {applied['labels_down']:,} down to 1; "
        f"{counted(applied['answers_added'], 'valid answer')} added, {applied['answers_removed']:,} removed; "
        f"{counted(sum(applied['questions_removed'].values()), 'question')} removed. "
        f"Pulls that wait for quit review apply: {applied['waiting']:,}.",
        *(replace(table, rows=table.rows[: most or None], more=len(table.rows[most:]) if most else 0)
          for table in tables if table.rows),
    ]  # fmt: skip


def _right(right: int, total: int) -> str:
    return f"{right:,} of {total:,}" if total else "–"


def pieces(status: ReviewStatus) -> list[Table | str]:
    """Return a review's state: the project, done, open, agreement, label changes, problems."""
    project, tasks, done = status["project"], status["project"]["tasks"], status["project"]["done"]
    control_count = project["controls"]
    return [
        f"Project {project['id']} at {project['url']}: {done:,} of {tasks:,} tasks done, {tasks - done:,} open"
        + (f" (among them {counted(control_count, 'control question')}, open to everyone)" if control_count else "")
        + ", as of the last push or pull."
        if project["url"]
        else "Which project is the workspace's, the next quit review push or pull finds out."
        if status["reviews"]["pulls"]
        else "Nothing has been pushed yet. Run: quit review push",
        *described(status),
        *(audit_pieces(status["audit"]) if "audit" in status else ()),
        *(f"Attention: {problem}" for problem in status["problems"]),
    ]


def markdown(status: ReviewStatus) -> str:
    """Return a review's state as Markdown."""
    return table.markdown(["# Review", *pieces(status)])
