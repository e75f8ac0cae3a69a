"""The site of ``make docs``: the pages of the checkout as they are, in the order of docs/README.md.

Sphinx warns of a page that is in no group, and the build then fails."""

import re
import shutil
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

INDEX = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
PAGES = [f"docs/{name}" for name in re.findall(r"\]\(([\w/-]+)\.(?:md|ipynb)\)", INDEX)]
CHANGE = ["docs/architecture", "docs/add-a-stage", "CONTRIBUTING", "tests/README", "CHANGELOG"]
CARDS = ["quit/models/weights/*", "quit/stages/leaks/*"]
GROUPS = {
    "Start": ["docs/README", *(page for page in PAGES if page.count("/") == 1 and page not in CHANGE)],
    "How to": [*(page for page in PAGES if "/howto/" in page), "annotation/guidelines"],
    "Research": [*(page for page in PAGES if "/research/" in page), *CARDS],
    "Reference": [page for page in PAGES if "/reference/" in page],
    "Change the code": CHANGE,
}

project = html_title = "QUIT builder"
root_doc = "README"
extensions = ["myst_nb", "sphinx_llms_txt"]
include_patterns = ["*.md", "docs/**", "annotation/*.md", "tests/README.md", *(f"{card}.md" for card in CARDS)]
exclude_patterns = [".*"]
myst_heading_anchors = 6
nb_execution_mode = "off"
smartquotes = False  # they make a dash of an option's two hyphens
html_theme = "furo"
html_show_copyright = False  # the pages name licence and citation
html_sourcelink_suffix = ""  # llms.txt leads to the pages' own Markdown, in which links lead to Markdown too
STYLE = """<style>
  .cell_output { overflow-x: auto; }  /* a notebook's wide tables scroll on a phone */
  .highlight pre { white-space: pre-wrap; overflow-wrap: anywhere; }  /* no code is wider than its column */
</style>"""
llms_txt_uri_template = "_sources/{docname}{suffix}{sourcelink_suffix}"


def _add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        for title, pages in GROUPS.items():
            source[0] += "\n".join(["\n```{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *pages, "```\n"])


def setup(app: Sphinx) -> None:
    site = app.outdir
    app.add_lexer("csv", TextLexer)  # Pygments has none
    app.connect("source-read", _add_navigation)
    app.connect("html-page-context", lambda *of: of[3].update(metatags=of[3].get("metatags", "") + STYLE))
    app.connect("build-finished", lambda _, error: error or shutil.copy(site / "README.html", site / "index.html"))
