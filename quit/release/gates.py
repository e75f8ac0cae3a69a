"""Quality gates: what a release must hold to be one, each with a name, a reason and an explicit waiver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import duckdb
import pyarrow as pa

from quit.common.parquet import KEYS
from quit.common.progress import advance, note
from quit.common.rows import grouped, tuples
from quit.dataset.check import faults
from quit.dataset.files import TableFiles
from quit.dataset.release import ReaderInfo
from quit.errors import InputError, SettingsError, check_known
from quit.models.protocols import Encoder
from quit.settings import Settings, load, of_section
from quit.stages.labelling import verdicts
from quit.stages.labelling.passages import passage_hints, permutation_name
from quit.stages.leaks.containment import contained_in
from quit.stages.questions.alike import PlacedQuestion, near_identical, paraphrases

AT_A_TIME = 2
"""Gates that are examined at a time."""

State = Literal["passed", "failed", "waived", "not asked"]


@dataclass(frozen=True)
class Subject:
    """What is checked: tables of a workspace or a release, its readers, and the settings it was made with."""

    files: TableFiles
    readers: tuple[ReaderInfo, ...]
    settings: Settings

    def chunks(self) -> Iterator[Subject]:
        """Yield the questions in chunks (:meth:`TableFiles.chunks`)."""
        return (replace(self, files=files) for files in self.files.chunks())


class NotAsked(Exception):
    """The settings ask nothing of a gate; says why."""


@dataclass(frozen=True)
class Gate:
    """One gate. ``why``: what a violation would do to users; ``find`` returns what is wrong, one text a violation, or
    raises :class:`NotAsked`; None where the tables' contracts say it (:mod:`quit.dataset.check`); ``by_question``:
    whether it looks at one question at a time, so that questions are examined in chunks."""

    name: str
    why: str
    find: Callable[[Subject], list[str]] | None = None
    by_question: bool = False


@dataclass(frozen=True)
class GateResult:
    """What a gate found: ``state``, how many violations, some of them, and the reason of a waiver."""

    gate: str
    why: str
    state: State
    violations: int
    examples: tuple[str, ...] = ()
    waiver: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-like values."""
        return {**asdict(self), "examples": list(self.examples)}


def check(subject: Subject, waivers: Mapping[str, str] | None = None) -> list[GateResult]:
    """Return what every gate says, in order. ``waivers``: gate -> reason; one that passes needs and keeps none.

    Raises :class:`SettingsError` for a waiver of an unknown gate or without a reason.
    """
    waivers = dict(waivers or {})
    for name, reason in waivers.items():
        check_known(name, GATES, "gate")
        if not reason.strip():
            raise SettingsError(f"The waiver of {name!r} needs a reason ({name}='...'). It is published with the data.")

    limit = subject.settings.release.examples

    def examined(gate: Gate) -> GateResult:
        violations, examples = 0, list[str]()
        try:
            find = gate.find or (lambda _: by_contract.result().get(gate.name, []))
            for part in subject.chunks() if gate.by_question else [subject]:
                texts = find(part)
                violations, examples = violations + len(texts), [*examples, *texts][:limit]
        except NotAsked as reason:
            return GateResult(gate.name, gate.why, "not asked", 0, (str(reason),))
        except (InputError, pa.ArrowException, duckdb.Error, KeyError) as error:
            # What contracts say keeps other gates from looking.
            violations, examples = 1, [f"could not be examined: {error}"]
        finally:
            advance("quality gates", 1, len(GATES))
        state: State = "passed" if not violations else "waived" if gate.name in waivers else "failed"
        waiver = waivers[gate.name].strip() if state == "waived" else None
        return GateResult(gate.name, gate.why, state, violations, tuple(examples), waiver)

    rows = faults(subject.files, subject.readers, subject.settings)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        by_contract = pool.submit(lambda: grouped((fault.gate, str(fault)) for fault in rows))
        return [*pool.map(examined, GATES.values())]


def parse_waivers(texts: Sequence[str]) -> dict[str, str]:
    """Return gate -> reason from ``GATE=REASON`` texts. Raises :class:`SettingsError` for one without ``=``."""
    reasons = {}
    for text in texts:
        name, separator, reason = text.partition("=")
        if not separator:
            raise SettingsError(f"The waiver {text!r} has no '='. Write it as unjudged-answer='why it may pass'.")
        reasons[name.strip()] = reason
    return reasons


def with_release_settings(settings: Settings, texts: Sequence[str]) -> Settings:
    """Return settings with these ``release.KEY=VALUE`` texts applied. Raises ``SettingsError`` for other settings."""
    texts = of_section("release", texts)
    section = load("embedded", texts).settings.release
    keys = (text.partition("=")[0].removeprefix("release.") for text in texts)
    values = {key: getattr(section, key) for key in keys}
    return settings.model_copy(update={"release": settings.release.model_copy(update=values)})


def _answer_in_passage(subject: Subject) -> list[str]:
    """Return the valid answers that a passage states. Overrides do not count, since a release does not hold them: what
    lets such a passage through is a waiver, whose reason is published.
    """
    if subject.settings.passages.is_given:
        raise NotAsked("passages are given, and may contain an answer")
    ranked = subject.files.read("ranked_hints", ["question_id", "rank", "hint", "selected"])
    hints: dict[str, list[str]] = grouped(
        tuples(ranked.filter(ranked["selected"]).sort_by("rank"), "question_id", "hint")
    )
    stated = []
    for row in subject.files.read("valid_answers", ["question_id", "answer", "origin"]).to_pylist():
        selected, gold = hints.get(row["question_id"], []), row["origin"] == "gold"
        where = contained_in(row["answer"], selected, gold, subject.settings.leakage)
        if where is not None:
            stated.append((row["question_id"], row["answer"], gold, permutation_name(where)))
    ids = pa.array({question_id: None for question_id, *_ in stated}, pa.string())
    rows = replace(subject.files, ids=ids).read("passages", KEYS) if stated else None
    names_of: dict[str, list[str]] = grouped(tuples(rows, *KEYS)) if rows else {}
    violations = []
    for question_id, answer, gold, joined in stated:
        for name in [joined] if joined in names_of.get(question_id, ()) else names_of.get(question_id, ()):
            texts = passage_hints(hints[question_id], name)
            where = contained_in(answer, texts, gold, subject.settings.leakage)
            passage = " ".join(texts)
            if where is not None and (len(where) == 1 or answer.casefold() in passage.casefold()):
                violations.append(f"{question_id}: {answer!r} is in the passage {name}: {passage[:160]!r}")
                break
    return violations


def _question_on_two_sides(subject: Subject) -> list[str]:
    split_of = dict(tuples(subject.files.read("splits"), "question_id", "split"))
    columns = ("question_id", "question", "content_key")
    rows = [row for row in tuples(subject.files.read("questions", columns), *columns) if row[0] in split_of]
    by_key = grouped((key, name) for name, _, key in rows)
    pairs = {
        (first, other)
        for same in by_key.values()
        for first in same
        for other in same
        if split_of[first] == "train" != split_of[other]
    }
    placed = [PlacedQuestion(name, text, split_of[name]) for name, text, _ in rows]
    for train, rest in near_identical(placed, subject.settings.split.near_duplicate):
        pairs.add((train.question_id, rest.question_id))
    return [
        f"{first} in {split_of[first]} and {other} in {split_of[other]} ask the same" for first, other in sorted(pairs)
    ]


def tell_paraphrases(subject: Subject, encoder: Encoder) -> None:
    """Note the questions of train that seem to ask the same as one of dev or test, in other words.

    No gate refuses them: only people can compare them.
    """
    split_of = dict(tuples(subject.files.read("splits"), "question_id", "split"))
    questions = subject.files.read("questions", ["question_id", "question", "answers"])
    for pair in paraphrases(questions, encoder):
        splits = [split_of.get(row["question_id"]) for row in pair]
        if None not in splits and splits.count("train") == 1:
            texts = (f"{row['question_id']} in {split} ({row['question']})" for row, split in zip(pair, splits))
            note(f"{' and '.join(texts)} seem to ask the same. If they do, take one out.", loud=True)


def coverage(files: TableFiles, splits: Sequence[str]) -> verdicts.Coverage:
    """Return how far people judged the answers of some splits: :func:`quit.stages.labelling.verdicts.coverage`."""
    return verdicts.coverage(files.batches("verdicts", verdicts.COVERAGE), files.read("splits"), splits)


def _human_coverage(subject: Subject) -> list[str]:
    needed, have = subject.settings.release.human_coverage, coverage(subject.files, subject.settings.review.splits)
    text = (
        f"people judged {have['judged']:,} of {have['answers']:,} answers in {', '.join(have['splits'])} "
        f"({have['share']:.1%}); release.human_coverage asks for {needed:.1%}"
    )
    if not needed:
        raise NotAsked(text)
    return [text] if have["share"] < needed else []


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate(
            "schema",
            "Programs that read the tables rely on their columns, keys and values.",
        ),
        Gate(
            "missing-passage",
            "Every question has all passages of its design, read by every reader, so that they can be compared. Sets "
            "of hints that cosines chose are taken as they are.",
        ),
        Gate(
            "answer-in-passage",
            "A passage that states an answer needs no inference: what the leakage filter takes for stated must be 0.",
            _answer_in_passage,
            by_question=True,
        ),
        Gate(
            "question-on-two-sides",
            "A question of train that is also in dev or test lets a model remember instead of infer.",
            _question_on_two_sides,
        ),
        Gate(
            "unjudged-answer",
            "An answer without a verdict counts as wrong, which may make a fully relevant passage look partially "
            "relevant.",
        ),
        Gate(
            "label-mismatch",
            "Everyone must be able to recompute the labels, and every column that follows from others.",
        ),
        Gate(
            "human-coverage",
            "Verdicts that no person has seen carry the judge's errors into the labels.",
            _human_coverage,
        ),
    )
}
"""The gates in the order in which they are examined."""
