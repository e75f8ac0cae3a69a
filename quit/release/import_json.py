"""The paper's release JSON, read question by question and checked: what ``quit release import`` begins with.

``train.json``, ``dev.json`` and ``test.json`` (or these with ``.gz`` or ``.zst`` behind) are arrays of ``{id, question,
answers, hints: [{hint}], subsets: {subset: {permutation: {reader: answer}}}}``: the fields that the paper's scripts
read. A hint may have ``convergence`` and ``origin`` too, as our own export writes them. A subset may have any key
(``024``, or a bit a hint, ``10101``): the permutations in it say which hints are meant.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ijson
import pyarrow as pa

from quit.common.files import read_json
from quit.common.progress import advance
from quit.common.secrets import shown
from quit.errors import InputError
from quit.export.dataset import SPLITS, ReaderInfo
from quit.export.files import read_manifest
from quit.export.release_json import PAPER_LABELERS, PAPER_READERS
from quit.sources.fields import describe, quote
from quit.sources.files import Shallow, check_file
from quit.stages.passages import MAX_HINTS, PermutationTable, permutation_table, subset_of

SUFFIXES = (".json", ".json.gz", ".json.zst")
EXPECTED = "a file of the paper's release JSON: an array of objects with id, question, answers, hints and subsets"
LABEL = "label"
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")  # as settings have it
_INFO = ("name", "role", "identity", "kind")
_READ = {"id", "question", "answers", "hints", "subsets"}
_READ_OF_HINT = {"hint", "convergence", "origin"}


@dataclass(frozen=True)
class Published:
    """One question as published. ``answers``: reader -> its answers, in the order of the permutation table."""

    question_id: str
    question: str
    valid_answers: list[str]
    hints: list[dict[str, Any]]
    answers: dict[str, list[str]]


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
        self._file_of: dict[str, str] = {}
        self._first = ""
        self._labelled = False
        self._permutations: PermutationTable | None = None

    def _path(self, split: str) -> Path:
        if not self.folder.is_dir():
            raise InputError(
                f"{self.folder} is not a folder. Name the one that holds train.json, dev.json and test.json."
            )
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
        for position, record in enumerate(_records(path)):
            name = describe(record.get("id") if isinstance(record, dict) else record)
            try:
                yield self._published(record, path.name)
            except _Fault as fault:
                raise InputError(
                    f"{path}, record {position} (id: {name}): {fault} Correct the file, or leave the question out."
                ) from None
            advance("questions")

    def _published(self, record: Any, file: str) -> Published:
        if not isinstance(record, dict):
            raise _Fault(f"a question must be an object, but it is {describe(record)}.")
        if missing := sorted(_READ - record.keys()):
            raise _Fault(f"the field `{missing[0]}` is missing.")
        question_id, question = _text(record["id"], "id"), _text(record["question"], "question")
        if not question_id.strip():
            raise _Fault("`id` is blank.")
        if question_id in self._file_of:
            raise _Fault(f"{self._file_of[question_id]} has a question with this id already; ids must be unique.")
        answers = [_text(value, f"answers[{at}]") for at, value in enumerate(_list(record["answers"], "answers"))]
        hints = [_hint(value, f"hints[{at}]") for at, value in enumerate(_list(record["hints"], "hints"))]
        if self._permutations is None:
            self._begin(record["subsets"], len(hints), f"question {quote(question_id)} of {file}")
        if len(hints) != self.permutations.n:
            raise _Fault(f"it has {len(hints)} hints, but {self._first} has {self.permutations.n}.")
        given = self._answers(record["subsets"])
        if self._labelled:
            self._check_labels(record["subsets"], given, set(answers))
        self._file_of[question_id] = file
        self.repeated += len(set(answers)) < len(answers)
        self.unread.update(f"`{key}`" for key in record.keys() - _READ)
        self.unread.update({f"`hints.{key}`" for hint in record["hints"] for key in hint.keys() - _READ_OF_HINT})
        return Published(question_id, question, list(dict.fromkeys(answers)), hints, given)

    def _begin(self, subsets: Any, hints: int, first: str) -> None:
        """Take from the first question what all others must have: hints, names of subsets, readers."""
        if hints > MAX_HINTS:
            raise _Fault(f"it has {hints} hints; at most {MAX_HINTS} make passages.")
        table = permutation_table(hints)
        passages = [
            (subset, permutation, _object(passage, f"subsets.{subset}.{permutation}"))
            for subset, permutations in _object(subsets, "subsets").items()
            for permutation, passage in _object(permutations, f"subsets.{subset}").items()
        ]
        if not passages:
            raise _Fault("`subsets` holds no passage.")
        names = {subset_of(permutation): subset for subset, permutation, _ in passages}
        self.subsets = {ours: theirs for ours, theirs in names.items() if ours != theirs}
        keys = list(passages[0][2])
        self._labelled = LABEL in keys
        self.readers, self.keys = _readers(self.folder, [key for key in keys if key != LABEL])
        self._permutations, self._first = table, first
        self._places = [
            (names.get(subset, subset), permutation)
            for subset, permutation in zip(table.subset.to_pylist(), table.permutation.to_pylist(), strict=True)
        ]

    def _answers(self, subsets: Any) -> dict[str, list[str]]:
        size = len(self.keys) + self._labelled
        try:
            passages = [subsets[subset][permutation] for subset, permutation in self._places]
            given = {key: [passage[key] for passage in passages] for key in self.keys}
            whole = sum(map(len, subsets.values())) == len(passages) and {*map(len, passages)} == {size}
            if whole and {type(answer) for answers in given.values() for answer in answers} == {str}:
                return given
        except (KeyError, TypeError, AttributeError):
            pass
        raise _Fault(self._what_is_wrong(subsets))

    def _what_is_wrong(self, subsets: Any) -> str:
        """Return the first fault of the passages of a question that are not as they should be."""
        wanted, present = set(self._places), set[tuple[str, str]]()
        for subset, permutations in _object(subsets, "subsets").items():
            for permutation, passage in _object(permutations, f"subsets.{subset}").items():
                where = f"subsets.{subset}.{permutation}"
                if unknown := [digit for digit in permutation if digit not in "012345678"[: self.permutations.n]]:
                    return f"`{where}` names the hint {unknown[0]!r}; the hints are 0 to {self.permutations.n - 1}."
                if (subset, permutation) not in wanted:
                    return f"`{where}`: {permutation!r} is not an order of the hints of {subset!r}."
                present.add((subset, permutation))
                expected = {*self.keys, *([LABEL] if self._labelled else [])}
                for key in sorted(expected ^ _object(passage, where).keys()):
                    there = "is not" if key in passage else "is missing; it is"
                    return f"`{where}.{key}` {there} in the first passage of {self._first}; all need the same."
                for key in self.keys:
                    _text(passage[key], f"{where}.{key}")
        missing = [
            f"`subsets.{subset}.{permutation}`"
            for subset, permutation in self._places
            if (subset, permutation) not in present
        ]
        return (
            f"`subsets` holds {len(present)} passages; {self.permutations.n} hints make {len(wanted)}. "
            f"The first that is missing: {missing[0]}."
        )

    def _check_labels(self, subsets: Any, given: Mapping[str, list[str]], valid: set[str]) -> None:
        labelers = [key for key, info in zip(self.keys, self.readers, strict=True) if info.role == "labeler"]
        for row, (subset, permutation) in enumerate(self._places):
            label = subsets[subset][permutation][LABEL]
            right = [key for key in labelers if given[key][row] in valid]
            if label != (2 if right else 1):
                why = f"the answer of `{right[0]}` is" if right else "no labeler's answer is"
                raise _Fault(
                    f"`subsets.{subset}.{permutation}.{LABEL}` is {describe(label)}, but {why} among `answers`, so the "
                    f"label is {2 if right else 1}."
                )


def _records(path: Path) -> Iterator[Any]:
    count = 0
    try:
        with pa.input_stream(str(path), compression="detect") as stream, io.BufferedReader(stream, 1 << 20) as file:
            if file.peek(3).startswith(codecs.BOM_UTF8):
                file.read(3)
            if not file.peek(4096).lstrip().startswith(b"["):
                raise InputError(f"{path} holds no JSON array; expected {EXPECTED}.")
            for record in ijson.items(Shallow(file), "item", use_float=True):
                yield record
                count += 1
    except (ijson.JSONError, UnicodeDecodeError, OSError) as error:
        raise InputError(
            f"{path} cannot be read after {count} questions: {shown(str(error), 160)}. Take it again from where it was "
            f"published; expected {EXPECTED}."
        ) from None


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


def _hint(value: Any, where: str) -> dict[str, Any]:
    hint = _object(value, where)
    if "hint" not in hint:
        raise _Fault(f"the field `{where}.hint` is missing.")
    convergence, origin = hint.get("convergence"), hint.get("origin")
    if convergence is not None and not (type(convergence) in (int, float) and 0 <= convergence <= 1):
        raise _Fault(f"`{where}.convergence` must be a number from 0 to 1 or null, but it is {describe(convergence)}.")
    return {
        "hint": _text(hint["hint"], f"{where}.hint"),
        "convergence": convergence,
        "origin": None if origin is None else _text(origin, f"{where}.origin"),
    }


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _Fault(f"`{where}` must be a text, but it is {describe(value)}.")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _Fault(f"`{where}` must be a list with something in it, but it is {describe(value)}.")
    return value


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Fault(f"`{where}` must be an object, but it is {describe(value)}.")
    return value
