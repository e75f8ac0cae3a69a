"""An annotator's browser: headless Chromium through its own driver, with what a person does and sees on the page."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.running import until

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --window-size=1440,900"
).split()

SCRIPTS = Path(__file__).with_name("browser.js").read_text(encoding="utf-8")


class Annotator:
    """One person at the page."""

    def __init__(self, driver, url: str) -> None:
        self.driver = driver
        self.url = url

    def log_in(self, email: str, password: str, link: str = "/user/login") -> None:
        """Fill in the form of a page, to log in or to sign up."""
        self.driver.get(f"{self.url}{link}")
        self._css('input[name="email"]', lambda field: field.send_keys(email))
        self._css('input[name="password"]', lambda field: field.send_keys(password))
        self.click_on('button[type="submit"]')
        self.until(lambda: "/user/" not in self.driver.current_url)

    def open(self, project: int) -> None:
        """Open the stream of tasks (what "Label All Tasks" does), with the instructions before it."""
        self.driver.get(f"{self.url}/projects/{project}/data?labeling=1")
        self.arrive()

    def open_instructions(self, project: int) -> None:
        """Open the stream of tasks where none is left."""
        self.driver.get(f"{self.url}/projects/{project}/data?labeling=1")
        self.until(self._instructions)

    def arrive(self) -> None:
        """Wait for the first task, with the instructions before it."""
        self.until(self.candidates)
        self.until(self._instructions)

    def _instructions(self):
        return self._visible(".lsf-modal-ls__content")

    def dismiss_instructions(self) -> None:
        from selenium.webdriver.common.keys import Keys

        self.press(Keys.ESCAPE)
        self.until(lambda: not self._instructions())

    def candidates(self) -> dict[str, bool]:
        """Return value -> ticked of every answer on the page."""
        return self.run("candidates")

    def run(self, function: str, *arguments: object) -> Any:
        """Return what a function of ``SCRIPTS`` returns on the page."""
        return self.driver.execute_script(f"{SCRIPTS}; return {function}(...arguments)", *arguments)

    def resize(self, width: int, height: int) -> None:
        """Give the page a screen of this size (a window has a least width)."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._settle()

    def _settle(self) -> None:
        """Wait until nothing changes its size or colour any more."""
        self.until(lambda: not self.run("moving"))

    def set_system_colours(self, scheme: str) -> None:
        """Have the system prefer ``light`` or ``dark``."""
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
        self._settle()

    def boxes(self, selector: str) -> list[tuple[float, float, float, float]]:
        """Return (left, top, right, bottom) of every visible element, in the order of the document."""
        return [tuple(box) for box in self.run("boxes", selector)]

    def colours(self, selector: str) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
        """Return (text, colour, background) of every visible piece of text inside, placeholders too; RGB of 0 to
        255."""
        return self.run("colours", selector)

    def text(self, selector: str) -> str:
        return self._css(selector, lambda element: element.text)

    def type(self, placeholder: str, text: str) -> None:
        """Write a line into a field, with Enter."""
        self._css(f'[placeholder="{placeholder}"]', lambda field: (field.click(), field.send_keys(f"{text}\n")))

    def click(self, button: str) -> None:
        """Press the button with this text, once it is there and can be pressed."""
        path = f"//button[normalize-space()='{button}' and not(@disabled)]"
        self._first(lambda: self.driver.find_elements("xpath", path), lambda element: element.click())

    def click_on(self, selector: str) -> None:
        """Press the first visible element."""
        self._css(selector, lambda element: element.click())

    def press(self, *keys: str) -> None:
        """Press the last key while those before it are held."""
        self._first(lambda: [self.driver.switch_to.active_element], lambda element: element.send_keys(*keys))

    def _visible(self, selector: str) -> list:
        return [one for one in self.driver.find_elements("css selector", selector) if one.is_displayed()]

    def _css(self, selector: str, act: Callable[[Any], Any]) -> Any:
        return self._first(lambda: self._visible(selector), act)

    def _first(self, look: Callable[[], list], act: Callable[[Any], Any]) -> Any:
        """Return what ``act`` returns of the first element that ``look`` gives: one that the page has replaced
        meanwhile is looked up again."""
        return self.until(lambda: [act(element) for element in look()[:1]])[0]

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
