"""Each instrument of the pipeline on its own.

Functions that ask a model take ``profile``, a profile's name or the path of a TOML file. The models of the last four
profiles stay loaded.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from quit.errors import InputError
from quit.evaluate.metrics import Measure, mean, run_values
from quit.library.arguments import as_list, as_texts
from quit.models.factory import Models
from quit.models.judges import Ruling, rule
from quit.models.protocols import HintSet, JudgeItem
from quit.retrieval.records import clean_id
from quit.retrieval.trec import HIGHEST, best_first, read_qrels, read_run
from quit.settings import load, parse
from quit.settings.loading import flatten
from quit.sources.drafts import distinct
from quit.stages.labelling.passages import PassageRows, passage_texts
from quit.stages.leaks.find import Finding
from quit.stages.leaks.find import find_leaks as find_leaks_in_hints
from quit.text.words import counted

Run: TypeAlias = "Mapping[str, Sequence[str] | Mapping[str, float]] | str | Path"
Qrels: TypeAlias = "Mapping[str, Mapping[str, int]] | str | Path"


def _models(profile: str | Path) -> Models:
    settings = load(profile).settings
    paths = [Path(value) for _, value in flatten(settings.model_dump()) if isinstance(value, str) and value]
    changes = [status.st_mtime_ns for path in paths if (status := _status(path))]
    return _models_of(settings.model_dump_json(), tuple(changes))


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file that a setting names: a prompt, a model's folder; None where it names none."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=4)
def _models_of(settings: str, _: tuple[int, ...]) -> Models:
    """Return the models of settings; the second argument changes with the files that they name."""
    return Models(parse(json.loads(settings)))


def find_leaks(
    question: str, answers: Sequence[str], hints: Sequence[str], *, profile: str | Path = "embedded"
) -> list[list[Finding]]:
    """Find what gives an answer away in each hint (section 3.1.2 of the QUIT paper).

    Args:
        question: The question.
        answers: All its valid answers.
        hints: The texts to look at.
        profile: Name of a profile, or the path of a TOML file, whose models and rules are used.

    Returns:
        Per hint its findings, most certain first: ``span``, ``answer``, ``probability`` and ``method``.

    Raises:
        SettingsError: There is no such profile, or it is wrong.
    """
    models = _models(profile)
    settings = load(profile).settings.leakage
    [question] = as_texts(question, "question")
    texts = as_texts(answers, "answers"), as_texts(hints, "hints")
    return find_leaks_in_hints(question, *texts, models.equivalence, models.encoder, settings)


def convergence(
    question: str, answer: str, hints: Sequence[str], candidates: Sequence[str], *, profile: str | Path = "embedded"
) -> list[float]:
    """Score how far each hint narrows the candidate answers (section 3.1.2 of the QUIT paper).

    Args:
        question: The question.
        answer: Its answer.
        hints: The texts to score.
        candidates: Wrong answers that the hints have to rule out, best known first.
        profile: Name of a profile, or the path of a TOML file.

    Returns:
        A score per hint, 0 to 1.

    Raises:
        SettingsError: There is no such profile, or it is wrong.
    """
    cap = load(profile).settings.convergence.candidate_cap
    wrong = distinct(as_texts(candidates, "candidates"))[: cap - 1]
    [question], [answer] = as_texts(question, "question"), as_texts(answer, "answer")
    item = HintSet(question, tuple(as_texts(hints, "hints")), answer, wrong)
    return _models(profile).convergence.values([item])[0]


def passages(hints: Sequence[str]) -> dict[str, str]:
    """Make the passages of up to seven hints: every ordered selection (section 3.2.1 of the QUIT paper).

    Args:
        hints: Texts of the hints, in rank order.

    Returns:
        Permutation -> text, in the pipeline's order. Five hints make 325 passages; ``"402"`` is the fifth hint, then
        the first, then the third.
    """
    ranked = as_texts(hints, "hints")
    rows = PassageRows.full(1, len(ranked))
    return dict(zip(rows.permutation.to_pylist(), passage_texts([ranked], rows).to_pylist(), strict=True))


def judge(question: str, gold_answers: Sequence[str], answer: str, *, profile: str | Path = "embedded") -> Ruling:
    """Judge whether an answer is right (GPT-Eval, section 3.2.2 of the QUIT paper).

    Args:
        question: The question.
        gold_answers: Its published answers.
        answer: The answer to judge.
        profile: Name of a profile, or the path of a TOML file.

    Returns:
        ``verdict`` (``correct``, ``probability``) and ``basis``: ``exact``, ``no_answer`` or ``model``.

    Raises:
        SettingsError: There is no such profile, or it is wrong.
        ServerError: The judge's server does not answer.
    """
    [question], [answer] = as_texts(question, "question"), as_texts(answer, "answer")
    item = JudgeItem("question", question, tuple(as_texts(gold_answers, "gold_answers")), answer)
    return rule([item], _models(profile).judge)[0]


def evaluate_run(run: Run, qrels: Qrels, metrics: Iterable[str] = ("Hit@1", "MRR@100", "nDCG@10")) -> dict[str, float]:
    """Score a run against qrels.

    Args:
        run: Question -> passage ids, best first (or id -> score); or a TREC run file. Of equal scores, later ids come
            first, as in trec_eval.
        qrels: Question -> passage id -> label, or a TREC qrels file.
        metrics: ``Hit@k``, ``Recall@k``, ``MRR@k``, ``nDCG@k`` (gain: the label), ``nDCG(exp)@k`` (gain: 2^label - 1,
            as in the QUIT paper), with a lowest label as in ``Hit(rel=2)@1``.

    Returns:
        Metric -> mean over the questions of ``qrels``. A question without a relevant passage counts as 0.

    Raises:
        InputError: A file or a line cannot be read, or no question of the run has qrels (a warning where some have
            none).
        SettingsError: A metric is unknown.
    """
    relevance: Mapping[str, Mapping[str, int]] = (
        read_qrels(Path(qrels)) if isinstance(qrels, str | Path) else _by_question(qrels, "qrels")
    )
    scores = read_run(Path(run))[1] if isinstance(run, str | Path) else _by_question(run, "run")
    rankings = {
        query: list(best_first(ranked) if isinstance(ranked, Mapping) else ranked) for query, ranked in scores.items()
    }
    if unknown := [query for query in rankings if query not in relevance]:
        fault = (
            f"{len(unknown)} of the run's {counted(len(rankings), 'question')} are not in the qrels, "
            f"such as {', '.join(map(repr, unknown[:3]))}"
        )
        if len(unknown) == len(rankings):
            raise InputError(f"{fault}. Ids of the qrels are like {next(iter(relevance), 'none')!r}.")
        warnings.warn(f"{fault}: not scored.", stacklevel=2)
    values = {text: run_values(rankings, relevance, Measure.parse(text)) for text in as_list(metrics)}
    return {text: mean(list(of_metric.values())) for text, of_metric in values.items()}


def _by_question(rows: Any, what: str) -> Mapping[str, Any]:
    """Return question -> passage -> value, or question -> passages, with ids as texts.

    Raises ``InputError`` for a question or passage twice, and a value that is no finite number (of qrels: no whole
    number).
    """
    if not isinstance(rows, Mapping):
        raise InputError(f"The {what} is of the type {type(rows).__name__}; expected a file, or question -> passages.")
    by_question = {}
    for question, passages in rows.items():
        if clean_id(str(question)) in by_question:
            raise InputError(f"The {what} has the question {question!r} a second time: leave one out.")
        by_question[clean_id(str(question))] = _of_mapping(question, passages, what)
    return by_question


def _of_mapping(question: Any, passages: Any, what: str) -> dict[str, Any] | list[str]:
    """Return a question's passages with their values, or best first, ids as texts. Raises as :func:`_by_question`."""
    if isinstance(passages, Mapping):
        for passage, value in passages.items():
            if not _is_number(value, what):
                kind = "finite" if what == "run" else "whole"
                raise InputError(f"The {what}, {question!r}, {passage!r}: {value!r}. Expected a {kind} number.")
        of_question = {clean_id(str(passage)): value for passage, value in passages.items()}
        if len(of_question) < len(passages):
            raise InputError(f"The {what}, {question!r} has a passage twice: leave one out.")
        return of_question
    is_list = what == "run" and isinstance(passages, Iterable) and not isinstance(passages, str)
    ranked = [*passages] if is_list else [None]
    if not all(isinstance(passage, str | int | np.integer) for passage in ranked):
        expected = "passage -> score, or ids, best first" if what == "run" else "passage -> label"
        raise InputError(f"The {what}, {question!r}: {repr(passages)[:80]}. Expected {expected}.")
    return [clean_id(str(passage)) for passage in ranked]


def _is_number(value: Any, what: str) -> bool:
    """Return whether a value is a number that float32 holds, and of qrels a whole one."""
    is_finite = isinstance(value, int | float | np.integer | np.floating) and -HIGHEST < value < HIGHEST
    return bool(is_finite and (what == "run" or value == int(value)))
