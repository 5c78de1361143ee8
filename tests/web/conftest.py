"""One browser and one server for each file of tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "http"))

import browser as browsers  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "complains(reason): the browser's console has errors, as it should")


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory):
    missing = browsers.missing()
    if missing:
        pytest.skip(f"skipped: no browser: {missing} is not installed")
    browser = browsers.Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def browser(shared_browser, request):
    """The browser, as wide as a desk's, light, and with nothing on record. A test that leaves complaints in the console (a
    violation of the policy among them), or asks anything of another server, fails."""
    shared_browser.resize(1280)
    shared_browser.prefer("light")
    shared_browser.log()
    shared_browser.network()
    yield shared_browser
    complaints = shared_browser.log()
    asked = shared_browser.network()
    shared_browser.open("about:blank", ready=None)
    origins = {"/".join(address.split("/")[:3]) for address in asked if address.startswith("http")}
    assert len(origins) <= 1, f"asked of several servers: {origins}"
    if request.node.get_closest_marker("complains") is None:
        assert complaints == []
    assert not [line for line in complaints if "Content Security Policy" in line]
