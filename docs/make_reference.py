"""Write ``docs/reference/`` and ``schemas/tables.json`` from the code. ``--check`` only says whether they are up to
date."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, is_typeddict

import typer

import quit
from quit.cli import assembled
from quit.contracts import TABLES, TableContract
from quit.qa.contracts.corpora import CORPUS_TABLES, EDGES
from quit.qa.settings import QaSettings
from quit.settings import LISTS
from quit.settings.section import AnySection, explained

sys.path.insert(0, str(Path(__file__).parent))
HERE = Path(__file__).parent / "reference"
NOTE = "<!-- Made by docs/make_reference.py; edit the code instead. -->\n\n"


def tables() -> str:
    """Return the reference of the workspace's tables."""
    lines = [NOTE + "# Tables\n", _READING]
    lines += _tables(TABLES.values())
    lines += ["# Tables of a corpus and a graph\n", "Made by `quit corpus build` and `quit graph build`.\n"]
    lines += _tables([*(made for made in CORPUS_TABLES.values() if made.name not in TABLES), EDGES])
    return "\n".join(lines)


_READING = """In pipeline order. [`quit query` and `quit.open`](../howto/library.md#look) read a workspace's current \
tables. Its folder `tables` also holds older rows, so do not read these files together.

A release's files are for DuckDB, pandas and any other Parquet reader: `tables/labels.parquet`, and for `answers` and \
`distinct_answers` a file per reader, `tables/answers/*.parquet`.
"""


def _tables(tables: Iterable[TableContract]) -> list[str]:
    lines: list[str] = []
    for made in tables:
        key = ", ".join(f"`{name}`" for name in made.key) or "none"
        released = " In every release." if made.released or made.stage == "read" else ""
        lines += [
            f"## {made.name}\n",
            f"{made.doc} Stage: {made.stage}. Key: {key}.{released}{_unchecked(made)}\n",
            "| column | type | meaning |",
            "|---|---|---|",
        ]
        for column in made.columns:
            null = ", may be null" if column.nullable else ""
            kind = str(column.type).replace("list<element: string not null>", "list of string")
            lines.append(f"| `{column.name}` | {kind}{null} | {column.doc} |")
        lines.append("")
    return lines


def _unchecked(made: TableContract) -> str:
    names = ", ".join(f"`{name}`" for name in made.unchecked)
    return f" Gates cannot check {names}." if names and (made.released or made.stage == "read") else ""


def contracts() -> str:
    """Return the tables of a workspace, a corpus and a graph as JSON."""
    tables = {table.name: asdict(table) for table in [*TABLES.values(), *CORPUS_TABLES.values(), EDGES]}
    return json.dumps(tables, indent=1, ensure_ascii=False, default=str) + "\n"


def settings() -> str:
    """Return the reference of the settings."""
    lines = [
        NOTE + "# Settings\n",
        "Defaults are the paper's numbers. A profile sets others (`quit settings --profile NAME --toml` prints it), "
        "`--set key=value` overrides both.\n",
    ]
    for name, field in QaSettings.model_fields.items():
        model = LISTS.get(name, field.annotation)
        assert isinstance(model, type) and issubclass(model, AnySection)
        lines += [
            f"## {f'[[{name}]]' if name in LISTS else f'[{name}]'}\n",
            f"{inspect.cleandoc(model.__doc__ or '')}\n",
        ]
        lines += ["| setting | default | meaning |", "|---|---|---|"]
        for key, value in explained(model).model_fields.items():
            default = "required" if value.is_required() else f"`{value.get_default(call_default_factory=True)!r}`"
            lines.append(f"| `{value.alias or key}` | {default} | {value.description} |")
        lines.append("")
    return "\n".join(lines)


def commands() -> str:
    """Return the reference of the command line."""
    lines = [NOTE + "# Commands\n"]
    lines += _commands(typer.main.get_command(assembled()), "quit")
    return "\n".join(lines) + "\n"


def _commands(command, name: str) -> list[str]:
    lines: list[str] = []
    for child_name, child in getattr(command, "commands", {}).items():
        full = f"{name} {child_name}"
        if getattr(child, "commands", None):
            lines += _commands(child, full)
            continue
        lines += [f"## {full}\n", (child.help or "").strip() + "\n", "| option | meaning |", "|---|---|"]
        for parameter in child.params:
            if parameter.name == "help":
                continue
            shown = (
                ", ".join(f"`{text}`" for text in parameter.opts)
                if parameter.param_type_name == "option"
                else f"`{parameter.name.upper()}`"
            )
            lines.append(f"| {shown} | {getattr(parameter, 'help', '') or ''} |")
        lines.append("")
    return lines


def python() -> str:
    """Return the reference of what ``import quit`` offers."""
    lines = [
        NOTE + "# Python\n",
        "What `import quit` offers, with the errors of `quit.errors`. How to use it: [library](../howto/library.md).\n",
    ]
    for name in quit.__all__:
        offered = getattr(quit, name)
        lines += [f"## quit.{name}\n", *_documented(offered, f"quit.{name}")]
        has_members = inspect.isclass(offered) and not is_dataclass(offered) and not is_typeddict(offered)
        for member, value in vars(offered).items() if has_members else ():
            if not member.startswith("_"):
                lines += [f"### {name}.{member}\n", *_documented(value, member)]
    return "\n".join(lines)


def _documented(value: Any, name: str) -> list[str]:
    shown = []
    if inspect.isfunction(value) or is_dataclass(value):
        signature = re.sub(r"(: |-> )'([^']+)'", r"\1\2", str(inspect.signature(value)))  # annotations are texts
        shown = [f"`{name}{re.sub(r'[(](self|tables: Opened)(, )?', '(', signature)}`\n"]
    if is_typeddict(value):
        fields = ", ".join(f"{key}: {kind.__forward_arg__}" for key, kind in value.__annotations__.items())
        shown = [f"`{name}({fields})`\n"]
    return [*shown, _markdown(inspect.cleandoc(value.__doc__ or "")) + "\n"]


def _markdown(text: str) -> str:
    """Return a docstring's sections as lists."""
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text.replace("``", "`"))
    text = re.sub(r"^(Args|Returns|Raises|Attributes):$", r"\n**\1**\n", text, flags=re.M)
    text = re.sub(r"^    (?! )(\*{0,2}\w+): ", lambda match: f"- `{match[1]}`: ", text, flags=re.M)
    return re.sub(r"\n\n\n+", "\n\n", re.sub(r"^ +", "  ", text, flags=re.M).replace("\n  \n", "\n\n"))


def formats() -> str:
    """Return the reference of sources and exports."""
    from make_formats import page

    return NOTE + page()


def fidelity() -> str:
    """Return the page on fidelity with its commands."""
    from make_papers import page

    return page()


PAGES = {
    "tables.md": tables,
    "settings.md": settings,
    "commands.md": commands,
    "formats.md": formats,
    "python.md": python,
    "../research/fidelity.md": fidelity,
    "../../schemas/tables.json": contracts,
}


def main(check: bool = False) -> list[str]:
    """Write the pages, or with ``check`` return the names of those that are out of date."""
    stale = []
    for name, make in PAGES.items():
        path, text = HERE / name, make()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    names = main("--check" in sys.argv)
    print("\n".join(names) or "up to date")
    sys.exit(bool(names) and "--check" in sys.argv)
