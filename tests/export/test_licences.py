"""Licences by the hub's identifiers."""

import csv
from pathlib import Path

import pytest

from quit.export import licences
from quit.export.licences import hub_licence


@pytest.mark.parametrize(
    ("licence", "expected"),
    [("MIT", "mit"), ("MIT License", "mit"), ("CC BY 4.0", "cc-by-4.0"), ("CC-BY-4.0", "cc-by-4.0"),
     ("Apache-2.0", "apache-2.0"), ("our own", "other"), ("", "unknown"), ("CC0", "cc0-1.0"),
     ("CC BY-NC 2.0", "cc-by-nc-2.0"), ("Apache License, Version 2.0", "apache-2.0"), ("gemma", "gemma"),
     ("Creative Commons Attribution Share Alike 4.0 International", "cc-by-sa-4.0"), ("LGPL v2.1", "lgpl-2.1"),
     ("ODC-By-1.0", "odc-by"), ("PDDL", "pddl"), ("The Unlicense", "unlicense"), ("other", "other")],
)  # fmt: skip
def test_hub_licence(licence, expected):
    assert hub_licence(licence) == expected


def test_each_name_of_a_licence_of_the_hubs_list_is_that_licence():
    with Path(licences.__file__).with_name("licences.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 70
    for row in rows:
        assert {hub_licence(text) for text in row.values() if text} == {row["hub"]}
