"""What the docs say is what the code does."""

import ast
import importlib
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import commands
from tests.docs.pages import blocks
from tests.frozen.values import PERMUTATIONS, read
from tests.paths import ROOT
from tests.running import run_process

sys.path.insert(0, str(ROOT / "docs"))

import make_picture
import make_reference

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def test_the_reference_is_up_to_date() -> None:
    assert make_reference.main(check=True) == [], "run: python docs/make_reference.py"


def test_the_picture_is_up_to_date() -> None:
    assert not make_picture.main(check=True), "run: python docs/make_picture.py"


def test_every_setting_is_explained() -> None:
    rows = re.findall(r"^\| `(.+?)` \| .+ \| (.*) \|$", make_reference.settings(), re.MULTILINE)
    assert len(rows) > 100 and not [key for key, meaning in rows if not meaning.endswith((".", ")"))]


def test_every_command_is_on_a_page_other_than_the_reference() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "commands.md")
    missing = [name for name in commands() if f"quit {name}" not in text]
    assert not missing


def test_every_command_that_the_docs_show_exists_with_its_options() -> None:
    options = {
        name: {option for parameter in command.params for option in parameter.opts} | {"--help"}
        for name, command in commands().items()
    }
    shown = 0
    for page in PAGES:
        for line in "".join(block.text for block in blocks(page) if block.kind == "sh").splitlines():
            words = shlex.split(line, comments=True)
            if not words or Path(words[0]).name != "quit" or words[1] == "--install-completion":
                continue
            name = next((name for name in options if words[1 : 1 + len(name.split())] == name.split()), None)
            assert name, f"{page.name}: {line}"
            used = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
            assert used <= options[name], f"{page.name}: {line}"
            shown += 1
    assert shown >= 6


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8"))
        waiting += [(page.parent / link).resolve() for link in links]
    assert set(PAGES) <= reached, set(PAGES) - reached


def test_the_readmes_labels_by_hints_are_the_frozen_ones() -> None:
    shown = re.findall(
        r"^\| (\d) \| ([\d,]+) \| ([\d,]+) \| ([\d.]+%) \|$", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    labels = list(read("starter")["build: table labels"]["questions"].values())
    assert len(shown) == 3
    for hints, passages, label_2, share in shown:
        places = [place for place, name in enumerate(PERMUTATIONS) if len(name) == int(hints)]
        right = sum(codes[place] != "0" for codes in labels for place in places)
        total = len(labels) * len(places)
        assert (passages, label_2, share) == (f"{total:,}", f"{right:,}", f"{right / total:.1%}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_the_pages_is_code(page: Path) -> None:
    """Python compiles, its imports of ours exist, JSON is JSON; what the tutorial and the how-to of exports show is run
    elsewhere."""
    text = page.read_text(encoding="utf-8")
    assert f"{ROOT.parent}/" not in text, "a page names this machine"
    for block in blocks(page):
        for node in ast.walk(ast.parse(block.text)) if block.kind == "python" else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "quit":
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names), f"{page.name}: {node.module}"
        if block.kind == "json":
            json.loads(block.text)
        elif block.kind == "sh":
            run_process("bash", "-n", stdin=block.text)


def test_comments_stand_above_long_commands() -> None:
    lines = [(page.name, line) for page in PAGES for block in blocks(page) if block.kind == "sh"
             for line in block.text.splitlines() if not line.lstrip().startswith("#")]  # fmt: skip
    commented = [(name, line) for name, line in lines if shlex.split(line) != shlex.split(line, comments=True)]
    assert commented and not [one for one in commented if len(one[1]) > 80]


def test_settings_that_the_pages_name_exist() -> None:
    from quit.qa.settings import QaSettings
    from quit.settings import flatten

    keys = {key for key, _ in flatten(QaSettings().model_dump())} | {"key"}
    named = set()
    for page in PAGES:
        named |= set(re.findall(r"--set ([a-z_.]+)=", page.read_text(encoding="utf-8")))
    assert named and named <= keys, named - keys


def test_messages_that_troubleshooting_quotes_are_the_programs() -> None:
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/howto/troubleshooting.md").read_text(encoding="utf-8"), flags=re.M)
    own = [text for row in rows if not re.search("vLLM|Ray", row) for text in re.findall(r"`([^`]+ [^`]+)`", row)]
    quoted = {part.removesuffix(" is ''") for text in own for part in text.split(" ... ")}
    files = [path for folder in ("quit", "annotation", "flows") for path in (ROOT / folder).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(quoted) >= 3 and not {text for text in quoted if text not in code}


def test_pages_that_the_code_names_are_there() -> None:
    files = [path for folder in ("quit", "annotation", "flows") for path in (ROOT / folder).rglob("*.py")]
    pages = {page for path in files for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))}
    assert pages and not {page for page in pages if not (ROOT / page).is_file()}


def test_help_names_the_flows_that_are_served() -> None:
    from quit.flows.serve import FLOWS

    offered = re.search("Offer (.*) in Prefect", commands()["serve"].help or "")
    assert offered and re.split(", | and ", offered[1]) == [*FLOWS]


def test_the_citation_is_whole() -> None:
    import yaml

    import quit

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    expected = {"cff-version": "1.2.0", "version": quit.__version__, "license": "Apache-2.0"}
    assert citation.items() >= expected.items()
    assert citation["title"] and citation["message"] and citation["authors"]
    assert citation["preferred-citation"]["doi"] in (ROOT / "README.md").read_text(encoding="utf-8")
