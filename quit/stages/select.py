"""Select: choose the passages that labelers are asked about; the labels of the others are predicted.

Runs only with ``labels.partial = "estimated"``. It takes every passage of ``labels.exact_splits``, and of the others a
random audit and those that :func:`quit.stages.selection.select` chooses. The labelers are asked in waves, as with
``"exact"``. The stage ``read`` then gets their replies from the cache of replies. Applied reviews change nothing here:
they leave passages open in ``read``, which then asks the labelers that were skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa

from quit import contracts
from quit.common.columns import is_in, runs
from quit.common.ids import draw
from quit.common.progress import note
from quit.common.rows import tuples
from quit.contracts.tables import SELECTION
from quit.models.prompting import CHARACTERS_A_TOKEN
from quit.stages.labelling.answers import Answers
from quit.stages.labelling.passages import passage_count
from quit.stages.read import NOT_ASKED, answer_tables, prompts_of, selected_hints, unsolved_passages
from quit.stages.selection import Reason, select
from quit.stages.selection.strategy import Estimated
from quit.stages.stage import ANSWER_POOL_TABLES, Context, Tables, stage

_REASONS = np.array([None, *(reason.name.lower() for reason in Reason if reason)], dtype=object)


@stage(
    "select",
    whole=ANSWER_POOL_TABLES,
    outputs=SELECTION,
    scope="collection",
    on_demand=lambda settings: settings.labels.partial == "estimated",
)
def select_stage(
    context: Context,
    questions: pa.Table,
    ranked_hints: pa.Table,
    descriptions: pa.Table,
    passages: pa.Table,
    splits: pa.Table,
) -> Tables:
    """Choose the passages that labelers are asked about."""
    labels, hints = context.settings.labels, context.settings.convergence.hints
    strategy = Estimated(context.settings)
    exact = splits.filter(is_in(splits.column("split"), pa.array(labels.exact_splits, pa.string())))
    certain = is_in(passages.column("question_id"), exact.column("question_id").combine_chunks()).to_numpy()
    sampled = passages.filter(pa.array(~certain))
    reason = np.full(len(passages), None, dtype=object)
    reason[certain] = "exact"
    probability = np.full(len(passages), np.nan)
    rounds = []
    if len(sampled):
        shape = (-1, passage_count(hints))
        keys = tuples(sampled, "question_id", "permutation")
        seed = f"{context.settings.split.seed}/audit"
        draws = np.array([draw(f"{question_id}/{permutation}", seed) for question_id, permutation in keys])
        labelers = _Labelers(context, questions, ranked_hints, descriptions, sampled)
        question_ids, _ = runs(sampled.column("question_id"))
        tokens = labelers.prompt_tokens(question_ids)
        selection = select(
            question_ids, hints, labelers.ask, strategy.options, draw=draws.reshape(shape), prompt_tokens=tokens
        )
        reason[~certain] = _REASONS[selection.reason.ravel()]
        probability[~certain] = selection.probability.ravel()
        rounds = [
            {name: value for name, value in asdict(look).items() if name != "stopped"}
            | {"round": number, "passages": len(sampled), "confidence": labels.confidence}
            for number, look in enumerate(selection.rounds, start=1)
        ]
    table = {
        "question_id": passages.column("question_id"),
        "permutation": passages.column("permutation"),
        "reason": pa.array(reason, pa.string()),
        "probability": pa.array(probability, pa.float64(), from_pandas=True),  # NaN is null
    }
    return {"selection": pa.table(table), "selection_rounds": contracts.table("selection_rounds").from_rows(rounds)}


class _Labelers:
    """The labelers and their replies to the passages that may be asked, so far."""

    def __init__(
        self,
        context: Context,
        questions: pa.Table,
        ranked_hints: pa.Table,
        descriptions: pa.Table,
        passages: pa.Table,
    ) -> None:
        self._context = context
        self._tables = (questions, ranked_hints, descriptions)
        self._passages = passages
        self._names = [labeler.name for labeler in Estimated(context.settings).labelers]
        self._replies = {name: np.full(len(passages), NOT_ASKED, dtype=object) for name in self._names}

    def prompt_tokens(self, question_ids: Sequence[str]) -> np.ndarray | None:
        """Return the tokens of each question's hints and, last, of what follows them in a prompt, at four characters a
        token: float64, shape (questions, hints + 1); None where no labeler is a language model."""
        if not any(labeler.kind != "embedded" for labeler in self._context.settings.labelers):
            return None
        texts = dict(tuples(self._tables[0], "question_id", "question"))
        hints = selected_hints(self._tables[1])
        lengths = [[*map(len, hints[identity]), len(texts[identity])] for identity in question_ids]
        return np.array(lengths, dtype=np.float64) / CHARACTERS_A_TOKEN

    def ask(self, mask: np.ndarray) -> np.ndarray:
        """Ask in waves about passages not asked before (bool, shape (questions, passages of a question)); returns what
        each labeler's answer to them is: 1 accepted, 0 not accepted, -1 not asked; int8, shape (labelers, questions,
        passages of a question)."""
        passages = mask.ravel()
        note(f"select: {int(passages.sum()):,} passages are asked")
        outcome = np.full((len(self._names), len(passages)), -1, dtype=np.int8)
        to_ask = passages.copy()
        answers: list[Answers] = []
        for row, name in enumerate(self._names):
            reader = self._context.models.reader(name, self._context.whole)
            if to_ask.any():
                prompts = prompts_of(*self._tables, self._passages.filter(pa.array(to_ask)))
                self._replies[name][to_ask] = reader.answer(prompts)
            answers.append(_by_spelling(answer_tables(self._passages, reader, self._replies[name])))
            open_passages = to_ask & unsolved_passages(
                self._tables[0], answers, self._context.models.judge, frozenset()
            )
            outcome[row, to_ask] = ~open_passages[to_ask]
            to_ask = open_passages
        return outcome.reshape(-1, *mask.shape)


def _by_spelling(tables: Mapping[str, pa.Table]) -> Answers:
    """Return answers of which each spelling is judged by itself, not as it is spelled most often among all that were
    asked: else a verdict on evidence would depend on which passages the audit has."""
    distinct = tables["distinct_answers"]
    column = distinct.schema.get_field_index("answer_key")
    return Answers(tables["answers"], distinct.set_column(column, distinct.schema.field(column), distinct["answer"]))
