"""An annotator's browser: headless Chromium through its own driver, with what a person does on the page."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --window-size=1440,900"
).split()


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
        time.sleep(1.0)  # the instructions open a moment later

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

    def until(self, look, seconds: float = 300.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if value := look():
                    return value
            except Exception as error:  # the page is being built: elements come and go
                last = error
                del last
            time.sleep(0.2)
        raise AssertionError(f"nothing came on {self.driver.current_url} in {seconds:g} s")


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
