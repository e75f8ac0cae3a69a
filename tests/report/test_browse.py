"""The browser view: what its pages hold, that it only reads, and that it works in a real browser; passages as a tree by
prefix."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.report.browse import HOST, application, serve
from quit.report.data import gather
from quit.report.page import render
from tests.annotation.browser import CHROMIUM, DRIVER, annotator
from tests.paths import ROOT
from tests.report import tiny
from tests.report.test_page import Parsed
from tests.running import call_quit
from tests.servers.ports import taken_port


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    rows = json.loads(json.dumps(tiny.rows(), default=str).replace("It is Rome.", "It is Rome, ΟΔΌΣ İzmir."))
    return tiny.workspace(tmp_path_factory.mktemp("browse") / "W", rows, shards=2)


@pytest.fixture(scope="module")
def client(workspace) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("quit.report.browse._RESULTS", 3)
        yield TestClient(application(workspace, tiny.settings()), base_url=f"http://{HOST}")


def test_a_search_leads_to_its_questions_and_has_an_address_without_what_it_does_not_narrow(client) -> None:
    page = Parsed(client.get("/", params={"q": "river"}).text)
    assert ("href", "/question/q1?q=river") in page.attributes and "/question/q2" not in str(page.attributes)
    assert "1 question" in page.text
    form = {"q": "", "state": "dev", "type": "", "order": "id", "check": ["disagreement", "cut"], "page": "1"}
    response = client.get("/", params=form)
    assert (response.url.path, response.url.query) == ("/", b"state=dev&check=disagreement&check=cut")
    page = Parsed(response.text)
    assert page.attributes.count(("checked", "")) == 2 and ("href", "/") in page.attributes
    # The next page keeps what narrows the search.
    first = client.get("/?order=hardest").text
    assert 'rel="next" href="/?order=hardest&amp;page=2"' in first and '<li hidden><a rel="prev"' in first
    last = client.get("/?page=2").text
    assert "/question/q4" in last and '<li><a rel="prev"' in last
    for number in ("9" * 5000, "9" * 20):  # a number of any length is a page
        assert "/question/q4" in client.get(f"/?page={number}").text


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("/?words=nepal", "no parameter 'words'. Known: q, state, type, difficulty, needs, order, check, page."),
        ("/question/q1?words=nepal", "There is no parameter 'words'."),
        ("/?check=foo", "There is no check 'foo'. Known: leak, no-label-2, disagreement, cut, changed."),
        ("/?state=<b>", "There is no state '<b>'. Known: collect: too_few_hints, dev, filter: answer_leak, test, "),
        ("/?page=2x", "'2x' is not the number of a page."),
    ],
)
def test_an_address_with_an_unknown_name_or_value_is_refused(client, address, message) -> None:
    response = client.get(address)
    page = Parsed(response.text)
    assert response.status_code == 400 and message in page.text and "b" not in page.tags
    assert "No such search" in page.text and page.text.rstrip().endswith("Back to the search")


def test_questions_of_a_search_follow_one_another(client) -> None:
    results = Parsed(client.get("/?order=fewest").text)
    assert ("href", "/question/q3?order=fewest") in results.attributes
    assert "leaks" in results.text and ("href", "/?order=leaks&page=1") in results.attributes
    assert ("href", "/?order=changed&page=1") not in results.attributes  # 0 for every question
    page = Parsed(client.get("/question/q3?order=fewest").text)
    for name, address in (("prev", "/question/q2"), ("next", "/question/q1")):
        assert {("rel", name), ("href", f"{address}?order=fewest")} <= set(page.attributes)
    left_out = Parsed(client.get("/question/q0").text)
    assert "jsonl: f.jsonl, line 5 (zero)" in left_out.text
    assert "Left out by collect: too few hints" in left_out.text and left_out.attributes.count(("hidden", "")) == 1


def test_a_question_with_a_slash_in_its_id_opens(tmp_path: Path) -> None:
    rows = json.loads(json.dumps(tiny.rows()).replace('"q4"', '"web/q4"'))
    pages = TestClient(application(tiny.workspace(tmp_path / "W", rows), tiny.settings()), base_url=f"http://{HOST}")
    assert ("href", "/question/web/q4?q=rome") in Parsed(pages.get("/?q=rome").text).attributes
    for address in ("/question/web/q4", "/question/web%2Fq4"):
        assert "Left out by filter: answer leak" in Parsed(pages.get(address).text).text


def test_a_question_shows_its_life_and_all_is_shown_as_text(client) -> None:
    page = Parsed(client.get("/question/q2").text)
    shown = ("Who painted Guernica?", "He came from Malaga.", "ada@x.org", "Picasso", "✗ wrong", "NO ANSWER")
    assert all(words in page.text for words in (*shown, "f, record 2 (1)"))
    assert page.tags.count("details") == 2  # 0 and 1, each with a leaf below
    assert "2 of 4 passages fully relevant" in page.text
    left = Parsed(client.get("/question/q4").text)
    assert "Left out by filter: answer leak" in left.text and "mark" in left.tags
    page = Parsed(client.get("/question/q1").text)
    assert tiny.MARKUP in page.text and "img" not in page.tags and page.tags.count("script") == 1  # our own
    assert "No passage has label 2" not in page.text
    page = Parsed(client.get("/", params={"q": '"><script>x</script>', "state": "dev"}).text)
    assert ("value", '"><script>x</script>') in page.attributes
    assert "b" not in page.tags and page.tags.count("script") == 1
    assert ("href", "/question/q2") in Parsed(client.get("/report").text).attributes


def test_it_only_reads_and_only_for_this_machine(client, workspace) -> None:
    for path in ("/", "/question/q1", "/report", "/style.css", "/browse.js", "/nowhere", "/question/q9"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert client.post(path).status_code in (404, 405)
    assert client.get("/question/q9").status_code == client.get("/question/../q1").status_code == 404
    assert "There is no question &#39;&lt;b&gt;&#39;" in client.get("/question/%3Cb%3E").text
    elsewhere = TestClient(application(workspace, tiny.settings()), base_url="http://evil.example")
    assert elsewhere.get("/").status_code == 400


def test_a_taken_port_is_named(workspace) -> None:
    with taken_port() as port, pytest.raises(SettingsError, match="cannot be used"):
        serve(workspace, tiny.settings(), port, lambda url: None)


@pytest.fixture
def address(workspace: Workspace) -> Iterator[str]:
    """The address of a real server, started as a user does."""
    command = [sys.executable, "-u", "-m", "quit", "browse", "-w", str(workspace.path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    try:
        assert process.stdout
        match = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert match
        yield match.group()
    finally:
        process.terminate()
        process.wait(120)


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with chromedriver on this machine")
def test_in_a_real_browser(address: str, tmp_path: Path) -> None:
    with annotator(address, tmp_path / "profile") as page:
        driver = page.driver
        for width in (1280, 400):
            page.resize(width, 900)
            for path in ("/", "/question/q1", "/report"):
                driver.get(address + path)
                page.until(lambda: driver.execute_script("return document.readyState") == "complete")
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width, (path, width)
                # What is wider than its page scrolls, and its edge says so; nothing else lies beyond the edge.
                assert page.run("beyond") == 0
            opened = "document.querySelectorAll('details').forEach(each => each.open = true); return "
            cut = "[...document.querySelectorAll('div.scroll')].filter(each => each.scrollWidth > each.clientWidth)"
            assert driver.execute_script(f"{opened}{cut}.map(each => each.textContent)") == []  # of the report's tables
        colours = set()
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            colours.add(driver.execute_script("return getComputedStyle(document.querySelector('svg text')).fill"))
        assert len(colours) == 2  # plots follow the page
        driver.get(f"{address}/question/q2?q=guernica")
        closed = driver.execute_script("return [...document.querySelectorAll('.tree details')].map(e => e.open)")
        assert closed == [True, False]
        driver.execute_script("document.querySelectorAll('.tree summary')[1].click()")
        assert driver.execute_script("return document.querySelectorAll('.tree details')[1].open")
        assert driver.execute_script("return document.styleSheets.length") == 1
        driver.get(address)
        fields = {"option[value=dev]": "state=dev", "input[value=disagreement]": "state=dev&check=disagreement"}
        for field, asked in fields.items():
            page.click_on(f"form {field}")  # a filter acts at once
            page.until(lambda asked=asked: driver.current_url == f"{address}/?{asked}")
        assert driver.get_log("browser") == []  # nothing refused, nothing missing


def test_every_screen_that_loses_a_question_to_a_leak_names_the_ways_out(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    (tmp_path / "a.jsonl").write_text(
        '{"id": "a", "question": "Which river?", "answers": ["Nile"], "hints": ["It is the Nile.", "It flows north.", '
        '"It has a delta.", "Boats sail on it.", "Pharaohs drank from it."]}'
    )
    client = TestClient(application(workspace, tiny.settings()), base_url=f"http://{HOST}")
    screens = {
        "check": call_quit("check", tmp_path / "a.jsonl", "--no-models", code=1).out,
        "status": call_quit("status", "-w", workspace, "--left-out").out,
        "report": Parsed(render(gather(workspace, tiny.settings()))).text,
        "browse": Parsed(client.get("/question/q4").text).text,
    }
    for name, text in screens.items():
        hint = "jsonl-a-h00" if name == "check" else "q4-h00"
        for way in ("Rewrite or delete", "--set leakage.mode=hint", f"--hint {hint} --decision no_leak"):
            assert way in " ".join(text.split()), (name, way)
