"""How good are the instruments as shipped? Each is measured against people or published labels.

    python -m benchmarks.instruments equivalence pairs.jsonl
    python -m benchmarks.instruments leakage tests/stages/leaks/cases.jsonl
    python -m benchmarks.instruments question-type labels.txt
    python -m benchmarks.instruments question-type wikihint:test.json
    python -m benchmarks.instruments convergence triviahg:Copilot.json
    python -m benchmarks.instruments reader wikihint:test.json minilm-statement
    python -m benchmarks.instruments difficulty WORKSPACE

``pairs.jsonl`` has a line {question, answers, candidate, label} per pair, a file of cases {hint, answer, leaks,
question?, kind?}, ``labels.txt`` is in TREC's format (``LOC:city Which city ...``). Prints JSON; shares are between 0
and 1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy import stats

from quit.commands.options import open_workspace
from quit.errors import InputError
from quit.evaluate.association import spearman
from quit.evaluate.metrics import exact_match
from quit.evaluate.significance import accuracy_interval
from quit.models.convergence_scored import convergence
from quit.models.factory import Models
from quit.models.protocols import NO_ANSWER, HintSet, Pair, Prompt
from quit.operations.instruments import Figures, judged_pairs, label_of, labelled_rows, rates
from quit.settings import Settings
from quit.sources import SourceRef, parse_source, read_source
from quit.sources.records import RawQuestion
from quit.stages.leaks.find import LeakItem, find_leaks_of
from quit.stages.questions.candidates import candidate_pool
from quit.text.answers import answer_key
from quit.text.normalize import squad_normalised


def equivalence(path: Path, models: Models) -> Figures:
    """Agreement of the equivalence model with human verdicts.

    ``path``: JSONL of {question, answers, candidate, label}. Returns n, questions, accuracy, accuracy_interval (95%,
    over draws of questions), precision, recall, f1 (of "equivalent"), calibration_error (expected calibration error of
    the confidence, over ten bins of equal width), and what two rules without a model reach on the same pairs:
    exact_match_accuracy and containment_accuracy (an answer occurs in the candidate as whole words), normalised.
    """
    labels, sizes, pairs, questions = [], [], [], []
    exact, contained = [], []
    for item, truth in judged_pairs(path):
        labels.append(truth)
        sizes.append(len(item.gold_answers))
        questions.append(item.question)
        candidate, golds = squad_normalised(item.candidate), set(map(squad_normalised, item.gold_answers))
        exact.append(candidate in golds)
        contained.append(any(gold and f" {gold} " in f" {candidate} " for gold in golds))
        pairs += [Pair(item.question, answer, item.candidate) for answer in item.gold_answers]
    values = models.equivalence.probability(pairs)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    wanted, best = np.array(labels), np.maximum.reduceat(values, starts)
    return {
        "n": len(labels),
        "questions": len(set(questions)),
        **_binary(best, wanted),
        "accuracy_interval": accuracy_interval((best >= 0.5) == wanted, questions),
        "exact_match_accuracy": float((np.array(exact) == wanted).mean()),
        "containment_accuracy": float((np.array(contained) == wanted).mean()),
    }


def leakage(path: Path, models: Models, settings: Settings) -> Figures:
    """Precision and recall of the leakage check on hand-made cases.

    ``path``: JSONL of {hint, answer (or answers), leaks, question?, kind?}. Returns n, precision, recall (each with its
    95% interval, Wilson's), f1, accuracy, the cases it gets wrong, and the right ones by kind where cases name one.
    """
    # Whether a string occurs in a string needs no judgement: only what takes some is measured.
    judged = settings.leakage.model_copy(update={"contained": False})
    cases: list[LeakItem] = []
    wanted, kinds, lines = [], [], []
    for number, row in labelled_rows(path, ("hint", "leaks")):
        answers = row.get("answers") or [row.get("answer")]
        if not all(isinstance(answer, str) and answer for answer in answers):
            raise InputError(f"{path}, line {number}: expected answer (a text) or answers (texts).")
        cases.append(LeakItem(row.get("question") or "", answers, [row["hint"]]))
        wanted.append(label_of(row["leaks"], path, number))
        kinds.append(row.get("kind"))
        lines.append(number)
    flagged = [bool(leaks) for [leaks] in find_leaks_of(cases, models.equivalence, models.encoder, judged)]
    wrong = [
        {"line": number, "hint": case.hints[0], "answers": case.answers, "leaks": truth}
        for number, case, truth, leaks in zip(lines, cases, wanted, flagged, strict=True)
        if leaks != truth
    ]
    by_kind = {}
    for kind in sorted({kind for kind in kinds if kind}):
        right = [leaks == truth for leaks, truth, own in zip(flagged, wanted, kinds, strict=True) if own == kind]
        by_kind[kind] = {"n": len(right), "right": sum(right)}
    hits = sum(leaks and truth for leaks, truth in zip(flagged, wanted, strict=True))
    return {
        "n": len(flagged),
        **rates(np.array(flagged), np.array(wanted)),
        "precision_interval": _wilson(hits, sum(flagged)),
        "recall_interval": _wilson(hits, sum(wanted)),
        "wrong": wrong,
        "by_kind": by_kind,
    }


def question_type(path: Path, models: Models) -> Figures:
    """Accuracy of the question types on a file in the TREC format (``COARSE:fine question``, Latin-1 or UTF-8)."""
    from quit.models.question_type import FINE, from_trec

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")  # as the official files are
    labels, questions = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        label, _, question = line.strip().partition(" ")
        if label not in FINE or not question:
            raise InputError(
                f"{path}, line {number}: expected a label such as LOC:city and a question, found {line[:60]!r}."
            )
        labels.append(from_trec(label))
        questions.append(question)
    if not questions:
        raise InputError(f"{path} holds no labelled question.")
    guesses = models.question_types.classify(questions)
    coarse = [guess.coarse == label[0] for guess, label in zip(guesses, labels, strict=True)]
    fine = [(guess.coarse, guess.fine) == label for guess, label in zip(guesses, labels, strict=True)]
    return {"n": len(labels), "coarse_accuracy": float(np.mean(coarse)), "fine_accuracy": float(np.mean(fine))}


def question_type_agreement(source: SourceRef, models: Models) -> Figures:
    """How often the classifier agrees with a source's own question types.

    Returns n (questions whose source names both levels), coarse_agreement, fine_agreement, outside_taxonomy (questions
    whose coarse type is none of TREC's, such as OTH:OTHER: no agreement is possible), coarse_agreement_in_taxonomy (of
    the others) and confusion: the ten most frequent disagreements, each {source, classifier, n, example}.
    """
    from quit.models.question_type import COARSE

    typed = [question for question in questions_of(source) if question.coarse and question.fine]
    if not typed:
        raise InputError(f"{source} names no question types to compare with.")
    guesses = models.question_types.classify([question.question for question in typed])
    coarse, fine, kept = [], [], []
    apart: dict[tuple[str, str], list[str]] = {}
    for guess, question in zip(guesses, typed, strict=True):
        coarse.append(guess.coarse == question.coarse)
        fine.append(guess.fine == question.fine)
        if question.coarse in COARSE.values():
            kept.append(coarse[-1])
        if not (coarse[-1] and fine[-1]):
            key = (f"{question.coarse} / {question.fine}", f"{guess.coarse} / {guess.fine}")
            apart.setdefault(key, []).append(question.question)
    ranked = sorted(apart.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "n": len(typed),
        "coarse_agreement": float(np.mean(coarse)),
        "fine_agreement": float(np.mean(fine)),
        "coarse_agreement_in_taxonomy": float(np.mean(kept)) if kept else None,
        "outside_taxonomy": len(typed) - len(kept),
        "confusion": [
            {"source": theirs, "classifier": ours, "n": len(questions), "example": questions[0]}
            for (theirs, ours), questions in ranked[:10]
        ],
    }


def convergence_agreement(source: SourceRef, models: Models, settings: Settings) -> Figures:
    """How well convergence is recomputed from a source's scores, and how the model's ranks with the published one.

    Returns n (hints with a published convergence), scored (those with scores), exact_match (recomputed equals
    published), spearman (the model's against published, over all hints; None where one
    of them is the same for all) and model (its identity). The shipped model was trained on published values, so its
    figure on those very files is not one of unseen data: its card has those.
    """
    questions = [
        question for question in questions_of(source) if any(hint.convergence is not None for hint in question.hints)
    ]
    published: list[float] = []
    exact: list[bool] = []
    collection = pa.table(
        {
            "question_id": [str(position) for position in range(len(questions))],
            **{name: [getattr(row, name) for row in questions] for name in ("question", "coarse", "fine")},
            "answers": [list(question.answers) for question in questions],
        }
    )
    rivals = []
    for question in questions:
        gold = {answer_key(answer) for answer in question.answers}
        rivals.append([candidate for candidate in question.candidates if answer_key(candidate) not in gold])
    bare = [row for row, scored_hints in enumerate(rivals) if not scored_hints]
    if bare:
        drawn = candidate_pool(collection, models, settings).draw(
            collection.take(pa.array(bare, pa.int64())).to_pylist()
        )
        for row, candidates in zip(bare, drawn, strict=True):
            rivals[row] = [candidate.candidate for candidate in candidates]
    items = []
    for question, others, (coarse, _) in zip(questions, rivals, types_of(questions, models), strict=True):
        scored_hints = [hint for hint in question.hints if hint.convergence is not None]
        counted = tuple(others[: settings.convergence.candidate_cap - 1])
        texts = tuple(hint.text for hint in scored_hints)
        items.append(HintSet(question.question, texts, question.answers[0], counted, coarse))
        published += [value for hint in scored_hints if (value := hint.convergence) is not None]
        for hint in scored_hints:
            if hint.scores:
                *wrong, last = hint.scores.values()
                exact.append(convergence(wrong, last, settings.convergence.candidate_cap) == hint.convergence)
    if not published:
        raise InputError(f"{source} publishes no convergence to compare with.")
    model = models.convergence
    computed = [value for of_question in model.values(items) for value in of_question]
    return {
        "n": len(published),
        "scored": len(exact),
        "exact_match": float(np.mean(exact)) if exact else None,
        "spearman": spearman(published, computed),
        "model": model.identity,
    }


def types_of(questions: Sequence[RawQuestion], models: Models) -> list[tuple[str, str]]:
    """Return each question's coarse and fine type: its source's own, else the classifier's."""
    untyped = [question.question for question in questions if not (question.coarse and question.fine)]
    guesses = iter(models.question_types.classify(untyped))
    types = []
    for question in questions:
        if question.coarse and question.fine:
            types.append((question.coarse, question.fine))
        else:
            guess = next(guesses)
            types.append((guess.coarse, guess.fine))
    return types


def questions_of(source: SourceRef) -> Iterator[RawQuestion]:
    """Yield the questions of a source, without what is rejected."""
    return (record.question for record in read_source(source) if record.question is not None)


def reader(source: SourceRef, name: str, models: Models) -> Figures:
    """How often an embedded reader picks the gold answer, with and without hints.

    ``candidates_*``: among the question's own candidates; ``pool_*``: out of all answers of the source of a fitting
    type; ``no_answer_*``: how often the reader would have said NO ANSWER instead of its best guess from the pool. Hints
    are the five of highest convergence, as in a build.
    """
    from quit.models.readers import AnswerPool, embedded_method, embedded_reader

    embedded_method(name)  # an unknown one is refused before the source is read
    questions = [question for question in questions_of(source) if question.candidates and question.hints]
    if not questions:
        raise InputError(f"{source} has no question with hints and candidate answers.")
    types = types_of(questions, models)
    entries = [
        (answer, *typed)
        for question, typed in zip(questions, types, strict=True)
        for answer in (*question.answers, *question.candidates)
    ]
    background = [hint.text for question in questions for hint in question.hints]
    # Every question gets a guess here: how often a reader would rather say NO ANSWER is counted separately.
    pool = AnswerPool.build(entries, background)
    guess = {"no_answer_margin": 0.0, "thin_evidence": 0.0}
    of_pool = embedded_reader(name, models.encoder, pool, **guess)
    careful = embedded_reader(name, models.encoder, pool)
    of_candidates = [
        embedded_reader(name, models.encoder, AnswerPool.build(entries, pool.background), **guess)
        for entries in ([(answer, None, None) for answer in (*row.candidates, *row.answers[:1])] for row in questions)
    ]
    figures: Figures = {"reader": name, "n": len(questions)}
    for closed in ("candidates", "pool"):
        for shown in ("with_hints", "question_only"):
            prompts = []
            for question, (coarse, fine) in zip(questions, types, strict=True):
                best = _best_hints(question) if shown == "with_hints" else ()
                prompts.append(Prompt(question.record_id, question.question, best, coarse, fine))
            if closed == "pool":
                replies = of_pool.answer(prompts)
            else:
                replies = [each.answer([prompt])[0] for each, prompt in zip(of_candidates, prompts, strict=True)]
            right = [exact_match(reply.answer, row.answers) for row, reply in zip(questions, replies, strict=True)]
            figures[f"{closed}_{shown}"] = float(np.mean(right))
            if closed == "pool":
                silent = [reply.answer == NO_ANSWER for reply in careful.answer(prompts)]
                figures[f"no_answer_{shown}"] = float(np.mean(silent))
    return figures


def difficulty(workspace: Path) -> Figures:
    """How far difficulty goes with a build's labels: per bin the share of passages that are fully relevant, and over
    questions Spearman's correlation of difficulty with the share that is not."""
    sql = """
        SELECT any_value(difficulty_bin) AS bin, any_value(difficulty) AS difficulty, avg((label = 2)::INT) AS fully
        FROM labels JOIN descriptions USING (question_id) GROUP BY question_id"""
    with open_workspace(workspace).connect() as connection:
        columns = connection.execute(sql).fetchnumpy()
    bins, fully = columns["bin"].astype(str), columns["fully"]
    shares = {name: float(fully[bins == name].mean()) for name in ("easy", "medium", "hard") if (bins == name).any()}
    return {
        "questions": len(fully),
        "fully_relevant": shares,
        "spearman": spearman(columns["difficulty"], 1 - fully),
    }


def _best_hints(question: RawQuestion) -> tuple[str, ...]:
    best = sorted(question.hints, key=lambda hint: (-(hint.convergence or 0.0), len(hint.text)))
    return tuple(hint.text for hint in best[:5])


def _wilson(hits: int, of: int) -> tuple[float, float] | None:
    if not of:
        return None
    low, high = stats.binomtest(hits, of).proportion_ci(method="wilson")
    return round(float(low), 4), round(float(high), 4)


def _binary(probability: np.ndarray, truth: np.ndarray) -> Figures:
    confidence = np.where(probability >= 0.5, probability, 1 - probability)
    right = (probability >= 0.5) == truth
    bin_of = np.minimum((confidence * 10).astype(int), 9)
    members = [bin_of == number for number in np.unique(bin_of)]
    error = sum(rows.mean() * abs(confidence[rows].mean() - right[rows].mean()) for rows in members)
    return {**rates(probability >= 0.5, truth), "calibration_error": float(error)}


INSTRUMENTS = ("equivalence", "leakage", "question-type", "convergence", "reader", "difficulty")


def main() -> None:
    """Print the figures of an instrument on a file, a source or a workspace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instrument", choices=INSTRUMENTS)
    parser.add_argument("of", help="file, source (KIND:PATH) or workspace")
    parser.add_argument("reader", nargs="?", default="minilm-statement", help="name of an embedded reader")
    options = parser.parse_args()
    instrument, of, settings = options.instrument, options.of, Settings()
    models = Models(settings)
    if instrument == "equivalence":
        figures = equivalence(Path(of), models)
    elif instrument == "leakage":
        figures = leakage(Path(of), models, settings)
    elif instrument == "convergence":
        figures = convergence_agreement(parse_source(of), models, settings)
    elif instrument == "difficulty":
        figures = difficulty(Path(of))
    elif instrument == "reader":
        figures = reader(parse_source(of), options.reader, models)
    elif Path(of).is_file():
        figures = question_type(Path(of), models)
    else:
        figures = question_type_agreement(parse_source(of), models)
    print(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
