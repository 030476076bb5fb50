"""A real Chromium, driven over WebDriver: a page in it, its elements by CSS selectors, and pictures of it.

Debian's packages chromium and chromium-driver are all that it needs. Tests skip where they are missing.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.support.ports import HeldPort

_SECONDS = 60.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ENTER = "\ue007"

MISSING = (
    None
    if shutil.which("chromedriver") and shutil.which("chromium")
    else ("there is no Chromium here: apt-get install chromium chromium-driver")
)


class Browser:
    def __init__(self, port: int) -> None:
        self._port = port
        self._session = ""

    def open(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        arguments = [
            *(
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
            ),
            *("--disable-background-networking", "--disable-component-update", f"--window-size={width},{height}"),
            *(("--force-dark-mode",) if dark else ()),
        ]
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self._session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def close(self) -> None:
        if self._session:
            self._ask("DELETE", f"/session/{self._session}")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_SECONDS)
        try:
            data = None if body is None and method != "POST" else json.dumps(body or {})
            connection.request(method, path, data, {"Content-Type": "application/json"})
            told = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(told, dict) and "error" in told:
            raise RuntimeError(f"{told['error']}: {told['message']}")
        return told

    def _here(self, method: str, path: str, body: Any = None) -> Any:
        return self._ask(method, f"/session/{self._session}{path}", body)

    # --- the page ---

    def go(self, url: str) -> None:
        self._here("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._here("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Of a script that calls its last argument with the result."""
        return self._here("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def resize(self, width: int, height: int) -> None:
        self._here("POST", "/window/rect", {"width": width, "height": height})

    def emulate(self, **features: str) -> None:
        """Prefer something, as in `prefers_color_scheme="dark"`."""
        told = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        body = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": told}}
        self._here("POST", "/goog/cdp/execute", body)

    def picture(self, path: Path | str) -> None:
        Path(path).write_bytes(base64.b64decode(self._here("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """What the console of the page says: errors of scripts, and what the Content-Security-Policy has stopped."""
        found = self._here("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] == "SEVERE"]

    @property
    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def until(self, *texts: str) -> None:
        """Wait until the page shows all these texts."""
        self._until(lambda: all(text in self.text for text in texts), lambda: f"{texts} not in:\n{self.text}")

    def until_gone(self, text: str) -> None:
        self._until(lambda: text not in self.text, lambda: f"{text!r} still in:\n{self.text}")

    def _until(self, condition: Any, complaint: Any) -> None:
        end = time.monotonic() + _SECONDS
        while not condition():
            assert time.monotonic() < end, complaint()
            time.sleep(0.05)

    # --- its elements ---

    def _find(self, selector: str, text: str | None = None) -> str:
        end = time.monotonic() + _SECONDS
        while True:
            found = self.run(
                "return [...document.querySelectorAll(arguments[0])].find("
                "(each) => arguments[1] === null || each.textContent.includes(arguments[1]))",
                selector,
                text,
            )
            if found is not None:
                return str(found[_ELEMENT])
            assert time.monotonic() < end, f"no {selector} with {text!r} in:\n{self.text}"
            time.sleep(0.05)

    def click(self, selector: str, text: str | None = None) -> None:
        """Click where an element is now; one that is drawn anew meanwhile is looked for again."""
        for _ in range(20):
            try:
                self._here("POST", f"/element/{self._find(selector, text)}/click")
                return
            except RuntimeError as error:
                if "stale" not in str(error):
                    raise
        raise AssertionError(f"{selector} does not stay")

    def type(self, selector: str, text: str, *, enter: bool = False) -> None:
        element = self._find(selector)
        self._here("POST", f"/element/{element}/clear")
        self._here("POST", f"/element/{element}/value", {"text": text + (_ENTER if enter else "")})

    def keys(self, text: str) -> None:
        """Press keys where the focus is."""
        actions = [
            action for key in text for action in ({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})
        ]
        self._here("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def choose(self, selector: str, value: str) -> None:
        self._find(selector)
        self.run(
            "const found = document.querySelector(arguments[0]); found.value = arguments[1];"
            "found.dispatchEvent(new Event('change'))",
            selector,
            value,
        )


@contextmanager
def chromium() -> Iterator[Browser]:
    held = HeldPort()
    with tempfile.TemporaryFile() as log:
        driver = subprocess.Popen(["chromedriver", f"--port={held.number}"], stdout=log, stderr=log)
        browser = Browser(held.number)
        try:
            end = time.monotonic() + _SECONDS
            while True:
                try:
                    if browser._ask("GET", "/status")["ready"]:
                        break
                except OSError:
                    assert time.monotonic() < end, "chromedriver does not answer"
                    time.sleep(0.05)
            browser.open()
            yield browser
        finally:
            try:
                browser.close()
            finally:
                driver.terminate()
                driver.wait()
