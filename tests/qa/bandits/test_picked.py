"""Runs of policies for reports: which documents they pick, and how far their means differ."""

from pathlib import Path

import pytest

from quit.qa.bandits.picked import PolicyReport, observed_rows, write_reports
from quit.qa.bandits.policies import policies
from quit.qa.bandits.reports import Report
from quit.qa.settings import QaSettings
from tests.qa.bandits.requests import request_of


def test_each_run_picks_its_own_documents_and_always_the_same() -> None:
    settings = QaSettings()
    [policy] = policies(settings.bandits, ["random"])
    request = request_of([[0] * 10] * 4)
    runs = [observed_rows(request, policy, 0.25, settings, repeat) for repeat in range(4)]
    assert all(len(set(rows)) == 10 for rows in runs) and len({tuple(rows) for rows in runs}) == 4
    assert runs == [observed_rows(request, policy, 0.25, settings, repeat) for repeat in range(4)]
    assert observed_rows(request, None, 0.25, settings, 3) == list(range(40))


def test_the_deviation_over_runs_is_that_of_their_means(tmp_path: Path) -> None:
    scored = [
        PolicyReport("random", repeat, Report("q", "x", (), ("d",), support, 1.0, 1.0, 1, 0, 0, 1))
        for repeat, support in ((0, 0.5), (0, 0.7), (1, 1.0), (1, 0.8))
    ]
    full = Report("q", "x", (), ("d", "e"), 0.5, 1.0, 1.0, 1, 0, 0, 1)
    random, everything = write_reports([*scored, PolicyReport("full", 0, full)], tmp_path, {})
    assert (random["repeats"], random["reports"], everything["repeats"]) == (2, 4, 1)
    assert random["citation_support"] == pytest.approx(0.75)
    assert random["citation_support_run_sd"] == pytest.approx(0.3 / 2**0.5)  # of the means 0.6 and 0.9
    assert random["citation_support_sd"] == pytest.approx(0.0325**0.5)  # of the four
    assert random["nugget_coverage_run_sd"] == everything["citation_support_run_sd"] == 0.0
