"""What a plan refuses before anything runs, and what its fingerprints leave out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline, check_buildable
from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.settings import load
from quit.sources import parse_source
from tests.conftest import STARTER

COMMIT = "models.bem_revision=" + "0123456789abcdef" * 2 + "01234567"


def _pipeline(folder: Path, *overrides: str) -> Pipeline:
    return Pipeline(Workspace(folder / "W"), load("embedded", overrides).settings, [parse_source(f"jsonl:{STARTER}")])


@pytest.mark.parametrize("revision", ["main", "", "v1.0", "0123456"])
def test_the_papers_profile_refuses_a_revision_that_may_move(revision: str, tmp_path: Path) -> None:
    corpus = f"difficulty.corpus={tmp_path / 'c.jsonl'}"
    with pytest.raises(SettingsError, match=r"Set a commit .* models\.bem_revision=COMMIT"):
        check_buildable(load("paper", [corpus, f"models.bem_revision={json.dumps(revision)}"]).settings)
    check_buildable(load("paper", [corpus, COMMIT]).settings)
    check_buildable(load("paper", [corpus, f"models.bem_checkpoint={tmp_path}"]).settings)  # known by its content
    check_buildable(load("embedded", [f"models.bem_revision={json.dumps(revision)}"]).settings)


def test_the_papers_profile_wants_a_corpus_for_difficulty() -> None:
    with pytest.raises(SettingsError, match=r"difficulty\.corpus=FILE"):
        check_buildable(load("paper", [COMMIT]).settings)
    check_buildable(load("paper", [COMMIT, "difficulty.counts=nearness"]).settings)


def test_another_leakage_method_leads_to_another_fingerprint_from_the_filter_on(tmp_path: Path) -> None:
    usual, papers = _pipeline(tmp_path), _pipeline(tmp_path, "leakage.method=bem")
    assert papers.fingerprints["collect"] == usual.fingerprints["collect"]
    assert papers.fingerprints["filter"] != usual.fingerprints["filter"]


def test_a_number_of_questions_leads_to_another_fingerprint(tmp_path: Path) -> None:
    few = _pipeline(tmp_path, "collect.questions=3")
    assert few.fingerprints["collect"] != _pipeline(tmp_path).fingerprints["collect"]


def test_what_the_card_says_leads_to_no_other_fingerprint(tmp_path: Path) -> None:
    said = ['card.name="Rivers"', "card.licence=cc0-1.0", "card.repository=org/rivers", 'card.authors=["Ada"]']
    assert _pipeline(tmp_path, *said).fingerprints == _pipeline(tmp_path).fingerprints
