"""Partial labelling against full labels: cost saved, true error, and whether the promise was kept.

    quit build -w W/starter --source starter
    python -m benchmarks.economy W/starter --out economy.jsonl [--repetitions 100] [--errors 0.02,0.05]
    python -m benchmarks.economy W/starter --out economy.jsonl --questions 8000
    python -m benchmarks.economy --out economy.jsonl --tables --picture docs/images/economy.svg

Each workspace has all answers of its labelers; a passage is asked by looking its answers up. Added to ``--out``, a row
each: the exact mode in every order of labelers; wrong labels by share asked of the method and of simpler ones; what the
promise costs, on the questions of the workspace with other audits and on questions drawn with replacement; benchmark
figures with exact and with estimated labels. Prompt tokens are counted as by ``quit plan`` without a tokenizer. The
last form prints the rows as tables and draws the curves.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.economy_data import Collection, exact, load, orders, summary
from benchmarks.economy_figures import effects
from benchmarks.economy_tables import markdown, picture
from benchmarks.measuring import peak_mib, timed
from quit.stages.labelling.passages import permutation_table
from quit.stages.selection import INTERIM_LOOKS, ErrorGuarantee, Reason, select
from quit.stages.selection.predictor import predict
from quit.stages.selection.rounds import Answered, drawn, look, predictions

OURS = "estimated"


def majority(labels: np.ndarray, asked: np.ndarray, hints: int) -> np.ndarray:
    """Return for each passage the most frequent label of the asked passages of its subset; where there are none of
    either or as many, of its question; else 1."""
    subsets = permutation_table(hints).subset.dictionary_encode().indices.to_numpy()
    same = np.eye(subsets.max() + 1)[subsets]
    votes = np.where(labels, 1, -1) * asked
    of_subset = (votes @ same)[:, subsets]
    return np.where(of_subset == 0, votes.sum(axis=1, keepdims=True), of_subset) > 0


Point = tuple[np.ndarray, np.ndarray]
"""Passages asked, and of all whether label 2 is predicted, or its probability."""


def _looks(collection: Collection) -> Iterator[Point]:
    answered = Answered(collection.ask, collection.label_2.shape)
    return predictions(answered, collection.hints, INTERIM_LOOKS, collection.prompt_tokens)


def _random(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    draw = rng.random(collection.label_2.shape)
    for share in INTERIM_LOOKS:
        asked = drawn(draw, round(share * draw.size))
        yield asked, majority(collection.label_2, asked, collection.hints)


def _random_model(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    answered = Answered(collection.ask, collection.label_2.shape)
    answered.add(np.ones(collection.label_2.shape, dtype=bool))
    for asked, _ in _random(collection, rng):
        yield asked, predict(answered.label_2, answered.firm, asked, collection.hints) >= 0.5


def _fixed(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    rank = rng.random(collection.label_2.shape).argsort(axis=1).argsort(axis=1)
    for share in INTERIM_LOOKS:
        asked = rank < round(share * rank.shape[1])
        yield asked, majority(collection.label_2, asked, collection.hints)


def _one_order(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    subsets = permutation_table(collection.hints).subset.dictionary_encode().indices.to_numpy()
    draw = rng.random(collection.label_2.shape)
    asked = np.zeros(draw.shape, dtype=bool)
    for subset in range(subsets.max() + 1):
        rows = np.flatnonzero(subsets == subset)
        asked[np.arange(len(asked)), rows[draw[:, rows].argmin(axis=1)]] = True
    yield asked, majority(collection.label_2, asked, collection.hints)


OTHERS: dict[str, Callable[[Collection, np.random.Generator], Iterator[Point]]] = {
    "random, our predictor": _random_model,
    "random, majority": _random,
    "fixed share, majority": _fixed,
    "one order a subset": _one_order,
}


def others(collection: Collection, repetitions: int) -> Iterator[dict]:
    """Yield wrong labels of simpler methods by what was asked, without an audit: questions drawn with replacement."""
    for method, run in OTHERS.items():
        points: list[list[dict]] = []
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            sample = _resampled(collection, rng)
            points.append([_point(sample, *point) for point in run(sample, rng)])
        for rows in zip(*points, strict=True):
            yield {"kind": "curve", "method": method, **summary(rows)}


def ours(collection: Collection, errors: Sequence[float], repetitions: int) -> Iterator[dict]:
    """Yield what the promise costs and how often it was kept, with the workspace's questions and other audits and with
    questions drawn with replacement; and wrong labels by what was asked, without the audit, of the latter."""
    fixed = list(_looks(collection))
    outcomes: dict[tuple[str, float], list[dict]] = {}
    points: list[list[dict]] = []
    for resample, seed in itertools.product((False, True), range(repetitions)):
        rng = np.random.default_rng(seed)
        sample = _resampled(collection, rng) if resample else collection
        looks = list(_looks(sample)) if resample else fixed
        if resample:
            points.append([_point(sample, evidence, probability >= 0.5) for evidence, probability in looks])
        draw = rng.random(sample.label_2.shape)
        for error in errors:
            key = ("questions" if resample else "audits", error)
            outcomes.setdefault(key, []).append(_outcome(sample, looks, ErrorGuarantee(error=error), draw))
    for (drawn_again, error), rows in outcomes.items():
        yield {"kind": "promise", "drawn": drawn_again, "promised": error, "repetitions": repetitions, **summary(rows)}
    for look_rows in zip(*points, strict=True):
        yield {"kind": "curve", "method": OURS, **summary(look_rows)}


def at_size(collection: Collection, questions: int, errors: Sequence[float]) -> Iterator[dict]:
    """Yield what a build of so many questions, drawn with replacement, costs and needs: the promise, seconds, MiB."""
    rng = np.random.default_rng(0)
    sample = collection.of_questions(np.sort(rng.integers(0, collection.label_2.shape[0], questions)))
    draw = rng.random(sample.label_2.shape)
    for error in errors:
        seconds: dict[str, float] = {}
        with timed(seconds, "seconds"):
            selection = select(
                [f"{row:06d}" for row in range(questions)],
                sample.hints,
                sample.ask,
                ErrorGuarantee(error=error),
                draw=draw,
                prompt_tokens=sample.prompt_tokens,
            )
        asked = selection.reason > 0
        audit = float((selection.reason == Reason.AUDIT).mean())
        wrong = _point(sample, asked, selection.probability >= 0.5)
        yield {
            "kind": "size",
            "drawn": questions,
            "promised": error,
            "audit": audit,
            **wrong,
            **seconds,
            "mib": peak_mib(),
        }


def _point(collection: Collection, asked: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    return {**collection.cost(asked), "error": float((~asked & (predicted != collection.label_2)).mean())}


def _resampled(collection: Collection, rng: np.random.Generator) -> Collection:
    questions = collection.label_2.shape[0]
    return collection.of_questions(np.sort(rng.integers(0, questions, questions)))


def _outcome(collection: Collection, looks: Sequence[Point], options: ErrorGuarantee, draw: np.ndarray) -> dict:
    """Return what :func:`quit.stages.selection.select` comes to with these draws. Its evidence does not depend on the
    audit, so it is worked out once for all of them."""
    audit, truth = drawn(draw, options.audit_of(draw.size)), collection.label_2
    asked, missed, false, expected, kept, everything = np.ones(truth.shape, dtype=bool), 0.0, 0.0, 0.0, True, True
    for evidence, probability in looks:
        seen = look(evidence, probability, audit, truth, options)
        if seen.stopped:
            asked, everything = evidence | audit, False
            predicted = probability >= 0.5
            missed, false = float((~asked & truth & ~predicted).mean()), float((~asked & ~truth & predicted).mean())
            expected = float((np.minimum(probability, 1 - probability) * ~asked).mean())
            kept = missed <= seen.missed_bound and false <= seen.false_bound and missed + false <= options.error
            break
    cost, perfect = collection.cost(asked), collection.cost(audit)
    factors = {f"{name}_factor": cost[name] / perfect[name] for name in ("answers", "tokens")}
    return {**cost, "audit": float(audit.mean()), **factors, "missed": missed, "false": false, "error": missed + false,
            "expected": expected, "kept": kept, "everything": everything}  # fmt: skip


def main() -> None:
    """Simulate on each workspace, or print and draw what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspaces", nargs="*", type=Path, help="folders of workspaces with all answers")
    parser.add_argument("--out", type=Path, required=True, help="JSON Lines file; rows are added")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--questions", type=int, help="only simulate a build of so many, drawn from a workspace's")
    parser.add_argument("--errors", default="0.02,0.05", help="promised shares of wrong labels")
    parser.add_argument("--tables", action="store_true", help="print the rows of --out")
    parser.add_argument("--picture", type=Path, help="draw the curves of --out")
    options = parser.parse_args()
    errors = [float(error) for error in options.errors.split(",")]
    for folder in options.workspaces:
        collection, tables = load(folder)
        about = {"collection": collection.name, "questions": collection.label_2.shape[0]}
        parts = (
            [at_size(collection, options.questions, errors)]
            if options.questions
            else [
                ({"kind": "exact", **exact(collection.in_order(order))} for order in orders(collection)),
                ours(collection, errors, options.repetitions),
                others(collection, options.repetitions),
            ]
        )
        readers = len(tables.sql("SELECT DISTINCT reader FROM answers"))
        if readers > len(collection.labelers) and not options.questions:
            parts.append(effects(collection, tables, errors, options.repetitions // 4))
        with options.out.open("a", encoding="utf-8") as file:
            for row in itertools.chain(*parts):
                file.write(json.dumps({**about, **row}) + "\n")
    rows = [json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()]
    if options.tables:
        print(markdown(rows))
    if options.picture:
        picture(rows, options.picture)


if __name__ == "__main__":
    main()
