"""Should a short answer be taken out of a sentence before it is judged? EVOUNA's sentences, judged whole and by rules.

    python -m benchmarks.sentences ../shared/data/evouna

The answers of four language models that are sentences (``quit.models.readers.cleaning``), to the questions that the
embedded equivalence model was not trained on (fold 0 of ``training/equivalence.py``). Prints for two sets of rules in
how many sentences they find an answer, and how often the judge then agrees with people: given the whole sentence, and
given what was found. Both read the first sentence and compare its words with the question's: ``wide`` takes what
follows *is* or *was* after words of the question; ``careful`` only a name or number after "The ..." or "the answer
...", and a subject of which the rest is in the question. About a minute and a half of one core.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from quit.models.equivalence import EmbeddedEquivalence
from quit.models.judges import EquivalenceJudge
from quit.models.protocols import JudgeItem
from quit.models.readers.cleaning import is_sentence
from quit.text.tokens import STOP_WORDS, words
from training.equivalence import SYSTEMS, fold

_FIRST = re.compile(r".+?[.!?](?<!\b[A-Z]\.)(?<!\b[DMJS]r\.)(?<!\bSt\.)(?=\s|$)")
_COPULA = re.compile(r"\s(?:is|was|are|were)\s")
_ANSWER = re.compile(r"\bthe (?:\w+ )?answer\b.*?\s(?:is|was|would be)\s(.+)", re.IGNORECASE)
_END = re.compile(
    r",\s(?=(?:which|who|whose|where|when|also|a|an|the|known|but|with|and (?:he|she|it|they|the)|[a-z]+(?:ed|ing))\b)"
    r"|;|\s\(|\s(?:who|which|that|because|since|but)\s"
)
_NAME = re.compile(r"(?:(?:an?|the|his|her)\s)?[\"'“‘]?[A-Z0-9]")


def _content(text: str) -> set[str]:
    return {word.casefold() for word in words(text)} - STOP_WORDS


def _short(text: str) -> str:
    return _END.split(text, maxsplit=1)[0].strip(" \"'“”‘’,.!?")


def wide(question: str, sentence: str) -> str | None:
    """Return what follows the first *is* or *was* that comes after words of the question."""
    for copula in _COPULA.finditer(sentence):
        subject, rest = _content(sentence[: copula.start()]), _short(sentence[copula.end() :])
        if subject and subject <= _content(question) and _content(rest) - _content(question):
            return rest
    return None


def careful(question: str, sentence: str) -> str | None:
    """Return the answer of "the answer is X", of "The <question> is <Name>", and of "X <rest of the question>"."""
    if match := _ANSWER.search(sentence):
        return _short(match[1])
    found = wide(question, sentence)
    if found and sentence.startswith("The ") and _NAME.match(found) and not _content(found) & _content(question):
        return found
    copula = _COPULA.search(sentence)
    subject, rest = (sentence[: copula.start()], sentence[copula.end() :]) if copula else ("", "")
    is_subject = _content(subject) and not _content(subject) & _content(question)
    return _short(subject) if is_subject and _content(rest) and _content(rest) <= _content(question) else None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of EVOUNA's files NQ.json and TQ.json")
    folder = parser.parse_args().folder
    items, people = [], []
    for record in (row for name in ("NQ", "TQ") for row in json.loads((folder / f"{name}.json").read_text("utf-8"))):
        golds = tuple(gold.strip() for gold in (record["golden_answer"] or "").split("/") if gold.strip())
        for system in SYSTEMS[1:] if golds and not record["improper"] and fold(record["question"].strip()) == 0 else ():
            answer, verdict = record.get(f"answer_{system}"), record.get(f"judge_{system}")
            if isinstance(answer, str) and isinstance(verdict, bool) and is_sentence(text := " ".join(answer.split())):
                items.append(JudgeItem("", record["question"].strip(), golds, text))
                people.append(verdict)
    judge = EquivalenceJudge("equivalence", EmbeddedEquivalence(), 0.5)
    right = np.array([verdict.correct for verdict in judge.verdicts(items)]) == people
    print(f"all: {len(items):,} sentences, whole {right.mean():.1%}")
    rules: tuple[Callable[[str, str], str | None], ...] = (wide, careful)
    for rule in rules:
        first = [match[0] if (match := _FIRST.match(item.candidate)) else item.candidate for item in items]
        found = [rule(item.question, text) for item, text in zip(items, first, strict=True)]
        rows = [row for row, text in enumerate(found) if text]
        short = [JudgeItem("", items[row].question, items[row].gold_answers, found[row] or "") for row in rows]
        agrees = np.array([verdict.correct for verdict in judge.verdicts(short)]) == [people[row] for row in rows]
        share = f"{len(rows):,} ({len(rows) / len(items):.1%})"
        print(f"{rule.__name__}: {share} found, whole {right[rows].mean():.1%}, found text {agrees.mean():.1%}")


if __name__ == "__main__":
    main()
