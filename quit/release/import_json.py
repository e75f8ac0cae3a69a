"""The paper's release JSON, read question by question and checked: what ``quit release import`` begins with.

``train.json``, ``dev.json`` and ``test.json`` (or these with ``.gz`` or ``.zst`` behind) are arrays of ``{id, question,
answers, hints: [{hint}], subsets: {subset: {permutation: {reader: answer}}}}``: the fields that the paper's scripts
read. A hint may have ``convergence`` and ``origin`` too, as our own export writes them. A subset may have any key
(``024``, or a bit a hint, ``10101``): the permutations in it say which hints are meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from quit.common.files import read_json
from quit.common.progress import advance, note
from quit.common.state_files import first_fault
from quit.dataset.release import ReaderInfo
from quit.engine.parts import fault_of
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from quit.export.files import MANIFEST, read_manifest
from quit.export.release_json import PAPER_LABELERS, PAPER_READERS
from quit.models.protocols import NO_ANSWER
from quit.sources.fields import describe, quote
from quit.sources.files import check_file, reading
from quit.sources.items import array_items
from quit.stages.labelling.passages import PermutationTable, permutation_table, subset_of
from quit.text.answers import answer_key

MAX_HINTS = 7
"""Hints of a question at most: a reader's answers to all passages of eight could not be numbered."""
SUFFIXES = (".json", ".json.gz", ".json.zst")
EXPECTED = "a file of the paper's release JSON: an array of objects with id, question, answers, hints and subsets"
LABEL = "label"
MAX_DISTINCT = 1 << 15  # distinct answers of a reader to a question: their numbers are int16
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")  # as settings have it
_INFO = ("name", "role", "identity", "kind")


def _encodable(text: str) -> str:
    text.encode()  # raises where JSON gives half a character
    return text


_Text = Annotated[str, AfterValidator(_encodable)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class Hint(_Part):
    """A hint as published."""

    hint: _Text
    convergence: float | None = Field(None, ge=0, le=1)
    origin: _Text | None = None


class _Question(_Part):
    id: _Text
    question: _Text
    answers: list[_Text] = Field(min_length=1)
    hints: list[Hint] = Field(min_length=1, max_length=MAX_HINTS)
    subsets: dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Numbered:
    """One reader's answers to a question: ``texts``, the distinct ones in the order of the first passage that got them;
    ``numbers``, the place in ``texts`` for each passage in the order of the permutation table."""

    texts: list[str]
    numbers: list[int]

    @classmethod
    def of(cls, answers: Iterable[str]) -> Numbered:
        """Return answers by number. Raises ``TypeError`` for one that is a list or an object."""
        places: dict[str, int] = {}
        numbers = [places.setdefault(answer, len(places)) for answer in answers]
        return cls(list(places), numbers)


@dataclass(frozen=True)
class Published:
    """One question as published. ``answers``: key of a reader -> its answers."""

    question_id: str
    question: str
    valid_answers: list[str]
    hints: list[Hint]
    answers: dict[str, Numbered]


class _Fault(Exception):
    """What is wrong with a record, in words. Never leaves this module."""


@dataclass
class ReleaseFiles:
    """The three files of a folder. What all questions share is known once the first was read.

    ``readers``: labelers first; ``keys``: what they are called in the files, in that order. ``subsets``: our name of a
    subset -> that of the files, where these differ. ``unread``: field that is not read -> questions that have it.
    ``repeated``: questions that list an answer twice. Raises ``InputError`` for a missing file.
    """

    folder: Path
    readers: tuple[ReaderInfo, ...] = ()
    keys: tuple[str, ...] = ()
    subsets: dict[str, str] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)
    repeated: int = 0

    def __post_init__(self) -> None:
        self.paths = {split: self._path(split) for split in SPLITS}
        manifest = read_manifest(self.folder)
        for entry in manifest.files if manifest else ():
            path = self.folder / entry.path
            if path in self.paths.values() and fault_of(path, {"bytes": entry.bytes, "sha256": entry.sha256}):
                note(f"{path} is not the file that {MANIFEST} beside it lists; it is imported as it is.", loud=True)
        self._file_of: dict[str, str] = {}
        self._first = ""
        self._permutations: PermutationTable | None = None
        self._expected: dict[tuple[str, str], KeysView[str]] = {}  # (subset, permutation) -> keys of the passage

    def _path(self, split: str) -> Path:
        paths = [self.folder / f"{split}{suffix}" for suffix in SUFFIXES]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            listed = " or ".join(path.name for path in paths)
            raise InputError(
                f"{self.folder} has no {listed}. A release has all three splits; one without questions is written []."
            )
        check_file(path, EXPECTED)
        return path

    @property
    def permutations(self) -> PermutationTable:
        """The passages of a question. Raises ``InputError`` where no file has a question."""
        if self._permutations is None:
            raise InputError(f"The files of {self.folder} hold no question: there is nothing to import.")
        return self._permutations

    def questions(self, split: str) -> Iterator[Published]:
        """Yield a split's questions in the order of its file; only one is in memory at a time.

        Raises ``InputError`` that names file, question and field for whatever is not as expected.
        """
        path = self.paths[split]
        with reading(path, EXPECTED) as file:
            for item in array_items(file, path, EXPECTED):
                try:
                    yield self._published(_Question.model_validate(item.value), path.name)
                except (ValidationError, _Fault) as error:
                    name = describe(item.value.get("id") if isinstance(item.value, dict) else item.value)
                    reason = f"{first_fault(error)}." if isinstance(error, ValidationError) else error
                    raise InputError(
                        f"{path}, {item.where} (id: {name}): {reason} Correct the file, or leave the question out."
                    ) from None
                advance("questions")

    def _published(self, record: _Question, file: str) -> Published:
        if not record.id.strip():
            raise _Fault("`id` is blank.")
        if record.id in self._file_of:
            raise _Fault(f"{self._file_of[record.id]} has a question with this id already; ids must be unique.")
        passages = {
            (subset, permutation): passage
            for subset, permutations in record.subsets.items()
            for permutation, passage in permutations.items()
        }
        if self._permutations is None:
            self._begin(passages, len(record.hints), f"question {quote(record.id)} of {file}")
        if len(record.hints) != self.permutations.n:
            raise _Fault(f"it has {len(record.hints)} hints, but {self._first} has {self.permutations.n}.")
        keys = {place: passage.keys() for place, passage in passages.items()}
        if keys != self._expected:
            names, expected = _names(keys), _names(self._expected)
            name = min(names ^ expected)
            raise _Fault(
                f"`{name}` {'does not belong here' if name in names else 'is missing'}: each order of the "
                f"{self.permutations.n} hints needs a passage with the readers of {self._first}."
            )
        if no_answers := [text for text in record.answers if not answer_key(text) or text == NO_ANSWER]:
            raise _Fault(f"`answers` holds {quote(no_answers[0])}, which is never a right answer.")
        in_order = [passages[place] for place in self._expected]
        answers = self._answers(in_order)
        self._check_labels(in_order, answers, set(record.answers))
        self._file_of[record.id] = file
        self.repeated += len(set(record.answers)) < len(record.answers)
        self.unread.update(f"`{key}`" for key in record.model_extra or ())
        self.unread.update({f"`hints.{key}`" for hint in record.hints for key in hint.model_extra or ()})
        return Published(record.id, record.question, list(dict.fromkeys(record.answers)), record.hints, answers)

    def _begin(self, passages: dict[tuple[str, str], dict[str, Any]], hints: int, first: str) -> None:
        """Take from the first question what all others must have: hints, names of subsets, readers."""
        table = permutation_table(hints)
        names = {subset_of(permutation): subset for subset, permutation in passages}
        self.subsets = {ours: theirs for ours, theirs in names.items() if ours != theirs}
        fields = dict.fromkeys(next(iter(passages.values()), ()))
        self.readers, self.keys = _readers(self.folder, [key for key in fields if key != LABEL])
        self._permutations, self._first = table, first
        for subset, permutation in zip(table.subset.to_pylist(), table.permutation.to_pylist(), strict=True):
            self._expected[names.get(subset, subset), permutation] = fields.keys()

    def _answers(self, passages: list[dict[str, Any]]) -> dict[str, Numbered]:
        try:
            answers = {key: Numbered.of([passage[key] for passage in passages]) for key in self.keys}
            "".join(chain.from_iterable(replies.texts for replies in answers.values())).encode()
        except (TypeError, UnicodeEncodeError):
            for key in self.keys:
                for place, passage in zip(self._expected, passages, strict=True):
                    answer = passage[key]
                    if not isinstance(answer, str) or answer != answer.encode(errors="ignore").decode():
                        name = ".".join((*place, key))
                        raise _Fault(f"`subsets.{name}` is {describe(answer)}, expected is a valid text.") from None
            raise
        for key, replies in answers.items():
            if len(replies.texts) > MAX_DISTINCT:
                raise _Fault(
                    f"`{key}` has {len(replies.texts):,} distinct answers to it; {MAX_DISTINCT:,} are the most."
                )
        return answers

    def _check_labels(self, passages: list[dict[str, Any]], answers: dict[str, Numbered], valid: set[str]) -> None:
        right_numbers = {
            key: {number for number, text in enumerate(answers[key].texts) if text in valid}
            for key, info in zip(self.keys, self.readers, strict=True)
            if info.role == "labeler"
        }
        for row, (place, keys) in enumerate(self._expected.items()):
            if LABEL not in keys:
                return  # of no passage: all have the same keys
            label = passages[row][LABEL]
            right = [key for key, numbers in right_numbers.items() if answers[key].numbers[row] in numbers]
            if label != (2 if right else 1):
                why = f"the answer of `{right[0]}` is" if right else "no labeler's answer is"
                raise _Fault(
                    f"`subsets.{'.'.join(place)}.{LABEL}` is {describe(label)}, but {why} among `answers`, so the "
                    f"label is {2 if right else 1}."
                )


def _names(keys: Mapping[tuple[str, str], KeysView[str]]) -> set[str]:
    names = set()
    for place, of_passage in keys.items():
        name = ".".join(("subsets", *place))
        names |= {name, *(f"{name}.{key}" for key in of_passage)}
    return names


def _readers(folder: Path, keys: list[str]) -> tuple[tuple[ReaderInfo, ...], tuple[str, ...]]:
    """Return the readers, labelers first, and their keys. The manifest of an export of ours says who answers under a
    key; without one, the paper's six keys are the paper's models, about which the files say no more."""
    roles = {**dict.fromkeys(PAPER_LABELERS, "labeler"), **dict.fromkeys(PAPER_READERS, "reader")}
    by_key = {key: ReaderInfo(key, role, "unknown", "published") for key, role in roles.items()}
    if manifest := read_manifest(folder):
        try:
            rows = manifest.facts["readers"]
            by_key = {row["key"]: ReaderInfo(*(row[name] for name in _INFO)) for row in rows}
            names = [info.name for info in by_key.values()]
            if len({*names}) < len(names) or not all(map(_NAME.fullmatch, names)):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise _Fault("the manifest.json beside the files is damaged: it does not name the readers.") from None
    elif (folder / "manifest.json").is_file() and read_json(folder / "manifest.json") is None:
        raise _Fault("the manifest.json beside the files is damaged: it is no JSON.")
    ordered = {key: info for role in ("labeler", "reader") for key, info in by_key.items() if info.role == role}
    if {*ordered} != {*keys} or not any(info.role == "labeler" for info in ordered.values()):
        raise _Fault(
            f"its passages have answers of {', '.join(keys)}; expected are those of {', '.join(ordered)}: the paper's "
            "six, or the readers that the manifest.json of our own export names beside the files."
        )
    return tuple(ordered.values()), tuple(ordered)
