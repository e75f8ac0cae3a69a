"""The site that ``make docs`` builds."""

import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from lxml import html

from tests.docs.test_docs import PAGES
from tests.paths import ROOT
from tests.running import run_process

pytest.importorskip("furo", reason="the dependency group docs is not installed")


@pytest.mark.slow
def test_the_site_has_every_page_and_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    run_process(sys.executable, "-m", "sphinx", "-qW", "-d", tmp_path / "doctrees", "-c", "docs", ".", site, cwd=ROOT)
    pages = {page.relative_to(ROOT) for page in [*PAGES, ROOT / "docs/notebook.ipynb"]}
    listed = re.findall(r"^- \[.+\]\((.+)\)$", (site / "llms.txt").read_text(encoding="utf-8"), flags=re.M)
    assert {f"_sources/{page}" for page in pages} <= set(listed)
    assert all((site / "_sources" / page).read_bytes() == (ROOT / page).read_bytes() for page in pages)
    index = (site / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(").removesuffix(")")
    assert {str(page.with_suffix("")) for page in pages} <= set(json.loads(index)["docnames"])
    trees = {path: html.parse(path) for path in site.rglob("*.html")}
    names = {path: set(tree.xpath("//@id | //@name")) for path, tree in trees.items()}
    assert {site / page.with_suffix(".html") for page in pages} <= set(trees)
    for path, tree in trees.items():
        for link in tree.xpath("//a/@href | //img/@src | //script/@src | //link/@href"):
            target, _, anchor = unquote(link).partition("#")
            leads = (path.parent / target.split("?")[0]).resolve() if target else path
            if not re.match(r"https?:|data:|mailto:", link):
                assert leads.is_file() and (not anchor or anchor in names[leads]), f"{path.relative_to(site)}: {link}"
