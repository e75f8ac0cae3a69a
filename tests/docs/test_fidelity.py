"""Whatever code and docs say of a figure, table, section, equation, algorithm, footnote or appendix of a paper is an
item of docs/research/fidelity.md, under that paper.

Which paper is meant: the one that the line names, else the one in the file's path, else any. Our own figures and tables
have no numbers, so they cannot be taken for a paper's. A section is listed where one of its subsections is.
"""

import re
from collections.abc import Iterable, Iterator

from tests.paths import ROOT

PAGE = ROOT / "docs" / "research" / "fidelity.md"
FOLDERS = ("quit", "flows", "annotation", "schemas", "benchmarks", "docs")
SUFFIXES = {".py", ".md", ".toml", ".txt", ".html", ".js"}

PAPERS = {"SUNAR": "sunar", "bandits": "bandit|petcu", "complexity": "complexity", "QUIT": r"\bQUIT\b"}
_SHORT = {"fig": "figure", "sec": "section", "eq": "equation", "appendice": "appendix"}
_KINDS = r"(?i:(figure|table|section|equation|algorithm|footnote|appendix|appendice)(s?)|(fig|sec|eq)s?\.)"
_NUMBER = r"(?:[A-H](?:\.\d+)*\b|\d+(?:\.\d+)*)"
_MENTION = re.compile(rf"\b{_KINDS}[\s#]+({_NUMBER}(?:(?:,\s+and|,|\s+and|\s+or|\s+to|-|–)\s*{_NUMBER})*)(?![\w])")
Item = tuple[str | None, str, str]
"""Paper (None: any), kind and number, such as ``("SUNAR", "table", "4")``."""


def _named(text: str, papers: Iterable[str] = PAPERS) -> str | None:
    return next((paper for paper in papers if re.search(PAPERS[paper], text, re.I)), None)


def _item(paper: str | None, kind: str, number: str) -> Item:
    """Section A.1 is an appendix."""
    return paper, "appendix" if number[0].isalpha() else kind, number


def _each(ends: re.Match[str]) -> str:
    """Return ``4, 5, 6`` for ``4 to 6``."""
    return ", ".join(map(str, range(int(ends[1]), int(ends[2]) + 1)))


def mentions(text: str, path: str) -> Iterator[Item]:
    """Yield what ``text``, the content of the file at ``path``, says of the papers' items."""
    for match in _MENTION.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        paper = _named(line, ("SUNAR", "bandits")) or _named(path, ("SUNAR", "bandits", "complexity"))
        word = (match[1] or match[3]).lower()
        kind = _SHORT.get(word, word)
        whole = re.sub(r"\b(\d+)(?:\s+to\s+|-|–)(\d+)\b", _each, match[4])
        numbers = re.findall(_NUMBER, whole)
        for number in numbers if match[2] or match[3] or kind == "appendix" else numbers[:1]:
            if number.isdigit() or kind in ("section", "appendix"):  # not 3.5 in "algorithms 1 and 2, 3.5"
                yield _item(paper, kind, number)


def listed(page: str) -> set[Item]:
    """Return the items that are in the first two columns of the page's tables."""
    items: set[Item] = set()
    paper: str | None = None
    for line in page.splitlines():
        if line.startswith("## "):
            paper = _named(line)
        elif line.startswith("| ") and paper:
            section, item = line.split("|")[1:3]
            items |= {(paper, *mention[1:]) for mention in mentions(f"{section} | {item}", f"{paper}.md")}
            bare = re.findall(rf"(?<![\w.]){_NUMBER}(?![\w.])", _MENTION.sub("", section))
            items |= {_item(paper, "section", number) for number in bare}
    for owner, kind, number in list(items):
        parts = number.split(".") if kind in ("section", "appendix") else [number]
        items |= {(owner, kind, ".".join(parts[:length])) for length in range(1, len(parts))}
    return items


def missing(text: str, path: str, items: set[Item]) -> list[Item]:
    """Return the mentions in ``text`` that are not among ``items``."""
    of_any = {(None, *item[1:]) for item in items}
    return [mention for mention in mentions(text, path) if mention not in items | of_any]


def test_every_item_of_a_paper_that_code_or_docs_name_is_on_the_page() -> None:
    items = listed(PAGE.read_text(encoding="utf-8"))
    assert {paper for paper, _, _ in items} >= {"QUIT", "SUNAR", "bandits"}
    # Table 12 is one of QUIT's, not of SUNAR's, and no item of retrieval complexity has a number.
    assert missing("as figure 99 has it", "quit/report/data.py", items) == [(None, "figure", "99")]
    assert not missing("as table 12 has it", "quit/settings/benchmark.py", items)
    for path, paper in (("quit/systems/sunar/nar.py", "SUNAR"), ("quit/settings/complexity.py", "complexity")):
        assert missing("as table 12\nhas it", path, items) == [(paper, "table", "12")]
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    files = {path: path.read_text(encoding="utf-8") for path in {*ROOT.glob("*.md"), *inside} - {PAGE}}
    assert sum(len([*mentions(text, str(path.relative_to(ROOT)))]) for path, text in files.items()) > 100
    unlisted = {path: missing(text, str(path.relative_to(ROOT)), items) for path, text in files.items()}
    assert not {path: some for path, some in unlisted.items() if some}
