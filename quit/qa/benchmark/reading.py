"""What readers answer: to the contexts that a system's passages give, and to each passage of a question (paper, section
5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quit.errors import InputError
from quit.models.protocols import NO_ANSWER, Prompt
from quit.models.user_classes import user_code
from quit.qa.benchmark.contexts import ContextKind, Sentences
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.task import BenchmarkQuery, ReleaseTask
from quit.qa.contracts.benchmark import ANSWERS
from quit.text.words import counted


@dataclass(frozen=True)
class ReaderAnswers:
    """The answers of one reader to one kind of context of one system: one per question."""

    system: System
    reader: str
    strategy: str
    k: int
    answers: list[str]


def read(runner: Runner, system: System, name: str) -> list[ReaderAnswers]:
    """Return a reader's answers to the contexts of a system: every strategy at every k."""
    settings = runner.settings
    weights = (settings.alpha, settings.beta, settings.freq_sentences)
    kinds = [ContextKind(strategy, k, *weights) for k in settings.k for strategy in settings.strategies]
    answers = zip(kinds, read_contexts(runner, system, name, kinds), strict=True)
    return [ReaderAnswers(system, name, kind.strategy, kind.k, replies) for kind, replies in answers]


def read_contexts(runner: Runner, system: System, name: str, kinds: Sequence[ContextKind]) -> list[list[str]]:
    """Return a reader's answers to some kinds of context of a system: of each kind one per question.

    A question without any passage gets NO ANSWER without being asked: without context it would be the parametric probe.
    """
    task = system.task
    deepest = max(kind.k for kind in kinds)
    passages = [task.passages.sentences(ranking.rows[:deepest].tolist()) for ranking in system.rankings]
    contexts = [[kind.context(of_question) for kind in kinds] for of_question in passages]
    answers_of = _answers(runner, f"{task.name}: {system.name}: {name}", name, task.queries, contexts)
    return [
        [answers_of[query].get(contexts_of[number], NO_ANSWER) for query, contexts_of in enumerate(contexts)]
        for number in range(len(kinds))
    ]


def read_passages(runner: Runner, task: ReleaseTask, name: str) -> list[dict[int, str]]:
    """Return a reader's answers to each of a question's own passages, by row: what Optimal is made of (section 5.4).

    The release's own answers, where this reader gave all of them; else the reader is asked.
    """
    dataset = runner.dataset
    rows = [task.relevance.rows(number) for number in range(len(task.queries))]
    identities = {info.name: info.identity for info in dataset.ordered_readers}
    if identities.get(name) == runner.reader(name).identity and dataset.answers[name].asked is None:
        number = list(identities).index(name)
        answers = (
            block.values[code]
            for block in dataset.blocks(task.relevance.groups)
            for code in block.codes[:, number].tolist()
        )
        return [{row: next(answers) for row in of_question} for of_question in rows]
    contexts = [task.passages.sentences(of_question) for of_question in rows]
    label = f"{task.name}: every passage: {name}"
    answers_of = _answers(runner, label, name, task.queries, contexts, task.passages.identity)
    return [
        {row: by_context[context] for row, context in zip(of_question, contexts_of, strict=True)}
        for of_question, by_context, contexts_of in zip(rows, answers_of, contexts, strict=True)
    ]


def _answers(
    runner: Runner,
    label: str,
    name: str,
    queries: Sequence[BenchmarkQuery],
    contexts: Sequence[Sequence[Sentences]],
    source: str | None = None,
) -> list[dict[Sentences, str]]:
    """Return context -> answer for each question; a context that occurs twice is read once, an empty one not at all.

    ``source``: identity of what the contexts follow from, where they are too many to be hashed.
    """
    reader = runner.reader(name)
    distinct = [[context for context in dict.fromkeys(contexts_of) if context] for contexts_of in contexts]
    key = {
        "reader": reader.identity,
        "questions": [[query.question, query.coarse, query.fine] for query in queries],
        "contexts": source or distinct,
    }

    def make(places: range) -> list[dict[str, Any]]:
        owners = [(queries[number], context) for number in places for context in distinct[number]]
        prompts = [
            Prompt(query.question_id, query.question, context, query.coarse, query.fine) for query, context in owners
        ]
        with user_code(f"A reader ({label}) raised"):
            replies = [reply.answer for reply in reader.answer(prompts)] if prompts else []
        if len(replies) != len(prompts):
            raise InputError(
                f"A reader ({label}) returned {counted(len(replies), 'reply', 'replies')} to "
                f"{counted(len(prompts), 'prompt')}."
            )
        return [
            {"question_id": query.question_id, "context": " ".join(context), "answer": reply}
            for (query, context), reply in zip(owners, replies, strict=True)
        ]

    names = [query.question_id for query in queries]
    _, table = runner.stages.table("read", label, key, names, ANSWERS, make)
    answers = iter(table["answer"].to_pylist())  # rows are in the order of questions and their contexts
    return [{context: next(answers) for context in contexts_of} for contexts_of in distinct]
