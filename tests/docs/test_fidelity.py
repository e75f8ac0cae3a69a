"""Whatever code and docs say of a figure, table, section, equation, algorithm, footnote or appendix of a paper is an
item of docs/research/fidelity.md, under that paper, or a table or figure that is declared (:mod:`quit.qa.papers`).

Which paper is meant: the one that the line names, else the one in the file's path, else any. Our own figures and tables
have no numbers, so they cannot be taken for a paper's.
"""

import re
from collections.abc import Iterable, Iterator

from quit.qa.papers.items import items
from tests.paths import ROOT

PAGE = ROOT / "docs" / "research" / "fidelity.md"
FOLDERS = ("quit", "flows", "annotation", "schemas", "benchmarks", "docs")
SUFFIXES = {".py", ".md", ".toml", ".txt", ".html", ".js"}

PAPERS = {"SUNAR": "sunar", "bandits": "bandit|petcu", "complexity": "complexity", "QUIT": r"\bQUIT\b"}
SECTIONS = ("section", "sec", "appendix")
_NUMBER = r"(?:[A-H](?:\.\d+)*\b|\d+(?:\.\d+)*)"
_MENTION = re.compile(
    rf"(?i:\b(figure|fig\.|table|section|sec\.|equation|eq\.|algorithm|footnote|appendix))(s?)[\s#]+"
    rf"({_NUMBER}(?:(?:,\s+and|,|\s+and|\s+or|\s+to|-|–)\s*{_NUMBER})*)(?!\w)"
)
Item = tuple[str | None, str, str]
"""Paper (None: any), kind and number, such as ``("SUNAR", "table", "4")``."""


def _named(text: str, papers: Iterable[str] = PAPERS) -> str | None:
    return next((paper for paper in papers if re.search(PAPERS[paper], text, re.I)), None)


def _whole(text: str) -> str:
    """Return ``text`` with ``4, 5, 6`` for ``4 to 6``."""

    def each(ends: re.Match[str]) -> str:
        return ", ".join(map(str, range(int(ends[1]), int(ends[2]) + 1)))

    return re.sub(r"\b(\d+)(?:\s+to\s+|-|–)(\d+)\b", each, text)


def mentions(text: str, path: str) -> Iterator[Item]:
    """Yield what ``text``, the content of the file at ``path``, says of the papers' items."""
    for match in _MENTION.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        paper = _named(line, ("SUNAR", "bandits")) or _named(path, ("SUNAR", "bandits", "complexity"))
        kind = match[1].lower().rstrip(".")
        for number in re.findall(_NUMBER, _whole(match[3]))[: None if match[2] else 1]:
            if number.isdigit() or kind in SECTIONS:  # not 3.5 in "algorithms 1 and 2, 3.5"
                yield paper, kind, number


def missing(text: str, path: str, page: str) -> list[Item]:
    """Return the mentions in ``text`` that are neither in the first column of a table of that paper nor declared."""
    rows = [
        (_named(section.partition("\n")[0]), _whole(line.split("|")[1]).lower())
        for section in page.split("\n## ")
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    for item in items():
        paper, _, name = item.id.partition("-")
        kind, _, number = name.partition("-") if name[0].isalpha() else ("table", "", name)
        rows.append((_named(paper), _whole(f"{kind.removesuffix('s')} {number}")))

    def listed(paper: str | None, kind: str, number: str) -> bool:
        """A number without a kind is a section's; a section is listed where one of its subsections is."""
        word = re.compile(rf"(?<![\w.]){re.escape(number.lower())}(?!\w)")
        of_kind = "" if kind in SECTIONS else kind
        return any(paper in (None, of_row) and of_kind in row and word.search(row) for of_row, row in rows)

    return [item for item in mentions(text, path) if not listed(*item)]


def test_every_item_of_a_paper_that_code_or_docs_name_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    # Table 12 is one of QUIT's, not of SUNAR's, and no item of retrieval complexity has a number.
    assert missing("as figure 99 has it", "quit/report/data.py", page) == [(None, "figure", "99")]
    assert not missing("as table 12 has it", "quit/qa/settings/benchmark.py", page)
    for path, paper in (("quit/qa/sunar/nar.py", "SUNAR"), ("quit/qa/settings/complexity.py", "complexity")):
        assert missing("as table 12\nhas it", path, page) == [(paper, "table", "12")]
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    files = {path: path.read_text(encoding="utf-8") for path in {*ROOT.glob("*.md"), *inside} - {PAGE}}
    assert sum(len([*mentions(text, str(path.relative_to(ROOT)))]) for path, text in files.items()) > 100
    unlisted = {path: missing(text, str(path.relative_to(ROOT)), page) for path, text in files.items()}
    assert not {path: some for path, some in unlisted.items() if some}
