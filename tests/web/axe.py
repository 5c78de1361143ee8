"""What keeps people from using a page, as axe-core finds it."""

import importlib.util
from pathlib import Path

import pytest

PACKAGE = "axe_playwright_python"


def script():
    """axe-core's text, from the one package of the tests that holds it; nothing else of that package is used."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None:
        pytest.skip(f"skipped: {PACKAGE} is not installed (tests/requirements-alone.txt)")
    return (Path(found.origin).parent / "axe.min.js").read_text()


def broken(browser):
    """The rules that the page as it is breaks more than a little, with the elements that do."""
    # Through the debugger: the pages' policy refuses scripts that are put into them.
    if not browser.get("typeof window.axe === 'object'"):
        browser.cdp("Runtime.evaluate", expression=script())
    rules = browser.run_async(
        "const found = await axe.run(document, {resultTypes: ['violations']});"
        "return found.violations.filter((rule) => rule.impact !== 'minor')"
        ".map((rule) => [rule.id, rule.nodes.slice(0, 5).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`)]);"
    )
    assert isinstance(rules, list), rules
    return rules
