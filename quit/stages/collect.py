"""Section 3.1.1, collect: source records become one collection, with the same question of several sources pooled.

Which question gets which id depends only on the order of the records, and tables are in the order of ids, so that the
same sources give the same bytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from quit.common import ids
from quit.common.rows import Row, first_by
from quit.contracts import table
from quit.errors import InputError
from quit.models.convergence_scored import source_convergence
from quit.settings import Collect, Convergence
from quit.settings.construction import MAX_GIVEN
from quit.sources.fields import quote
from quit.sources.files import shown_file, unit
from quit.sources.records import RawHint, RawQuestion, Reject, SourceRecord
from quit.stages.stage import Context, Tables, stage
from quit.text.answers import answer_key
from quit.text.normalize import normalize_question
from quit.text.words import counted

STAGE = "collect"
TABLES = ("questions", "origins", "hints", "candidates", "scores", "rejects")

_PLACE = ("source", "file", "position", "record_id")
_CHUNK = 1000
"""Questions per Arrow table: TriviaHG's 1.8 million score rows as Python objects would take gigabytes."""


@dataclass(slots=True)
class _Pooled:
    """Records of one question, by arrival; ``keys`` are those of its gold answers."""

    arrivals: list[int]
    keys: set[str]
    question_id: str = ""


@dataclass(slots=True)
class _Gathered:
    """What was read: usable records, and rejects with the arrival of the usable record they belong to, if any."""

    records: list[RawQuestion] = field(default_factory=list)
    rejects: list[tuple[int | None, Reject]] = field(default_factory=list)
    record_count: int = 0


_Rows = dict[str, list[Row]]
"""Rows of some questions for each table of :data:`TABLES` except ``rejects``."""


class _Usable(NamedTuple):
    """The records of a question, and its distinct hints with their records."""

    records: list[RawQuestion]
    hints: list[tuple[RawQuestion, RawHint]]


@stage(
    "collect",
    outputs=TABLES,
    sections=(
        "collect",
        "passages.hints",
        "passages.sizes",
        "convergence.candidate_cap",
        "convergence.prefer_source",
    ),
    scope="collection",
    version=6,
)
def collect_stage(context: Context, sources: Iterable[SourceRecord]) -> Tables:
    """Read the sources, repair and pool their records."""
    settings = context.settings
    least, given = settings.passages.needed_hints, settings.passages.is_given
    return collect(sources, settings.collect, least, settings.convergence, given)


def collect(
    records: Iterable[SourceRecord],
    settings: Collect = Collect(),  # noqa: B008
    min_hints: int = 5,
    scoring: Convergence = Convergence(),  # noqa: B008
    given: bool = False,
) -> dict[str, pa.Table]:
    """Return the tables ``questions``, ``origins``, ``hints``, ``candidates``, ``scores`` and ``rejects``.

    Two records are the same question when their normalised questions are equal and they share a gold answer.
    ``pool`` puts their answers, hints and candidates together (the first record gives id and text, the first one with a
    type both parts of it), ``keep_first`` rejects the later ones, ``keep_all`` keeps each as a question of its own. A
    question with fewer than ``min_hints`` distinct hints is rejected, and so is one that ``settings`` leave out.
    ``scoring``: convergence of a hint from its source. Every record and hint that came in is in the tables or, itself
    or with its question, in ``rejects``. ``given``: records have passages, which are the rows of ``hints``; an id of
    theirs is that of one text.

    Raises ``InputError`` when no question is left, or records have hints and passages (and what the readers raise).
    """
    gathered = _gather(records, given)
    pooled = _pool(gathered, settings.duplicates)
    _name(pooled, gathered.records)
    owner = {arrival: question.question_id for question in pooled for arrival in question.arrivals}
    rejects = [
        replace(reject, question_id=None if arrival is None else owner.get(arrival))
        for arrival, reject in gathered.rejects
    ]

    usable, texts = dict[str, _Usable](), dict[str, str]()
    for question in sorted(pooled, key=lambda question: question.question_id):
        parts = [gathered.records[arrival] for arrival in question.arrivals]
        distinct = _distinct_passages(question.question_id, parts, rejects, texts) if given else None
        hints = list(distinct or _distinct_hints(question.question_id, parts, rejects))
        if fault := _unusable(parts, hints, min_hints, settings):
            rejects.append(replace(fault, question_id=question.question_id))
        else:
            usable[question.question_id] = _Usable(parts, hints)
    by_record = [question.question_id for question in pooled if question.question_id in usable]
    for question_id in _beyond(by_record, usable, settings, scoring):
        which = f"first {settings.questions:,} usable questions"
        if settings.choose == "convergences":
            which = f"{settings.questions:,} usable questions with the most distinct convergences"
        detail = f"The build takes the {which} only (collect.questions)."
        reject = _reject(usable.pop(question_id).records[0], "question", "beyond_questions", detail)
        rejects.append(replace(reject, question_id=question_id))
    if not usable:
        raise InputError(_nothing_left(gathered.record_count, rejects, min_hints))
    return {**_tables(usable), "rejects": table("rejects").from_rows([asdict(reject) for reject in rejects])}


def _tables(usable: Mapping[str, _Usable]) -> dict[str, pa.Table]:
    """Return the tables of usable questions (by id), all except ``rejects``; rows are made for some at a time."""
    chunks: dict[str, list[pa.Table]] = {name: [] for name in TABLES[:-1]}
    questions = iter(usable.items())
    while block := list(islice(questions, _CHUNK)):
        rows: _Rows = {name: [] for name in chunks}
        for question_id, of_question in block:
            _add(rows, question_id, of_question)
        for name, of_table in rows.items():
            chunks[name].append(table(name).from_rows(of_table))
    return {name: pa.concat_tables(parts).combine_chunks() for name, parts in chunks.items()}


def _gather(records: Iterable[SourceRecord], given: bool) -> _Gathered:
    gathered = _Gathered()
    first: dict[tuple[str, str, str], int] = {}
    for record in records:
        gathered.record_count += 1
        question = record.question
        if question is None:
            gathered.rejects += [(None, reject) for reject in record.rejects]
            continue
        if question.given != given:
            kind, other = ("passages", "hints") if question.given else ("hints", "passages")
            raise InputError(
                f"{unit(question.source, question.file)} {question.position + 1} of {quote(shown_file(question.file))} "
                f"has {kind}, and the build is one of records with {other}: build a workspace of each."
            )
        fault = _fault(question, first)
        arrival = None if fault else len(gathered.records)
        gathered.rejects += [(arrival, reject) for reject in record.rejects]
        if fault:
            gathered.rejects.append((None, fault))
        else:
            gathered.records.append(question)
    return gathered


def _fault(question: RawQuestion, first: dict[tuple[str, str, str], int]) -> Reject | None:
    """Return why a record cannot be used, or None. Readers reject blanks themselves; other callers may not."""
    if not question.question.strip():
        return _reject(question, "record", "no_question", "The question is blank.")
    if not any(answer.strip() for answer in question.answers):
        return _reject(question, "record", "no_answer", "The question has no answer.")
    identity = (question.source, question.file, question.record_id)
    if identity in first:
        detail = (
            f"Id {quote(question.record_id)} is that of {unit(question.source, question.file)} {first[identity] + 1} "
            f"of {quote(shown_file(question.file))} already: give each record a unique id."
        )
        return _reject(question, "record", "duplicate_id", detail)
    first[identity] = question.position
    return None


def _pool(gathered: _Gathered, duplicates: str) -> list[_Pooled]:
    """Return the questions by first arrival. A record that shares answers with two pooled questions joins them."""
    questions: list[_Pooled] = []
    by_text: dict[str, list[_Pooled]] = defaultdict(list)
    for arrival, record in enumerate(gathered.records):
        keys = {answer_key(answer) for answer in record.answers} - {""}
        alike = by_text[_text_key(record.question)]
        same = [] if duplicates == "keep_all" else [question for question in alike if question.keys & keys]
        if not same:
            alike.append(_Pooled([arrival], keys))
            questions.append(alike[-1])
        elif duplicates == "keep_first":
            earlier = gathered.records[same[0].arrivals[0]]
            detail = (
                f"The same question with the same answer is record {quote(earlier.record_id)} of "
                f"{quote(shown_file(earlier.file))} already."
            )
            gathered.rejects.append((None, _reject(record, "record", "duplicate_question", detail)))
        else:
            target, *others = same
            for question in others:
                target.arrivals += question.arrivals
                target.keys |= question.keys
                question.arrivals = []
                alike.remove(question)
            target.arrivals.append(arrival)
            target.arrivals.sort()
            target.keys |= keys
    return [question for question in questions if question.arrivals]


def _text_key(question: str) -> str:
    return normalize_question(question) or question


def _name(pooled: list[_Pooled], records: list[RawQuestion]) -> None:
    """Give every question a unique id; where two claim the same, the later one's ends in a hash of its content."""
    names: set[str] = set()
    for question in pooled:
        record = records[question.arrivals[0]]
        plain = ids.question_id(record.source, record.record_id)
        name = plain
        content = (_text_key(record.question), sorted(answer_key(answer) for answer in record.answers))
        attempt = 0
        while name in names:
            # The same content again (`keep_all`): the file and a number tell it apart.
            extra = (record.file, record.record_id, attempt) if attempt else ()
            name = f"{plain}-{ids.content_hash(*content, *extra, size=4)}"
            attempt += 1
        names.add(name)
        question.question_id = name


def _beyond(ids: list[str], usable: dict[str, _Usable], settings: Collect, scoring: Convergence) -> list[str]:
    """Return which of the usable questions, ``ids`` by first record, are not among ``settings.questions``."""

    def convergences(question_id: str) -> int:
        values = (
            source_convergence(hint.convergence, [*(hint.scores or {}).values()], scoring)
            for _, hint in usable[question_id].hints
        )
        return len({*values} - {None})

    ranked = ids if settings.choose == "first" else sorted(ids, key=convergences, reverse=True)
    return ranked[settings.questions or len(ranked) :]


def _distinct_hints(
    question_id: str, parts: list[RawQuestion], rejects: list[Reject]
) -> Iterator[tuple[RawQuestion, RawHint]]:
    """Yield a question's hints in pooled order, each normalised text once; what comes again is added to ``rejects``."""
    hint_ids: dict[str, str] = {}
    for record in parts:
        for hint in record.hints:
            key = _text_key(hint.text)
            if key not in hint_ids:
                hint_ids[key] = ids.hint_id(question_id, len(hint_ids))
                yield record, hint
                continue
            detail = f"The hint {quote(hint.text)} says the same as {hint_ids[key]}."
            rejects.append(replace(_reject(record, "hint", "duplicate_hint", detail), question_id=question_id))


def _distinct_passages(
    question_id: str, parts: list[RawQuestion], rejects: list[Reject], texts: dict[str, str]
) -> Iterator[tuple[RawQuestion, RawHint]]:
    """Yield a question's passages in pooled order, each id once; what comes again, or has the id of another text, is
    added to ``rejects``. One without an id is named after the question and its place. ``texts``: own id -> text of the
    passages so far, of all questions."""
    names: set[str] = set()
    for record in parts:
        for passage in record.hints:
            name = passage.passage_id or f"{question_id}-p{len(names) + 1:03d}"
            if len(names) == MAX_GIVEN:
                fault = ("too_many", f"The question has more than {MAX_GIVEN:,} passages: {quote(name)} is left out.")
            elif name in names:
                fault = ("duplicate_passage", f"The passage id {quote(name)} comes twice: give each text its own.")
            elif texts.setdefault(name, passage.text) != passage.text:
                fault = ("other_text", f"The passage id {quote(name)} is that of another text: give each text its own.")
            else:
                names.add(name)
                yield record, replace(passage, passage_id=name)
                continue
            rejects.append(replace(_reject(record, "hint", *fault), question_id=question_id))


def _add(rows: _Rows, question_id: str, usable: _Usable) -> None:
    parts, first = usable.records, usable.records[0]
    typed = next((record for record in parts if record.coarse and record.fine), None) or next(
        (record for record in parts if record.coarse or record.fine), first
    )
    answers = _by_form(answer for record in parts for answer in record.answers)
    rows["questions"].append(
        {
            "question_id": question_id,
            "question": first.question,
            "answers": list(answers.values()),
            "source": first.source,
            "coarse": typed.coarse,
            "fine": typed.fine,
            "difficulty": next((record.difficulty for record in parts if record.difficulty), None),
            "content_key": ids.content_key(first.question),
        }
    )
    for record in parts:
        rows["origins"].append({"question_id": question_id, **{name: getattr(record, name) for name in _PLACE}})
    candidates = _by_form(candidate for record in parts for candidate in record.candidates)
    for position, (form, candidate) in enumerate(candidates.items()):
        rows["candidates"].append(
            {"question_id": question_id, "position": position, "candidate": candidate, "is_gold": form in answers}
        )
    for position, (record, hint) in enumerate(usable.hints):
        _add_hint(rows, question_id, position, record, hint)


def _add_hint(rows: _Rows, question_id: str, position: int, record: RawQuestion, hint: RawHint) -> None:
    passage_id = hint.passage_id
    hint_id = ids.hint_id(question_id, position) if passage_id is None else ids.given_id(question_id, passage_id)
    rows["hints"].append(
        {
            "hint_id": hint_id,
            "question_id": question_id,
            "position": position,
            "hint": hint.text,
            "source": record.source,
            "file": record.file,
            "rank": hint.rank,
            "convergence": hint.convergence,
            "url": hint.url,
        }
    )
    for index, (candidate, score) in enumerate((hint.scores or {}).items()):
        rows["scores"].append(
            {"hint_id": hint_id, "question_id": question_id, "position": index, "candidate": candidate, "score": score}
        )


def _by_form(texts: Iterable[str]) -> dict[str, str]:
    """Return key -> first surface, in order, without blanks."""
    return first_by((form, text) for text in texts if (form := answer_key(text)))


def _reject(record: RawQuestion, kind: str, reason: str, detail: str) -> Reject:
    return Reject(STAGE, kind, reason, detail, **{name: getattr(record, name) for name in _PLACE})


def _unusable(
    parts: list[RawQuestion], hints: list[tuple[RawQuestion, RawHint]], min_hints: int, settings: Collect
) -> Reject | None:
    """Return why a question cannot be used, or None."""
    if parts[0].given:
        detail = "The question has no passage; expected at least one."
        return None if hints else _reject(parts[0], "question", "no_passage", detail)
    if len(hints) < min_hints:
        total = sum(len(record.hints) for record in parts)
        records = "1 record" if len(parts) == 1 else f"{len(parts)} records"
        detail = (
            f"The question has {len(hints)} distinct hints ({total} from {records}); expected at least {min_hints}."
        )
        return _reject(parts[0], "question", "too_few_hints", detail)
    for _, hint in hints:
        scores = [*(hint.scores or {}).values()]
        if len(scores) < settings.candidates:
            number = counted(len(scores), "candidate")
            detail = f"The hint {quote(hint.text)} has scores of {number}; collect.candidates asks for more."
            return _reject(parts[0], "question", "too_few_candidates", detail)
        if scores and not scores[-1] and not settings.false_hints:
            detail = f"By its scores, the hint {quote(hint.text)} does not fit the gold answer (collect.false_hints)."
            return _reject(parts[0], "question", "false_hint", detail)
    return None


def _nothing_left(record_count: int, rejects: list[Reject], min_hints: int) -> str:
    if not record_count:
        return "The collection is empty: no source holds a record. Give one that does: KIND:PATH."
    reasons = Counter(reject.reason for reject in rejects).most_common()
    counts = ", ".join(f"{reason} {count}" for reason, count in reasons)
    first = next((reject for reject in rejects if reject.kind != "hint"), None)
    example = f" First: {shown_file(first.file or 'a record')}: {first.detail}" if first else ""
    return (
        f"The collection is empty: none of {record_count} records is a usable question (rejected: {counts}).{example} "
        f"A question needs an answer and {min_hints} distinct hints, or a passage: "
        "add hints or sources, or lower the setting passages.hints (or passages.sizes)."
    )
