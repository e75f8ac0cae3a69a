"""The page ``docs/reference/formats.md``: sources as the readers take them, exports as they are written. Used by
``make_reference.py``."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from quit.export import FORMATS, export  # noqa: E402
from quit.sources import SOURCES  # noqa: E402
from tests.export.conftest import make_tables  # noqa: E402

SCHEMA = json.loads((ROOT / "schemas" / "question.schema.json").read_text(encoding="utf-8"))
EXAMPLES: dict[str, Any] = {
    "triviahg": {
        "Q_ID": "T-1", "Question": "Which animal is meant?", "ExactAnswer": ["octopus"], "MajorType": "ENTY:ENTITY",
        "MinorType": "animal:Animal", "Candidates_Answers": ["squid", "octopus"],
        "Hints": ["It has three hearts.", "It has eight arms."], "Convergence": [0.5, 1.0],
        "Scores": [{"squid": 1, "octopus": 1}, {"squid": 0, "octopus": 1}],
    },
    "wikihint": {
        "id": 1, "question": {"question": "Which animal is meant?",
         "question_type": {"major": "ENTY:ENTITY", "minor": "animal:Animal"}},
        "answer": {"answer": "octopus"}, "hints": [{"hint": "It has three hearts.", "rank": "1",
            "url": "https://example.org/octopus"}],
    },
    "jsonl": {
        "id": "octopus", "question": "Which animal is meant?", "answers": ["octopus"], "candidates": ["squid", "crab"],
        "hints": ["It has three hearts.",
         {"hint": "It has eight arms.", "convergence": 0.9, "url": "https://example.org/octopus"}],
        "question_type": {"coarse": "ENTY:ENTITY", "fine": "animal:Animal"}, "difficulty": "Easy",
    },
    "csv": "id,question,answer,hint,candidates\n"
        "octopus,Which animal is meant?,octopus,It has three hearts.,squid|crab\n"
        'octopus,,,"It has eight arms, and suckers on each.",\n',
    "hinteval": {
        "subsets": {"test": {"instances": {"q1": {
            "question": {"question": "Which animal is meant?", "metadata": {}}, "answers": [{"answer": "octopus"}],
            "hints": [{"hint": "It has three hearts."}]}}}},
    },
}  # fmt: skip
"""A record of each kind of file, made up; the test reads them. A Hugging Face folder has the columns of ``jsonl``."""

REASONS = {
    "not_json": ("record", "the line is not JSON", "correct it at the named column"),
    "not_utf8": ("record", "the line is not UTF-8", "save the file as UTF-8"),
    "not_an_object": ("record", "the record is a list, a text or a number", "write an object with the fields above"),
    "missing_field": ("record", "a required field is not there, null, or (ids) blank",
     "add it; a near miss among the keys is named"),
    "wrong_type": ("record or hint", "a field holds another type than expected",
     "write what is expected; what was found is named"),
    "bad_value": ("record",
     "a number out of its range, a score other than 0 and 1, none of the gold answer, an id over 200 characters",
     "correct it"),
    "too_long": ("record or hint", "a line of more than 16 MiB, a text of more than 100,000 characters",
     "look for a file in one cell"),
    "too_many": ("record", "more than a thousand hints, candidates or scores",
     "look for a column that ran into one cell"),
    "lengths_differ": ("record", "parallel lists have different lengths; a CSV row has more cells than columns",
     "make them equally long, or leave one out; put a text with commas into quotes"),
    "no_question": ("record", "the question is blank", "write it"),
    "no_answer": ("record", "no answer that is not blank", "write it"),
    "duplicate_id": ("record", "the id was there before in this file; in CSV, with another question",
     "give each record its own"),
    "duplicate_question": ("record", "the question was there before (only with `collect.duplicates=keep_first`)",
     "nothing, or `pool`"),
    "too_few_hints": ("question", "fewer than five distinct hints (`passages.hints`)",
     "add hints, or another source of the same question"),
    "too_few_candidates": ("question", "a hint has scores of fewer candidates than `collect.candidates`",
                           "lower the setting"),
    "false_hint": ("question", "by its scores, a hint does not fit the gold answer (`collect.false_hints = false`)",
                   "correct the hint or its scores"),
    "beyond_questions": ("question", "it is not among the N usable ones that are taken (`quit build --questions N`)",
     "raise N, or `--questions 0`: all"),
    "empty_hint": ("hint", "nothing is left of the hint", "nothing: only the hint is left out"),
    "boilerplate_hint": ("hint", "what a chat model writes around hints (\"Here are ten hints:\")",
     "nothing: only the hint is left out"),
    "hints_and_passages": ("record", "it has hints and passages", "leave one out"),
    "not_answerable": ("record", "MuSiQue marks it as not answerable", "nothing"),
    "no_passage": ("question", "no passage is left", "add one"),
    "duplicate_passage": ("passage", "the question has a passage with this id already", "give each its own"),
    "other_text": ("passage", "the id is that of another text, perhaps of another question", "give each text its own"),
    "duplicate_hint": ("hint", "the question has the same hint already", "nothing: only the hint is left out"),
}  # fmt: skip
"""Reason in ``rejects`` -> what is left out, when, what to do. The test holds it against the readers."""


PUBLISHED = {
    "triviahg": "https://github.com/DataScienceUIBK/TriviaHG",
    "wikihint": "https://github.com/DataScienceUIBK/WikiHint",
}
"""Where the files of a kind are."""


def page() -> str:
    """Return the page, without the note at its head."""
    lines = ["# Formats\n", "## Sources\n"]
    lines += [
        "Named `KIND:PATH`; a path that ends in `.jsonl`, `.parquet`, `.csv` or `.tsv` needs no kind. `quit check` "
        "reads one without building.\n"
    ]
    for name, source in SOURCES.items():
        lines += [f"### {name}\n", f"{source.doc} Expected: {source.expected}.\n"]
        if source.citation:
            lines.append(
                f"{source.citation} Licence: {source.licence}."
                + (f" Files: {PUBLISHED[name]}" if name in PUBLISHED else "")
                + "\n"
            )
        lines.append(_says(import_module(f"quit.sources.{name}").read))
        if name == "jsonl":
            lines += _fields()
        if name in EXAMPLES:
            text = EXAMPLES[name].rstrip() if name == "csv" else json.dumps(EXAMPLES[name], ensure_ascii=False)
            lines += [f"```{'csv' if name == 'csv' else 'json'}", text, "```\n"]
    lines += [
        "### What is repaired\n",
        "In every text: mojibake, HTML entities, Unicode forms, invisible characters, white space. In hints also: "
        "citation marks (`[^1^]`, `[1]`), numbering (`3.`, `Hint 3:`), Markdown's bold. Markup stays as text. Equal "
        "answers, candidates and hints count once; null entries of lists are left out; numbers may be written as "
        "text; keys that are not named are not read (`quit check` tells those that come near one). A byte order mark "
        "and Windows line ends do no harm.\n",
        "### What is left out\n",
        "One fault costs its record or hint, never the file (except for a JSON array or CSV that is broken in the "
        "middle). Each is a row of [`rejects`](tables.md#rejects): `quit check`, `quit status --left-out`.\n",
        "| reason | leaves out | when | what to do |\n|---|---|---|---|",
        *(f"| `{reason}` | {' | '.join(words)} |" for reason, words in REASONS.items()),
        "",
        "## Exports\n",
        "Each into a folder of its name, with a `manifest.json` of checksums and counts and a `CANARY.txt`. `{split}`: "
        "train, dev, test. How to load them: "
        "[export](../howto/export.md).\n",
    ]
    with tempfile.TemporaryDirectory() as folder:
        export(make_tables(), list(FORMATS), Path(folder))
        for name, one in FORMATS.items():
            lines += [f"### {name}\n", f"{one.doc}. Version {one.version}.\n", "| file | a record has |", "|---|---|"]
            lines += [f"| `{file}` | {told} |" for file, told in sorted(set(_files(Path(folder) / name)))]
            lines.append("")
    return "\n".join(lines)


def _says(function: Any) -> str:
    """Return what a reader's docstring says of the file, without what it raises."""
    text = " ".join(line.strip() for line in (function.__doc__ or "").strip().splitlines()).replace("``", "`")
    text = re.split(r" Raises `?", text)[0].strip()
    return re.sub(r"^Yield ", "Reads ", text).replace("  ", " ") + "\n"


def _fields() -> Iterator[str]:
    parts = SCHEMA["$defs"]
    for title, schema in (("field", SCHEMA), ("of a hint", parts["hint"]), ("of a passage", parts["passage"])):
        required = schema.get("required", ["hint"])
        yield f"| {title} | | meaning |\n|---|---|---|"
        for name, about in schema["properties"].items():
            yield f"| `{name}` | {'required' if name in required else 'optional'} | {about['description']} |"
        yield ""


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("manifest.json", "CANARY.txt"):
            name = re.sub(r"\b(train|dev|test)\b", "{split}", path.relative_to(folder).as_posix())
            name = re.sub(r"\d{5}-of-\d{5}", "{part}", re.sub(r"docs-?\d+", "docs{part}", name))
            yield name, _record(path)


def _record(path: Path) -> str:
    if path.suffix == ".parquet":
        return (
            ", ".join(f"`{column.name}` {column.type}" for column in pq.read_schema(path))
            .replace("<element: ", " of ")
            .replace(">", "")
        )
    if path.suffix == ".md":
        return "the dataset card"
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".csv":
        return ", ".join(f"`{word}`" for word in text.split("\n", 1)[0].replace('"', "").split(","))
    if path.suffix in (".json", ".jsonl"):
        first = json.loads(text if path.suffix == ".json" else text.splitlines()[0])
        first = first[0] if isinstance(first, list) and isinstance(first[0], dict) else first
        return ", ".join(f"`{key}`" for key in first) if isinstance(first, dict) else f"a list of {len(first)} integers"
    mark = "\t" if "\t" in text else " "
    first, second = [*text.split("\n"), ""][:2]
    if not any(char.isdigit() for char in first) and any(char.isdigit() for char in second):
        return ", ".join(f"`{word}`" for word in first.split(mark)) + " (tabs; the first line names them)"
    return f"{len(first.split(mark))} columns with {'tabs' if mark == chr(9) else 'spaces'} between"
