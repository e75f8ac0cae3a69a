"""The published tables are what the papers print, and a row that is said to run here has its system in a command."""

import shlex
from fnmatch import fnmatchcase

import pytest

from quit.errors import SettingsError
from quit.qa.bandits.policies import policies
from quit.qa.benchmark.finetune import SPEC
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
    numbers = {each.id: f"{each.id.split('-')[0]}-{number}" for each in items() for number in each.id.split("-")[1:]}
    assert {f"quit-{n}" for n in range(1, 13)} | {f"sunar-{n}" for n in range(1, 10)} <= {each.id for each in items()}
    assert {f"bandits-{n}" for n in range(1, 6)} <= {*numbers}


@pytest.mark.parametrize(("name", "labels", "head", "published"), cases(__file__, "cells.jsonl"))
def test_cells_are_as_printed(name: str, labels: list[str], head: str, published: str) -> None:
    [row] = [row for row in item(name).rows if [*row.labels] == labels]
    heads = item(name).heads[-len(row.published) :]
    assert row.published[heads.index(head)] == published


def _offered(run: Run) -> dict[str, set[str]]:
    """Return what tells the rows of a command's results apart, and the names that they have."""
    words = shlex.split(run.command)
    options: dict[str, list[str]] = {}
    for option, value in zip(words, words[1:], strict=False):
        options.setdefault(option, []).extend(value.split(","))
    whole = {option: value for option, value in zip(words, words[1:], strict=False)}
    repeated = {name: {b for a, b in zip(words, words[1:], strict=False) if a == f"--{name}"} for name in
                ("retriever", "reranker", "reader", "corpus")}  # fmt: skip
    if words[1:3] == ["benchmark", "run"]:
        return {**repeated, "retriever": {*repeated["retriever"], "oracle"}, "corpus": {*repeated["corpus"], "release"},
                "reranker": {*repeated["reranker"], "", "oracle"}}  # fmt: skip
    if words[1:3] == ["benchmark", "finetune"]:
        kind = whole["--kind"]
        models = {f"{SPEC[kind]}:out/base-{kind}-{part.split(':')[0]}pos-0" for part in options["--positives"]}
        reranks = kind == "monot5"
        return {"corpus": {"release"}, "retriever": {"oracle"} if reranks else models,
                "reranker": models if reranks else {""}}  # fmt: skip
    if words[1:3] == ["sunar", "run"]:
        return {"variant": {*options["--variant"]}}
    if words[1:3] == ["index", "evaluate"]:
        return {"stage": {*words[words.index("C") + 1 :]}}
    if words[1] == "bandits":
        names = options["--policies"]
        every = [policy.name for policy in policies(QaSettings().bandits)]
        percents = range(10, 101, 10) if whole.get("--budget", "10..100") == "10..100" else [int(whole["--budget"])]
        return {"policy": {*(every if names == ["all"] else names)}, "budget": {f"{n / 100:g}" for n in percents},
                "structure": {"flat", *(["tree"] if whole["--arms"] == "ARMS" else [])}}  # fmt: skip
    return {}


def _lacking(table: Item, offers: list[dict[str, set[str]]]) -> list[tuple[str, ...]]:
    """Return labels of the rows and columns that run here and that no command's results have."""
    keys = {key for offer in offers for key in offer}

    def has(offer: dict[str, set[str]], selector: tuple[tuple[str, str], ...]) -> bool:
        return all(
            any(fnmatchcase(name, pattern) or name.lower() == pattern.lower() or
                fnmatchcase(name.lower(), pattern.lower()) for name in offer.get(key, ()) for pattern in text.split("|"))
            for key, text in selector if key in keys
        )  # fmt: skip

    rows = [(row.labels, row.selector) for row in table.rows if not row.why]
    return [labels for labels, of_row in rows for column in table.columns
            if not any(has(offer, of_row + column) for offer in offers)]  # fmt: skip


@pytest.mark.parametrize("table", RUN_HERE, ids=[table.id for table in RUN_HERE])
def test_every_row_that_runs_here_has_its_system_in_a_command(table: Item) -> None:
    assert table.runs
    assert not _lacking(table, [_offered(run) for run in table.runs])
    assert all(row.selector for row in table.rows if not row.why) or table.parts or table.id == "bandits-figure-12"


def test_a_command_that_lacks_a_row_is_seen() -> None:
    table = item("quit-6")
    shorter = [Run(run.name, run.command.replace("--retriever bm25 ", ""), run.section) for run in table.runs]
    assert {labels for labels in _lacking(table, [_offered(run) for run in shorter])} == {("BM25",)}


def test_every_command_serves_an_item_or_prepares_one() -> None:
    used = {run.command for each in items() for run in each.runs}
    rest = {" ".join(run.command.split()[1:3]) for run in runs() if run.command not in used}
    assert rest <= {"corpus build", "index build", "graph build", "release import", "benchmark finetune"}


def test_another_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="no table or figure 'quit-55'.*quit-5"):
        item("quit-55")
