"""What estimated labels do to the figures of a benchmark: one retriever, one reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.economy_data import Collection, summary
from quit import Tables
from quit.evaluate.metrics import Measure, exact_match, mean, run_values
from quit.retrieval.lexical import Bm25
from quit.stages.labelling.passages import passage_texts, permutation_table
from quit.stages.read import selected_hints
from quit.stages.selection import ErrorGuarantee, select

FIGURES = ("nDCG(exp)@10", "Hit(rel=2)@1", "MRR(rel=2)@10")


@dataclass(frozen=True)
class Benchmark:
    """BM25's ranking for each question, once of all passages and once of the question's passages, and the answer that a
    reader (not a labeler) gives from the first passage of the second ranking.

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
                runs[scope][name] = [str(passage) for passage in best]
            read.append(given[reader][name, table.permutation[int(own[0]) - row * size].as_py()])
        forms = [given[labeler].loc[ids].to_numpy().reshape(questions, size) for labeler in collection.labelers]
        return cls(collection, runs, [list(known.answers[name]) for name in ids], reader, read, forms)

    def figures(self, label_2: np.ndarray, asked: np.ndarray) -> dict[str, float]:
        """Return the figures with these labels; valid answers are the gold ones and what labelers answered correctly
        when they were asked."""
        size = label_2.shape[1]
        qrels = {
            name: {str(row * size + passage): 2 if is_2 else 1 for passage, is_2 in enumerate(label_2[row])}
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
    yield {"kind": "figures", "promised": 0.0, "repetitions": 1, **summary([exact])}
    for error in errors:
        rows = []
        for seed in range(repetitions):
            selection = select(
                list(benchmark.runs["all"]),
                collection.hints,
                collection.ask,
                ErrorGuarantee(error=error),
                draw=np.random.default_rng(seed).random(shape),
                prompt_tokens=collection.prompt_tokens,
            )
            asked = selection.reason > 0
            rows.append(benchmark.figures(np.where(asked, collection.label_2, selection.probability >= 0.5), asked))
        yield {"kind": "figures", "promised": error, "repetitions": repetitions, **summary(rows)}
