"""The commands of the page ``docs/research/fidelity.md``, from the papers' declared tables and figures. Used by
``make_reference.py``."""

from __future__ import annotations

import re
from pathlib import Path

from quit.qa.papers.items import Run, items, runs

PAGE = Path(__file__).parent / "research" / "fidelity.md"
MARK = "<!-- Made by docs/make_reference.py from quit/qa/papers/papers.toml: {section} -->\n\n```sh\n"


def page() -> str:
    """Return the page with the commands as they are declared: those of each section below its mark."""
    text = PAGE.read_text(encoding="utf-8")
    for section in dict.fromkeys(run.section for run in runs()):
        before, mark, rest = text.partition(MARK.format(section=section))
        if not mark:
            raise ValueError(f"{PAGE.name} has no mark of the section {section}")
        text = before + mark + commands(section) + rest[rest.index("```\n") :]
    return text


def commands(section: str) -> str:
    """Return the commands of a section, above them what they are for."""
    lines: list[str] = []
    before = ""
    for run in runs():
        if run.section == section:
            comment = ", ".join(filter(None, (_items(run), run.note)))
            lines += [f"# {comment[0].upper()}{comment[1:]}"] if comment and comment != before else []
            lines.append(run.command)
            before = comment
    return "".join(f"{line}\n" for line in lines)


def _items(run: Run) -> str:
    """Return the items that need a command: ``Tables 4, 5 and 10, figure 6``."""
    kinds: dict[str, list[str]] = {}
    for item in items():
        if run in item.runs:
            name = re.fullmatch(r"[a-z]+-(?:(figure|footnote)s?-)?(\d[\d-]*)", item.id)
            kind, number = (name[1] or "table", name[2].replace("-", " to ")) if name else ("", item.title)
            kinds.setdefault(kind, []).append(number)
    return ", ".join(
        f"{kind}{'s' * (kind != '' and (len(numbers) > 1 or ' to ' in numbers[0]))} {_listed(numbers)}".strip()
        for kind, numbers in kinds.items()
    )


def _listed(numbers: list[str]) -> str:
    *first, last = numbers
    return f"{', '.join(first)} and {last}" if first else last
