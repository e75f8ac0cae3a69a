"""What the docs say is what the code does."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def _reference():
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_up_to_date() -> None:
    assert _reference().main(check=True) == [], "run: python docs/make_reference.py"


def _commands() -> dict[str, set[str]]:
    """Return command path -> its options."""
    from quit.cli import app

    found: dict[str, set[str]] = {}

    def walk(command, path: tuple[str, ...]) -> None:
        children = getattr(command, "commands", {})
        for name, child in children.items():
            walk(child, (*path, name))
        if not children:
            found[" ".join(path)] = {option for parameter in command.params for option in parameter.opts} | {"--help"}

    walk(typer.main.get_command(app), ())
    return found


def test_every_command_that_the_docs_show_exists_with_its_options() -> None:
    commands = _commands()
    shown = 0
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S):
            for line in block.splitlines():
                words = shlex.split(line, comments=True)
                if not words or Path(words[0]).name != "quit":
                    continue
                name = next((name for name in commands if words[1 : 1 + len(name.split())] == name.split()), None)
                assert name, f"{page.name}: {line}"
                used = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
                assert used <= commands[name], f"{page.name}: {line}"
                shown += 1
    assert shown >= 6


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readmes_stage_table_is_the_pipeline() -> None:
    from quit.stages import STAGES

    rows = re.findall(
        r"^\| (\d+) \| (\w+) \|.*\| ([\w, ]+) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M
    )
    expected = [
        (str(stage.number), stage.name, ", ".join(name for name in stage.outputs if name != "rejects"))
        for stage in STAGES
    ]
    assert rows == expected


def test_the_readmes_record_is_one_the_reader_takes(tmp_path: Path) -> None:
    from quit.sources import parse_source, read_source

    text = re.search(r"```json\n(.*?)\n```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    assert text
    record = json.loads(text.group(1))
    record["hints"] = ["It lies inside another country.", "Its people wear a hat with a knot."]
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    [made] = list(read_source(parse_source(f"jsonl:{path}")))
    assert made.question and made.question.answers == ("Lesotho",)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_this_machine(page: Path) -> None:
    assert str(ROOT.parent) + "/" not in page.read_text(encoding="utf-8")
