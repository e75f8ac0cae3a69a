"""Write ``docs/images/report.png``, ``browse.png`` and ``question.png``: the report, a question of a workspace and
its passages, as a browser shows them.

``python docs/make_screenshots.py WORKSPACE [QUESTION]`` makes these; ``python docs/make_screenshots.py prefect`` makes
``prefect-*.png`` (Prefect's pages after three scheduled builds, see ``make_prefect_screenshots.py``). Both need
Chromium with chromedriver and Selenium (extra ``test``). The pictures of Label Studio are made by
``tests/annotation/test_page.py`` with the variable ``QUIT_PICTURES`` set.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.annotation.browser import CHROMIUM, DRIVER, annotator  # noqa: E402

IMAGES = ROOT / "docs" / "images"


@contextmanager
def browsing(workspace: Path) -> Iterator[str]:
    """Start ``quit browse`` and give its address."""
    command = [sys.executable, "-u", "-m", "quit", "browse", "-w", str(workspace), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout
        yield process.stdout.readline().split()[0].rstrip("/")
    finally:
        process.terminate()
        process.wait(30)


def shoot(driver, address: str, target: Path, width: int, height: int, scheme: str = "light", at: str = "body") -> None:
    """Keep a page from the element ``at`` (a selector) on as a picture, in CSS pixels."""
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.get(address)
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", at)
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(base64.b64decode(picture["data"]))


def main(workspace: Path, question: str | None) -> None:
    """Make both pictures; ``question``: the one to show, else the first of the search for most label 2."""
    with (
        tempfile.TemporaryDirectory() as folder,
        browsing(workspace) as address,
        annotator(address, Path(folder)) as page,
    ):
        shoot(page.driver, f"{address}/report", IMAGES / "report.png", 1200, 1500)
        if question is None:
            page.driver.get(f"{address}/?order=most")
            question = page._css("th.asked code").text
        shoot(page.driver, f"{address}/question/{question}", IMAGES / "browse.png", 1200, 1200)
        shoot(
            page.driver, f"{address}/question/{question}", IMAGES / "question.png", 1000, 600, at="h2:has(+ p + .tree)"
        )


if __name__ == "__main__":
    if not (CHROMIUM and DRIVER):
        sys.exit("Chromium and chromedriver are needed.")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "prefect":
        from make_prefect_screenshots import main as prefect_pages

        prefect_pages()
        sys.exit()
    main(Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else None)
