"""The report's page: complete in itself, everything from data escaped, the same bytes twice."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quit.render import plots
from quit.render.html import spans
from quit.report.data import gather
from quit.report.page import render
from tests.report import tiny
from tests.running import QUIT, call_quit, run_process


class Parsed(HTMLParser):
    """Tags, attributes, ids and text of a page; style sheets apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = self.style = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data) -> None:
        if self.cdata_elem == "style":
            self.style += data
        else:
            self.text += data

    @property
    def ids(self) -> list[str]:
        return [value for name, value in self.attributes if name == "id"]


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> str:
    return render(gather(tiny.workspace(tmp_path_factory.mktemp("page") / "W"), tiny.settings()))


def test_nothing_is_asked_of_any_network(html) -> None:
    page = Parsed(html)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    links = ("src", "href", "xlink:href", "action", "srcset", "data")
    places = [value for name, value in page.attributes if name in links]
    assert places and all(place.startswith("#") for place in places)
    styles = page.style + "".join(value for name, value in page.attributes if name == "style")
    assert "@import" not in styles and not re.search(r"url\((?!#)", styles)
    policy = [value for name, value in page.attributes if name == "content"]
    assert any(value.startswith("default-src 'none'") for value in policy)


def test_text_from_data_is_text(html) -> None:
    page = Parsed(html)
    assert "b" not in page.tags and not [name for name, _ in page.attributes if name.startswith("on")]
    assert html.count("<script") == 0 and "evil.example" not in "".join(value for _, value in page.attributes)
    # The type is drawn as it is written: no mathematics, no other colour. It stands in two plots and in the table
    # behind each.
    assert page.text.count(tiny.TYPE) >= 4


def test_hints_and_what_models_wrote_are_text(tmp_path) -> None:
    rows = tiny.rows()
    for row in rows["splits"]:
        row["parametric"] = False  # so that q1, with markup in a hint, is an example
    for row in rows["answers/two"]:
        row["answer"] = row["raw"] = tiny.MARKUP
    rows["leak_findings"][0] |= {"span": tiny.MARKUP, "answer": "<b>Rome</b>"}
    rows["questions"][-1]["question"] = "<i>Which city?</i>"
    page = Parsed(render(gather(tiny.workspace(tmp_path / "W", rows), tiny.settings())))
    assert page.text.count(tiny.MARKUP) >= 3 and "<b>Rome</b>" in page.text and "<i>Which city?</i>" in page.text
    assert not {"script", "img", "b", "i"} & set(page.tags)


def test_records_of_one_question_are_counted(tmp_path) -> None:
    rows = tiny.rows()
    rows["origins"].append({**rows["origins"][0], "position": 9, "record_id": "9"})
    page = Parsed(render(gather(tiny.workspace(tmp_path / "W", rows), tiny.settings())))
    assert "4 collected (jsonl: 3, wikihint: 1) from 5 records, 3 in train, dev or test" in page.text


def test_every_plot_has_a_name_and_a_table_and_no_two_share_an_id(html) -> None:
    page = Parsed(html)
    assert len(page.ids) == len(set(page.ids))
    labelled = [value for name, value in page.attributes if name == "aria-labelledby"]
    assert len(labelled) == page.tags.count("svg") >= 7 and set(labelled) <= set(page.ids)
    for figure in re.findall(r"<figure>.*?</figure>", html, flags=re.S):
        assert Parsed(figure).tags.count("table") == 1
    used = {value[1:] for name, value in page.attributes if name == "href"}
    used |= set(re.findall(r"url\(#([^)]*)\)", html.replace(tiny.TYPE, "")))
    assert used - {"a"} <= set(page.ids)


def test_the_figures_are_on_the_page(html) -> None:
    text = " ".join(Parsed(html).text.split())
    shown = """
        Questions: 5 in the sources, 4 collected (jsonl: 3, wikihint: 1), 3 in train, dev or test
        1 of 7 hints leak an answer, in 1 question; findings by method: exact 1.
        Krippendorff's alpha 0.53
        prices: 6.50.
        agree on 50.0% of the 2 answers
        66.7%"""
    assert not [words for words in shown.split("\n")[1:] if words.strip() not in text]


def test_long_names_are_cut_in_a_plot_and_plots_of_nothing_are_drawn() -> None:
    assert f">{'n' * 29}…<" in plots.bars("p", ["n" * 40], {"one": [1]})
    assert "<svg" in plots.bars("p", ["a"], {"one": [0]})
    assert "<svg" in plots.histogram("p", [{"low": 0.0, "high": 1.0, "a": 0}], ["a"], "x", "y")


def test_leaking_words_are_cut_out_longest_first() -> None:
    assert spans("New York, York", ["York", "New York"]) == [("New York", True), (", ", False), ("York", True)]
    assert spans("a.b axb", ["a.b"]) == [("a.b", True), (" axb", False)]
    assert spans("as it is", []) == [("as it is", False)]


def test_the_command_writes_the_page_and_names_what_is_wrong(tmp_path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    call_quit("report", "-w", workspace.path)
    assert (workspace.path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    output = call_quit("report", "-w", workspace.path, "--json").json()
    assert dict(output["funnel"])["after collect (too few hints)"] == 4


@pytest.mark.slow
def test_another_process_makes_the_same_bytes(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W", shards=2)
    pages = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        run_process(*QUIT, "report", "-w", workspace.path, "-o", out, PYTHONHASHSEED=seed, TZ=f"UTC+{seed}")
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]
