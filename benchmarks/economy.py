"""Partial labelling against full labels: cost saved, true error, and whether the promise was kept.

    quit build -w W/starter --source starter
    python -m benchmarks.economy W/starter --out economy.jsonl [--repetitions 100] [--errors 0.02,0.05]
    python -m benchmarks.economy --out economy.jsonl --tables --picture docs/images/economy.svg

Each workspace has all answers of its labelers; a passage is asked by looking its answers up. Added to ``--out``, a row
each: the exact mode in every order of labelers; wrong labels by share asked of the method and of simpler ones; what the
promise costs, on the questions of the workspace with other audits and on questions drawn with replacement; benchmark
figures with exact and with estimated labels. Prompt tokens are counted as by ``quit plan`` without a tokenizer. The
second form prints the rows as tables and draws the curves.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

import quit
from benchmarks.economy_tables import markdown, picture
from quit.corpora.lexical import Bm25
from quit.evaluate.metrics import Measure, exact_match, mean, run_values
from quit.library import Tables
from quit.models.prompting import load_prompt
from quit.operations.plan import CHARACTERS_A_TOKEN
from quit.stages.passages import passage_texts, permutation_table
from quit.stages.read import selected_hints
from quit.stages.selection import LOOKS, Options, select
from quit.stages.selection.choice import computed_tokens
from quit.stages.selection.predictor import predict
from quit.stages.selection.rounds import Answered, drawn, look, predictions

OURS = "estimated"
FIGURES = ("nDCG@10", "Hit(rel=2)@1", "MRR(rel=2)@10")


@dataclass(frozen=True)
class Collection:
    """All answers to the passages of some questions.

    ``accepted``: bool (labelers, questions, passages), in the order in which labelers are asked; ``prompt_tokens``:
    (questions, hints + 1).
    """

    name: str
    labelers: tuple[str, ...]
    accepted: np.ndarray
    prompt_tokens: np.ndarray

    @property
    def hints(self) -> int:
        return self.prompt_tokens.shape[1] - 1

    @cached_property
    def label_2(self) -> np.ndarray:
        return self.accepted.any(axis=0)

    @cached_property
    def computed(self) -> float:
        """Prompt tokens that all answers need."""
        everything = np.ones(self.label_2.shape, dtype=bool)
        return len(self.labelers) * float(computed_tokens(everything, self.prompt_tokens, self.hints).sum())

    def waves(self, asked: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each labeler is asked about some passages: those that no earlier one answered correctly."""
        for accepted in self.accepted:
            yield asked
            asked = asked & ~accepted

    def ask(self, asked: np.ndarray) -> np.ndarray:
        """Return the answers as :func:`quit.stages.selection.select` takes them."""
        answers = np.full(self.accepted.shape, -1, dtype=np.int8)
        for answer, accepted, wave in zip(answers, self.accepted, self.waves(asked), strict=True):
            answer[wave] = accepted[wave]
        return answers

    def cost(self, asked: np.ndarray) -> dict[str, float]:
        """Return what asking some passages costs, as shares of asking every labeler about all of them: passages,
        answers, and computed prompt tokens."""
        waves = list(self.waves(asked))
        tokens = [computed_tokens(wave, self.prompt_tokens, self.hints)[wave].sum() for wave in waves]
        answers = sum(int(wave.sum()) for wave in waves) / self.accepted.size
        return {"passages": float(asked.mean()), "answers": answers, "tokens": float(sum(tokens)) / self.computed}

    def of_questions(self, rows: np.ndarray) -> Collection:
        """Return the collection with some of its questions, in that order."""
        return replace(self, accepted=self.accepted[:, rows], prompt_tokens=self.prompt_tokens[rows])

    def in_order(self, order: Sequence[int]) -> Collection:
        """Return the collection with its labelers asked in another order."""
        return replace(
            self, labelers=tuple(self.labelers[number] for number in order), accepted=self.accepted[[*order]]
        )


def load(folder: Path) -> tuple[Collection, Tables]:
    """Return the full answers of a workspace, the labelers in the order that needs fewest answers."""
    tables = quit.open(folder)
    labels = tables.arrow("labels")
    questions = dict.fromkeys(labels.column("question_id").to_pylist())
    by_passage = labels.column("labelers").to_pylist()
    labelers = tuple(sorted({name for names in by_passage for name in names}))
    accepted = np.array([[name in names for names in by_passage] for name in labelers])
    texts = dict(zip(*(tables.arrow("questions").column(name).to_pylist() for name in ("question_id", "question"))))
    hints = selected_hints(tables.arrow("ranked_hints"))
    last_turn = load_prompt("reader").turns[-1][1]
    lengths = [
        [*(len(" " + hint) for hint in hints[question]), len(last_turn) + len(texts[question])]
        for question in questions
    ]
    tokens = (np.array(lengths) / CHARACTERS_A_TOKEN).round()
    collection = Collection(folder.name, labelers, accepted.reshape(len(labelers), len(questions), -1), tokens)
    return min(map(collection.in_order, _orders(collection)), key=lambda ordered: _exact(ordered)["answers"]), tables


def _orders(collection: Collection) -> Iterator[tuple[int, ...]]:
    return itertools.permutations(range(len(collection.labelers)))


def _exact(collection: Collection) -> dict:
    """Return what the exact mode costs, and the saved answers as a share of those that an order could save at best:
    all but one of the labelers' for each passage of label 2."""
    cost = collection.cost(np.ones(collection.label_2.shape, dtype=bool))
    labelers = len(collection.labelers)
    most = collection.label_2.mean() * (labelers - 1) / labelers
    saved = (1 - cost["answers"]) / most if most else None
    return {
        "order": list(collection.labelers),
        "label_2": float(collection.label_2.mean()),
        **cost,
        "of_possible": saved,
    }


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
    return predictions(answered, collection.hints, LOOKS, collection.prompt_tokens)


def _random(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    draw = rng.random(collection.label_2.shape)
    for share in LOOKS:
        asked = drawn(draw, round(share * draw.size))
        yield asked, majority(collection.label_2, asked, collection.hints)


def _random_model(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    answered = Answered(collection.ask, collection.label_2.shape)
    answered.add(np.ones(collection.label_2.shape, dtype=bool))
    for asked, _ in _random(collection, rng):
        yield asked, predict(answered.label_2, answered.firm, asked, collection.hints) >= 0.5


def _fixed(collection: Collection, rng: np.random.Generator) -> Iterator[Point]:
    rank = rng.random(collection.label_2.shape).argsort(axis=1).argsort(axis=1)
    for share in LOOKS:
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
            yield {"kind": "curve", "method": method, **_summary(rows)}


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
            outcomes.setdefault(key, []).append(_outcome(sample, looks, Options(error=error), draw))
    for (drawn_again, error), rows in outcomes.items():
        yield {"kind": "promise", "drawn": drawn_again, "promised": error, "repetitions": repetitions, **_summary(rows)}
    for look_rows in zip(*points, strict=True):
        yield {"kind": "curve", "method": OURS, **_summary(look_rows)}


def _point(collection: Collection, asked: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    return {**collection.cost(asked), "error": float((~asked & (predicted != collection.label_2)).mean())}


def _resampled(collection: Collection, rng: np.random.Generator) -> Collection:
    questions = collection.label_2.shape[0]
    return collection.of_questions(np.sort(rng.integers(0, questions, questions)))


def _outcome(collection: Collection, looks: Sequence[Point], options: Options, draw: np.ndarray) -> dict:
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


def _summary(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: _interval([row[name] for row in rows]) for name in rows[0]}


def _interval(values: Sequence[float]) -> list[float]:
    """Return mean, 5th and 95th percentile."""
    return [float(np.mean(values)), *np.quantile(np.asarray(values, dtype=float), (0.05, 0.95)).tolist()]


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark of a workspace's passages needs: BM25's ranking of all of them for each question and of its own,
    and the answer of a reader that is no labeler, from the own passage that BM25 ranks first.

    ``runs``: name -> question -> rows of passages, as text; ``forms``: labelers' answers, (questions, passages) each.
    """

    collection: Collection
    runs: Mapping[str, Mapping[str, Sequence[str]]]
    gold: Sequence[Sequence[str]]
    reader: str
    read: Sequence[str]
    forms: Sequence[np.ndarray]

    @classmethod
    def of(cls, collection: Collection, tables: Tables) -> Benchmark:
        """Rank and read the passages of a workspace."""
        table, (questions, size) = permutation_table(collection.hints), collection.label_2.shape
        ids = tables.arrow("labels").column("question_id").to_pylist()[::size]
        hints, known = selected_hints(tables.arrow("ranked_hints")), tables.pandas("questions").set_index("question_id")
        index = Bm25.of(passage_texts([hints[name] for name in ids], table).to_pylist(), k1=1.2, b=0.75)
        answers = tables.sql(
            "SELECT question_id, permutation, reader, answer FROM answers "
            "JOIN distinct_answers USING (question_id, reader, number)"
        ).to_pandas()
        given = {
            name: rows.set_index(["question_id", "permutation"]).answer for name, rows in answers.groupby("reader")
        }
        reader = min(set(given) - set(collection.labelers))
        runs: dict[str, dict[str, list[str]]] = {"all": {}, "own": {}}
        read = []
        for row, name in enumerate(ids):
            scores = index.scores(known.question[name])
            scores = np.zeros(questions * size) if scores is None else scores
            own = row * size + np.argsort(-scores[row * size : (row + 1) * size], kind="stable")[:10]
            for scope, best in (("all", np.argsort(-scores, kind="stable")[:10]), ("own", own)):
                runs[scope][name] = [str(place) for place in best]
            read.append(given[reader][name, table.permutation[int(own[0]) - row * size].as_py()])
        forms = [given[labeler].loc[ids].to_numpy().reshape(questions, size) for labeler in collection.labelers]
        return cls(collection, runs, [list(known.answers[name]) for name in ids], reader, read, forms)

    def figures(self, label_2: np.ndarray, asked: np.ndarray) -> dict[str, float]:
        """Return the figures with these labels; valid answers are the gold ones and what labelers answered correctly
        when they were asked."""
        size = label_2.shape[1]
        qrels = {
            name: {str(row * size + place): 2 if is_2 else 1 for place, is_2 in enumerate(label_2[row])}
            for row, name in enumerate(self.runs["all"])
        }
        values = {
            f"{name}, {scope} passages": mean(list(run_values(run, qrels, Measure.parse(name)).values()))
            for scope, run in self.runs.items()
            for name in FIGURES
        }
        valid = [set(gold) for gold in self.gold]
        waves = self.collection.waves(asked)
        for forms, wave, accepted in zip(self.forms, waves, self.collection.accepted, strict=True):
            for row, right in enumerate(wave & accepted):
                valid[row].update(forms[row][right])
        matches = [exact_match(answer, sorted(golds)) for answer, golds in zip(self.read, valid, strict=True)]
        return {**values, f"EM of {self.reader}": mean(matches)}


def effects(collection: Collection, tables: Tables, errors: Sequence[float], repetitions: int) -> Iterator[dict]:
    """Yield the figures of a benchmark with exact labels (promised: 0) and with estimated ones."""
    benchmark, shape = Benchmark.of(collection, tables), collection.label_2.shape
    exact = benchmark.figures(collection.label_2, np.ones(shape, dtype=bool))
    yield {"kind": "figures", "promised": 0.0, "repetitions": 1, **_summary([exact])}
    for error in errors:
        rows = []
        for seed in range(repetitions):
            selection = select(
                list(benchmark.runs["all"]),
                collection.hints,
                collection.ask,
                Options(error=error),
                draw=np.random.default_rng(seed).random(shape),
                prompt_tokens=collection.prompt_tokens,
            )
            asked = selection.reason > 0
            rows.append(benchmark.figures(np.where(asked, collection.label_2, selection.probability >= 0.5), asked))
        yield {"kind": "figures", "promised": error, "repetitions": repetitions, **_summary(rows)}


def main() -> None:
    """Simulate on each workspace, or print and draw what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspaces", nargs="*", type=Path, help="folders of workspaces with all answers")
    parser.add_argument("--out", type=Path, required=True, help="JSON Lines file; rows are added")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--errors", default="0.02,0.05", help="promised shares of wrong labels")
    parser.add_argument("--tables", action="store_true", help="print the rows of --out")
    parser.add_argument("--picture", type=Path, help="draw the curves of --out")
    options = parser.parse_args()
    errors = [float(error) for error in options.errors.split(",")]
    for folder in options.workspaces:
        collection, tables = load(folder)
        about = {"collection": collection.name, "questions": collection.label_2.shape[0]}
        parts = [
            ({"kind": "exact", **_exact(collection.in_order(order))} for order in _orders(collection)),
            ours(collection, errors, options.repetitions),
            others(collection, options.repetitions),
        ]
        if len(tables.sql("SELECT DISTINCT reader FROM answers")) > len(collection.labelers):
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
