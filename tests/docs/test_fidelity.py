"""Whatever code and docs say of a figure, table, section, equation, algorithm, footnote or appendix of a paper is an
item of docs/research/fidelity.md, under that paper.

Which paper is meant: the one that the line names, else the innermost heading (of a page) or table (of a TOML file) that
names one, else the one in the file's path, else QUIT. Our own figures and tables have no numbers, so they cannot be
taken for a paper's. A section is listed where one of its subsections is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "research" / "fidelity.md"
FOLDERS = ("quit", "flows", "annotation", "schemas", "benchmarks", "docs")
SUFFIXES = {".py", ".md", ".toml", ".txt", ".html", ".js"}

PAPERS = ("SUNAR", "bandits", "complexity", "QUIT")
_NAMES = {"SUNAR": r"sunar", "bandits": r"bandit|petcu", "complexity": r"complexity", "QUIT": r"\bQUIT\b"}
_SHORT = {"fig": "figure", "sec": "section", "eq": "equation", "appendice": "appendix"}
_KINDS = r"(?i:(figure|table|section|equation|algorithm|footnote|appendix|appendice)(s?)|(fig|sec|eq)s?\.)"
_NUMBER = r"(?:[A-H](?:\.\d+)*\b|\d+(?:\.\d+)*)"
_MENTION = re.compile(rf"\b{_KINDS}[\s#]+({_NUMBER}(?:(?:,\s+and|,|\s+and|\s+or|\s+to|-|–)\s*{_NUMBER})*)(?![\w])")
_HEADING = re.compile(r"^(?:(#+)\s+(.*)|\[+([\w.]+)\]+.*)$", re.M)
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


class Mention(NamedTuple):
    """An item of a paper, such as ``("table", "4")``, and the line that names it."""

    paper: str
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


def _named(text: str, flags: int = re.I) -> str | None:
    return next((paper for paper in PAPERS if re.search(_NAMES[paper], text, flags)), None)


def _headings(text: str, suffix: str) -> tuple[list[int], list[str | None]]:
    """Return where each heading begins and which paper it or the innermost heading around it names."""
    starts: list[int] = [0]
    papers: list[str | None] = [None]
    if suffix not in (".md", ".toml"):
        return starts, papers
    around: list[tuple[int, str | None]] = []
    plain = _FENCE.sub(lambda block: " " * len(block[0]), text) if suffix == ".md" else text
    for heading in _HEADING.finditer(plain):
        marks, words, table = heading.groups()
        if (table is None) == (suffix == ".toml"):
            continue
        level = len(marks) if marks else 1
        around = [(outer, paper) for outer, paper in around if outer < level]
        around.append((level, _named(words or table) or (around[-1][1] if around else None)))
        starts.append(heading.start())
        papers.append(around[-1][1])
    return starts, papers


def mentions(text: str, path: str) -> Iterator[Mention]:
    """Yield what ``text``, the content of the file at ``path``, says of the papers' items."""
    starts, papers = _headings(text, Path(path).suffix)
    for match in _MENTION.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        named_in_line = next((paper for paper in PAPERS[:2] if re.search(_NAMES[paper], line, re.I)), None)
        paper = named_in_line or papers[bisect_right(starts, match.start()) - 1] or _named(path) or "QUIT"
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
        f"{path}:{mention.line}: {mention.paper}, {mention.kind} {mention.number}"
        for mention in mentions(text, path)
        if mention[:3] not in items
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
    assert missing("Drawn as in figure 99.", "quit/report/data.py", items) == ["quit/report/data.py:1: QUIT, figure 99"]
    # Table 12 is one of QUIT's, not of SUNAR's, and no item of retrieval complexity has a number.
    assert not missing("as table 12 has it", "quit/settings/benchmark.py", items)
    for path, paper in (("quit/systems/sunar/nar.py", "SUNAR"), ("quit/settings/complexity.py", "complexity")):
        assert missing("as table 12\nhas it", path, items) == [f"{path}:1: {paper}, table 12"]


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("figures 4 to 6", "a.py", [("QUIT", "figure", n) for n in "456"]),
        ("tables 5, 7 and 8; table 1, 4.3", "a.py", [("QUIT", "table", n) for n in "5781"]),
        ("eq. 1-3", "sunar/a.py", [("SUNAR", "equation", n) for n in "123"]),
        ("appendix A.2, A.3", "a.py", [("QUIT", "appendix", "A.2"), ("QUIT", "appendix", "A.3")]),
        ("section\n    3.1.2)", "a.py", [("QUIT", "section", "3.1.2")]),
        ("# SUNAR, section 4\n[sunar]\nm = 1  # table 3\n[x]\n# table 2", "a.toml",
         [("SUNAR", "section", "4"), ("SUNAR", "table", "3"), ("QUIT", "table", "2")]),
        ("## Bandits\n### Time\ntable 4\n## Readers\n```sh\n# SUNAR\n```\ntable 8", "docs/a.md",
         [("bandits", "table", "4"), ("QUIT", "table", "8")]),
        ("Each section is one; tables of a release; a figure above 0", "a.py", []),
    ],
)  # fmt: skip
def test_mentions_by_hand(text: str, path: str, expected: list[tuple[str, str, str]]) -> None:
    assert [mention[:3] for mention in mentions(text, path)] == expected
