"""Plots depend on their values alone."""

from pathlib import Path

import pytest

from quit.render import plots

matplotlib = pytest.importorskip("matplotlib")


def test_neither_pages_nor_pictures_depend_on_a_users_own_style_or_change_it(tmp_path: Path) -> None:
    def drawn(name: str) -> tuple[bytes, str]:
        with plots.picture(tmp_path / name, 2, 1) as axes:
            axes.plot([0, 1], [1, 0])
        return (tmp_path / name).read_bytes(), plots.bars("one", ["a"], {"all": [1.0]})

    before = drawn("before.png")
    with matplotlib.rc_context({"figure.facecolor": "red", "font.size": 20, "lines.linewidth": 9}):
        assert drawn("after.png") == before
        assert matplotlib.rcParams["font.size"] == 20
