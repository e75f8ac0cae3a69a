"""Plots depend on their values alone."""

import re
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


def test_a_plot_has_the_pages_colours_alone() -> None:
    """Every colour is a variable of the style sheet, for light and for dark pages; text that looks like one stays."""
    groups = ["train", "dev", "test", "easy", "medium", "hard", "all"]
    looks = "#010102"
    drawn = "".join(
        [
            plots.bars("a", [looks, "b"], {"one": [1, 2], "another": [2, 1]}, "count"),
            plots.histogram("b", [{"low": 0, "high": 1, **dict.fromkeys(groups, 2)}], groups, "across", "up"),
            plots.lines("c", {str(number): {1: 0.5, 2: 1} for number in range(9)}, "across", "up"),
        ]
    )
    assert looks in re.sub(r"<[^>]*>", "", drawn)
    tags = " ".join(re.findall(r"<[^>]*>", drawn))
    paints = {*re.findall(r'(?:fill|stroke): ([^;"]+)', tags)} - {"none"}
    assert paints == {f"var(--{name})" for name in plots.VARIABLES}
    style = (Path(plots.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    light, dark = style.split("prefers-color-scheme: dark", 1)
    for part in (light, dark):
        assert {*plots.VARIABLES} <= {*re.findall(r"--(\w+): #", part)}
