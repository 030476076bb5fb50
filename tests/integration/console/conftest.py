"""A browser for all tests of a worker, and a page over each file's own broker."""

from types import SimpleNamespace

import pytest

from tests.support.browser import MISSING, chromium


@pytest.fixture(scope="session")
def chrome():
    if MISSING is not None:
        pytest.skip(MISSING)
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(broker, chrome):
    """Goes to views; at its end, no script has failed, and nothing was stopped by the policy."""
    chrome.emulate(prefers_color_scheme="light")
    chrome.resize(1280, 900)
    chrome.go("about:blank")
    chrome.complaints()

    def go(path=""):
        chrome.go(f"{broker.console_url}#/{path}")

    yield SimpleNamespace(go=go, browser=chrome)
    assert chrome.complaints() == []
