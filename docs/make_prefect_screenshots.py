"""Write ``docs/images/prefect-*.png``: three builds by a real schedule, and how Prefect's pages show them.

``quit serve`` builds a piece of the starter collection every minute: the first run makes everything, the next finds
nothing new, then the source grows. Seven minutes or so; prints what each run
took. Called by ``make_screenshots.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from make_screenshots import IMAGES, ROOT, shoot

from quit.engine.workspace import Workspace
from tests.annotation.browser import annotator
from tests.servers.prefect import prefect_server

STARTER = ROOT / "quit" / "starter" / "questions.jsonl"
SCHEDULES = """
[serving]
poll_seconds = 2

[[schedules]]
flow = "build"
cron = "* * * * *"
retries = 2

[[schedules]]
flow = "review-sync"
cron = "15 * * * *"
enabled = false

[[schedules]]
flow = "release"
name = "weekly"
cron = "0 6 * * 1"
timezone = "Europe/Vienna"
parameters = { formats = ["huggingface"] }
"""


def ask(url: str, path: str, body: Any = None) -> Any:
    """Ask Prefect's API."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def until(ready: Callable[[], Any], seconds: float = 600) -> Any:
    """Wait for something to become true and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := ready():
            return found
        time.sleep(1)
    raise TimeoutError(f"it did not come in {seconds:g} s")


@contextmanager
def serving(folder: Path, url: str) -> Iterator[None]:
    """Run ``quit serve`` for ``folder/quit-starter``."""
    command = [sys.executable, "-m", "quit", "serve", "-w", "quit-starter", "-p", "nightly.toml", "--api-url", url]
    with (folder / "serve.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def three_runs(folder: Path, url: str) -> dict[str, dict[str, Any]]:
    """Let the schedule make three builds and return their runs: ``all``, ``nothing``, ``more``."""
    lines = STARTER.read_text(encoding="utf-8").splitlines()
    source = folder / "mine.jsonl"
    source.write_text("\n".join(lines[:12]) + "\n", encoding="utf-8")
    (folder / "nightly.toml").write_text(SCHEDULES, encoding="utf-8")
    build = {"profile": "embedded", "overrides": [], "sources": [f"jsonl:{source}"]}
    Workspace.create(folder / "quit-starter").set_build(build)

    def ended(name: str) -> list[dict[str, Any]]:
        found = ask(url, "flow_runs/filter", {"flows": {"name": {"any_": ["build"]}}, "sort": "START_TIME_ASC"})
        return [one for one in found if one["state_type"] == "COMPLETED" and one["state_name"] == name]

    with serving(folder, url):
        [whole] = until(lambda: ended("Completed"))
        nothing = until(lambda: ended("Nothing new"))[0]
        source.write_text("\n".join(lines[:16]) + "\n", encoding="utf-8")
        more = until(lambda: ended("Completed")[1:])[0]
    return {"all": whole, "nothing": nothing, "more": more}


def page(driver, address: str, target: str, height: int, text: str) -> None:
    """Keep a page as a picture once it shows a text."""
    shoot(driver, address, IMAGES / f"{target}.png", 1400, height)
    until(lambda: text in driver.execute_script("return document.body.innerText"), 60)
    time.sleep(4)  # the graph is drawn after the rest
    keep(driver, IMAGES / f"{target}.png")


def keep(driver, target: Path) -> None:
    """Keep what is on the screen."""
    import base64

    made = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    target.write_bytes(base64.b64decode(made["data"]))


def main() -> None:
    """Make the runs and the pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["PREFECT_HOME"] = str(folder / "prefect")
        with prefect_server(folder / "prefect") as url:
            runs = three_runs(folder, url)
            for name, run in runs.items():
                tasks = ask(url, "task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
                print(f"{name}: {run['total_run_time']:.1f} s, {len(tasks)} shards, {run['state_name']}, {run['name']}")
            pages = url.removesuffix("/api")
            build = ask(url, "deployments/name/build/build-quit-starter")["id"]
            with annotator(pages, folder / "browser") as browser:
                driver = browser.driver
                page(driver, f"{pages}/deployments", "prefect-deployments", 760, "label-update")
                page(driver, f"{pages}/runs", "prefect-runs", 1350, "Nothing new")
                page(driver, f"{pages}/runs/flow-run/{runs['more']['id']}", "prefect-run", 1000, "of 1 shard done")
                page(
                    driver, f"{pages}/runs/flow-run/{runs['nothing']['id']}", "prefect-nothing-new", 700, "those of its"
                )
                page(
                    driver,
                    f"{pages}/deployments/deployment/{build}/run",
                    "prefect-form",
                    2200,
                    "Folder of the workspace",
                )
                wanted = {"flow_run_id": {"any_": [runs["more"]["id"]]}, "key": {"any_": ["quit-build-summary"]}}
                [made] = ask(url, "artifacts/filter", {"artifacts": wanted})
                page(driver, f"{pages}/artifacts/artifact/{made['id']}", "prefect-artifact", 1000, "Build of")
