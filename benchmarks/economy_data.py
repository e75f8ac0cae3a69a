"""All answers of a workspace, and what asking some of them costs: for the benchmark of partial labelling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

import quit
from quit import Tables
from quit.models.prompting import CHARACTERS_A_TOKEN, load_prompt
from quit.stages.read import selected_hints
from quit.stages.selection.choice import computed_tokens


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
    return min(map(collection.in_order, orders(collection)), key=lambda ordered: exact(ordered)["answers"]), tables


def orders(collection: Collection) -> Iterator[tuple[int, ...]]:
    return itertools.permutations(range(len(collection.labelers)))


def exact(collection: Collection) -> dict:
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


def summary(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: _interval([row[name] for row in rows]) for name in rows[0]}


def _interval(values: Sequence[float]) -> list[float]:
    """Return mean, 5th and 95th percentile."""
    return [float(np.mean(values)), *np.quantile(np.asarray(values, dtype=float), (0.05, 0.95)).tolist()]
