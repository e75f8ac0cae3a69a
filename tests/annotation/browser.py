"""An annotator's browser: headless Chromium through its own driver, with what a person does and sees on the page."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.processes import until

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --window-size=1440,900"
).split()

_BOXES = """
return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect()).filter(r => r.width * r.height)
  .map(r => [r.left, r.top, r.right, r.bottom])"""
_COLOURS = """
const rgb = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const ground = e => { const own = rgb(getComputedStyle(e).backgroundColor);
  return own[3] === 1 || !e.parentElement ? own : over(own, ground(e.parentElement)); };
const all = [...document.querySelectorAll(arguments[0])].flatMap(root => [root, ...root.querySelectorAll('*')])
  .filter(e => e.getBoundingClientRect().height);
const written = all.flatMap(e => [...e.childNodes].filter(n => n.nodeType === 3 && n.data.trim())
  .map(n => [n.data.trim(), e, getComputedStyle(e).color]));
const hinted = all.filter(e => e.placeholder).map(e => [e.placeholder, e, getComputedStyle(e, '::placeholder').color]);
return [...written, ...hinted].map(([text, e, colour]) => { const below = ground(e);
  return [text, over(rgb(colour), below).slice(0, 3), below.slice(0, 3)]; });"""


class Annotator:
    """One person at the page."""

    def __init__(self, driver, url: str) -> None:
        self.driver = driver
        self.url = url

    def log_in(self, email: str, password: str) -> None:
        self.driver.get(f"{self.url}/user/login")
        self._css('input[name="email"]').send_keys(email)
        self._css('input[name="password"]').send_keys(password)
        self._css('button[type="submit"]').click()
        self.until(lambda: "/user/login" not in self.driver.current_url)

    def open(self, project: int) -> None:
        """Open the stream of tasks (what "Label All Tasks" does), with the instructions before it."""
        self.driver.get(f"{self.url}/projects/{project}/data?labeling=1")
        self.until(self.candidates)
        self.until(self._instructions)

    def _instructions(self):
        from selenium.webdriver.common.by import By

        elements = self.driver.find_elements(By.CSS_SELECTOR, ".lsf-modal-ls__content")
        return [element for element in elements if element.is_displayed()]

    def dismiss_instructions(self) -> None:
        from selenium.webdriver.common.keys import Keys

        self.press(Keys.ESCAPE)
        self.until(lambda: not self._instructions())

    def candidates(self) -> dict[str, bool]:
        """Return value -> ticked of every answer on the page."""
        return self.driver.execute_script(
            "return Object.fromEntries([...document.querySelectorAll('.cands input[type=checkbox]')].map(e => "
            "[e.name, e.checked]))"
        )

    def keys(self) -> dict[str, str]:
        """Return key -> value of every answer whose label shows one."""
        return self.driver.execute_script(
            "return Object.fromEntries([...document.querySelectorAll('.cands .lsf-choice')].flatMap(e => {"
            "const shown = e.innerText.match(/\\[(.)\\]/); return shown ? [[shown[1], e.querySelector('input').name]] "
            ": []}))"
        )

    def resize(self, width: int, height: int) -> None:
        """Give the page a screen of this size (a window has a least width)."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._settle()

    def _settle(self) -> None:
        """Wait until nothing changes its size or colour any more."""
        moving = "return document.getAnimations().some(animation => animation instanceof CSSTransition)"
        self.until(lambda: not self.driver.execute_script(moving))

    def switch_colours(self) -> None:
        """Press the switch between light and dark."""
        self._css("[class*=themeToggle]").click()
        self._settle()

    def boxes(self, selector: str) -> list[tuple[float, float, float, float]]:
        """Return (left, top, right, bottom) of every visible element, in the order of the document."""
        return [tuple(box) for box in self.driver.execute_script(_BOXES, selector)]

    def colours(self, selector: str) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
        """Return (text, colour, background) of every visible piece of text inside, placeholders too; RGB of 0 to
        255."""
        return self.driver.execute_script(_COLOURS, selector)

    def text(self, selector: str) -> str:
        return self._css(selector).text

    def type(self, placeholder: str, text: str, enter: bool = True) -> None:
        from selenium.webdriver.common.keys import Keys

        field = self._css(f'[placeholder="{placeholder}"]')
        field.click()
        field.send_keys(text)
        if enter:
            field.send_keys(Keys.ENTER)

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        chain = ActionChains(self.driver)
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

    def shot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))

    def _css(self, selector: str):
        from selenium.webdriver.common.by import By

        return self.until(
            lambda: next((e for e in self.driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()), None)
        )

    def until(self, look: Callable[[], Any]) -> Any:
        """Wait for what ``look`` returns; the page is being built: elements come and go."""
        from selenium.common.exceptions import WebDriverException

        def safely() -> Any:
            with suppress(WebDriverException):
                return look()

        return until(safely, every=0.1)


@contextmanager
def annotator(url: str, profile: Path) -> Iterator[Annotator]:
    """A browser with a fresh profile."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_page_load_timeout(120)
        yield Annotator(driver, url)
    finally:
        driver.quit()
