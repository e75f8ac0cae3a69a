"""The published tables are what the papers print, and a row that is said to run here has its system in a command."""

import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import pairwise

import pytest

from quit.errors import SettingsError
from quit.qa.bandits.policies import policies
from quit.qa.benchmark.finetune import KINDS
from quit.qa.papers.items import Item, Run, item, items, runs
from quit.qa.settings import QaSettings
from tests.rows import cases

WITH_ROWS = [each for each in items() if each.rows]
RUN_HERE = [each for each in WITH_ROWS if not each.why]
SHAPES = {
    "quit-1": (8, 1), "quit-2": (15, 5), "quit-3": (15, 4), "quit-4": (5, 8), "quit-5": (15, 8), "quit-6": (7, 8),
    "quit-7": (6, 4), "quit-8": (18, 3), "quit-9": (4, 3), "quit-10": (7, 8), "quit-11": (7, 8), "quit-12": (7, 6),
    "quit-figure-4": (3, 2),
    "sunar-1": (14, 2), "sunar-2": (4, 2), "sunar-3": (6, 2), "sunar-4": (3, 2), "sunar-5": (3, 4), "sunar-7": (3, 4),
    "sunar-8": (6, 4), "sunar-9": (6, 2),
    "bandits-2": (8, 6), "bandits-3": (11, 7), "bandits-4": (14, 4), "bandits-5": (6, 7), "bandits-figure-12": (1, 3),
    "rrcp-identification": (4, 12), "rrcp-answers": (6, 3), "rrcp-geneval": (2, 3),
}  # fmt: skip
"""Rows and columns of values of each table with numbers, counted in the papers."""


def test_each_table_has_the_papers_rows_and_columns() -> None:
    assert {each.id: (len(each.rows), len(each.columns)) for each in WITH_ROWS} == SHAPES
    tables = {f"{paper}-{number}" for paper, count in (("quit", 12), ("sunar", 9), ("bandits", 5))
              for number in range(1, count + 1)}  # fmt: skip
    assert tables <= {each.id for each in items()}


@pytest.mark.parametrize(("name", "labels", "head", "published"), cases(__file__, "cells.jsonl"))
def test_cells_are_as_printed(name: str, labels: list[str], head: str, published: str) -> None:
    [row] = [row for row in item(name).rows if [*row.labels] == labels]
    heads = item(name).heads[-len(row.published) :]
    assert row.published[heads.index(head)] == published


def _offered(run: Run) -> dict[str, set[str]]:
    """Return what tells the rows of a command's results apart, and the names that they have."""
    words = shlex.split(run.command)
    values: dict[str, list[str]] = {}
    for option, value in pairwise(words):
        values.setdefault(option, []).append(value)
    if words[1:3] == ["benchmark", "run"]:
        names = {key: set(values.get(f"--{key}", ())) for key in ("retriever", "reranker", "reader", "corpus")}
        for key, more in (("retriever", {"oracle"}), ("reranker", {"", "oracle"}), ("corpus", {"release"})):
            names[key] |= more
        return names
    if words[1:3] == ["benchmark", "finetune"]:
        [kind], [positives] = values["--kind"], values["--positives"]
        numbers = [part.partition(":")[0] for part in positives.split(",")]
        models = {f"{KINDS[kind].plugin}:out/base-{kind}-{number}pos-0" for number in numbers}
        systems = {"retriever": {"oracle"}, "reranker": models} if KINDS[kind].reranks else {"retriever": models}
        return {"corpus": {"release"}, "reranker": {""}} | systems
    if words[1:3] == ["sunar", "run"]:
        return {"variant": set(values["--variant"][0].split(","))}
    if words[1:3] == ["index", "evaluate"]:
        return {"stage": set(words)}
    if words[1:2] == ["bandits"]:
        names_of = values["--policies"][0].split(",")
        [budget] = values.get("--budget", ["10..100"])
        percents = range(10, 101, 10) if budget == "10..100" else [int(budget)]
        structures = {"flat", "tree"} if values["--arms"] == ["ARMS"] else {"flat"}
        policy = {each.name for each in policies(QaSettings().bandits)} if names_of == ["all"] else set(names_of)
        return {"policy": policy, "budget": {f"{number / 100:g}" for number in percents}, "structure": structures}
    return {}


def _lacking(table: Item, runs_of: Iterable[Run]) -> set[tuple[str, ...]]:
    """Return the labels of rows that run here and lack some column in the results of all commands."""
    offers = [_offered(run) for run in runs_of]
    keys = {key for offer in offers for key in offer}

    def has(offer: dict[str, set[str]], key: str, text: str) -> bool:
        patterns = text.lower().split("|")
        return any(fnmatchcase(name.lower(), pattern) for name in offer.get(key, ()) for pattern in patterns)

    cells = [(row, row.selector + column) for row in table.rows if not row.why for column in table.columns]
    return {
        row.labels
        for row, selector in cells
        if not any(all(has(offer, *pair) for pair in selector if pair[0] in keys) for offer in offers)
    }


@pytest.mark.parametrize("table", RUN_HERE, ids=[table.id for table in RUN_HERE])
def test_every_row_that_runs_here_has_its_system_in_a_command(table: Item) -> None:
    assert table.runs and not _lacking(table, table.runs)
    # Two rows with the same selectors would show the same values.
    selectors = [row.selector for row in table.rows if not row.why]
    assert len(set(selectors)) == len(selectors)


def test_a_command_that_lacks_a_row_is_seen() -> None:
    table = item("quit-6")
    shorter = [Run(run.name, run.command.replace("--retriever bm25 ", ""), run.section) for run in table.runs]
    assert _lacking(table, shorter) == {("BM25",)}


def test_every_command_serves_an_item_or_prepares_one() -> None:
    commands = {run.command for each in items() for run in each.runs}
    rest = {" ".join(run.command.split()[1:3]) for run in runs() if run.command not in commands}
    assert rest <= {"corpus build", "index build", "graph build", "release import"}


def test_another_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="no table or figure 'quit-55'.*quit-5"):
        item("quit-55")
