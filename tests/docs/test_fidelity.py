"""Whatever code and docs say of a figure, table, section, equation, algorithm, footnote or appendix of a paper is an
item of docs/research/fidelity.md, under that paper.

Which paper is meant: the one that the line names, else the one in the file's path, else any. Our own figures and tables
have no numbers, so they cannot be taken for a paper's. A section is listed where one of its subsections is.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "research" / "fidelity.md"
FOLDERS = ("quit", "flows", "annotation", "schemas", "benchmarks", "docs")
SUFFIXES = {".py", ".md", ".toml", ".txt", ".html", ".js"}

PAPERS = {"SUNAR": "sunar", "bandits": "bandit|petcu", "complexity": "complexity", "QUIT": r"\bQUIT\b"}
_SHORT = {"fig": "figure", "sec": "section", "eq": "equation", "appendice": "appendix"}
_KINDS = r"(?i:(figure|table|section|equation|algorithm|footnote|appendix|appendice)(s?)|(fig|sec|eq)s?\.)"
_NUMBER = r"(?:[A-H](?:\.\d+)*\b|\d+(?:\.\d+)*)"
_MENTION = re.compile(rf"\b{_KINDS}[\s#]+({_NUMBER}(?:(?:,\s+and|,|\s+and|\s+or|\s+to|-|–)\s*{_NUMBER})*)(?![\w])")


class Mention(NamedTuple):
    """An item of a paper (None: of any), such as ``("table", "4")``, and the line that names it."""

    paper: str | None
    kind: str
    number: str
    line: int


def _numbers(text: str, many: bool) -> Iterator[str]:
    """Yield the numbers of ``3, 5 and 7`` or ``4 to 6``; not ``many``: the first alone, or a range with a dash."""
    parts = re.split(rf"({_NUMBER})", text)
    numbers, between = parts[1::2], parts[2:-1:2]
    yield numbers[0]
    for before, joint, number in zip(numbers, between, numbers[1:], strict=False):
        dash = joint.strip() in ("-", "–")
        if not (many or dash):
            return
        if (dash or joint.strip() == "to") and before.isdigit() and number.isdigit():
            yield from map(str, range(int(before) + 1, int(number)))
        yield number


def _named(text: str, papers: Iterable[str] = PAPERS) -> str | None:
    return next((paper for paper in papers if re.search(PAPERS[paper], text, re.I)), None)


def mentions(text: str, path: str) -> Iterator[Mention]:
    """Yield what ``text``, the content of the file at ``path``, says of the papers' items."""
    for match in _MENTION.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        paper = _named(line, ("SUNAR", "bandits")) or _named(path, ("SUNAR", "bandits", "complexity"))
        word = (match[1] or match[3]).lower()
        kind = _SHORT.get(word, word)
        for number in _numbers(match[4], many=bool(match[2] or match[3]) or kind == "appendix"):
            if number.isdigit() or kind in ("section", "appendix"):  # not 3.5 in "algorithms 1 and 2, 3.5"
                yield Mention(paper, _kind(kind, number), number, text.count("\n", 0, match.start()) + 1)


def _kind(kind: str, number: str) -> str:
    """Return ``appendix`` for section A.1, else ``kind``."""
    return "appendix" if number[0].isalpha() else kind


def listed(page: str) -> set[tuple[str, str, str]]:
    """Return the (paper, kind, number) that are in the first two columns of the page's tables."""
    items: set[tuple[str, str, str]] = set()
    paper: str | None = None
    for line in page.splitlines():
        if line.startswith("## "):
            paper = _named(line)
        elif line.startswith("| ") and paper:
            section, item = line.split("|")[1:3]
            named = list(mentions(f"{section} | {item}", f"{paper}.md"))
            items |= {(paper, mention.kind, mention.number) for mention in named}
            for number in re.findall(rf"(?<![\w.]){_NUMBER}(?![\w.])", _MENTION.sub("", section)):
                items.add((paper, _kind("section", number), number))
    for owner, kind, number in list(items):
        while "." in number and kind in ("section", "appendix"):
            number = number.rpartition(".")[0]
            items.add((owner, kind, number))
    return items


def missing(text: str, path: str, items: set[tuple[str, str, str]]) -> list[str]:
    """Return the mentions in ``text`` that are not among ``items``, in words."""
    return [
        f"{path}:{mention.line}: {mention.paper or 'any paper'}, {mention.kind} {mention.number}"
        for mention in mentions(text, path)
        if not {(paper, *mention[1:3]) for paper in ([mention.paper] if mention.paper else PAPERS)} & items
    ]


def _files() -> list[Path]:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return sorted({*ROOT.glob("*.md"), *inside} - {PAGE})


def test_every_item_of_a_paper_that_code_or_docs_name_is_on_the_page() -> None:
    items = listed(PAGE.read_text(encoding="utf-8"))
    assert {paper for paper, _, _ in items} >= {"QUIT", "SUNAR", "bandits"}
    count, unlisted = 0, []
    for path in _files():
        text = path.read_text(encoding="utf-8")
        count += sum(1 for _ in mentions(text, str(path.relative_to(ROOT))))
        unlisted += missing(text, str(path.relative_to(ROOT)), items)
    assert count > 100
    assert not unlisted, "\n".join(unlisted)


def test_what_the_page_does_not_list_is_found() -> None:
    items = listed(PAGE.read_text(encoding="utf-8"))
    assert missing("Drawn as in figure 99.", "quit/report/data.py", items) == [
        "quit/report/data.py:1: any paper, figure 99"
    ]
    # Table 12 is one of QUIT's, not of SUNAR's, and no item of retrieval complexity has a number.
    assert not missing("as table 12 has it", "quit/settings/benchmark.py", items)
    for path, paper in (("quit/systems/sunar/nar.py", "SUNAR"), ("quit/settings/complexity.py", "complexity")):
        assert missing("as table 12\nhas it", path, items) == [f"{path}:1: {paper}, table 12"]


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("figures 4 to 6", "a.py", [(None, "figure", number) for number in "456"]),
        ("tables 5, 7 and 8; table 1, 4.3", "a.py", [(None, "table", number) for number in "5781"]),
        ("eq. 1-3", "sunar/a.py", [("SUNAR", "equation", number) for number in "123"]),
        ("appendix A.2, A.3", "a.py", [(None, "appendix", "A.2"), (None, "appendix", "A.3")]),
        ("section\n    3.1.2)\nSUNAR, table 3", "a.py", [(None, "section", "3.1.2"), ("SUNAR", "table", "3")]),
        ("Each section is one; tables of a release; a figure above 0", "a.py", []),
    ],
)
def test_mentions_by_hand(text: str, path: str, expected: list[tuple[str | None, str, str]]) -> None:
    assert [mention[:3] for mention in mentions(text, path)] == expected
