"""``quit review status`` as it is typed."""

from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from tests.report import tiny


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The workspace by hand, as a build of this program with its own profile left it."""
    opened = tiny.workspace(tmp_path / "W")
    opened.set_build({"profile": "embedded", "overrides": [], "sources": []})
    return opened


def test_agreement_is_what_follows_from_four_answers(call, workspace: Workspace) -> None:
    """Both accept q2's two answers and neither q3's wrong one; of q3's right one they disagree: three alike of four.

    Yes said by ada to 3 of 4, by bob to 2: chance 3/4 * 2/4 + 1/4 * 2/4 = 1/2, so kappa is (3/4 - 1/2) / (1 - 1/2) =
    1/2.
    """
    printed = call("review", "status", "-w", workspace.path, "--json").json()["agreement"]
    assert printed["items"] == 4
    [pair] = printed["pairs"]
    assert (pair["items"], pair["agreement"], pair["kappa"]) == (4, 0.75, pytest.approx(0.5))
    shown = call("review", "status", "-w", workspace.path)
    assert shown.code == 0 and ["4", "75.0%", "0.50"] in [line.split()[-3:] for line in shown.out.splitlines()]
    assert "over the 4 answers" in shown.out
