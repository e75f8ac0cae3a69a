"""The identities of the shipped profiles' models: fingerprints, kept replies and published figures rest on them."""

import json
from pathlib import Path

import pytest

from quit.common.arithmetic import arithmetic
from quit.models.factory import Models
from quit.models.language_models import generator_identity
from quit.settings import load
from quit.stages.identities import identities, reader_identity

PINNED = json.loads(Path(__file__).with_name("identities.json").read_text(encoding="utf-8"))
NAMES = ("encoder", "equivalence", "judge", "convergence", "question_types", "leak_rules", "candidates", "difficulty")


@pytest.mark.parametrize("profile", ["cpu", "embedded", "paper", "server"])
def test_fingerprints_contain_the_pinned_identities(profile: str) -> None:
    settings = load(profile).settings
    found = dict(zip(NAMES, identities(settings, NAMES), strict=True))
    found |= {reader.name: reader_identity(reader, settings) for reader in settings.readers}
    assert {name: text.replace(arithmetic(), "MACHINE") for name, text in found.items()} == PINNED[profile]


def test_rows_name_the_pinned_producers() -> None:
    models = Models(load("embedded").settings)
    found = {name: getattr(models, name).identity for name in PINNED["producers"]}
    assert {name: text.replace(arithmetic(), "MACHINE") for name, text in found.items()} == PINNED["producers"]


def test_convergence_by_a_language_model_has_the_pinned_identity() -> None:
    settings = load("paper", ["convergence.method=llm", "convergence.language_model=gpt-eval"]).settings
    assert identities(settings, ["convergence"]) == [PINNED["convergence_llm"]]


def test_kept_replies_have_the_pinned_identities() -> None:
    settings = load("paper").settings
    assert {spec.name: generator_identity(spec) for spec in settings.replying_models} == PINNED["generators"]
