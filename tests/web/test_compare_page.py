"""The page that compares two models says which tensors differ, and by how much."""

import numpy
import pytest
import requests

import axe
import models
from containers import dense, zt1

RANDOM = numpy.random.default_rng(11)
BASE = RANDOM.normal(size=(30, 20)).astype("<f4")
CHANGED = BASE.copy()
CHANGED[3, 4] += 0.5
CHANGED[5, 6] -= 1.5
STATES = {
    "same": "equal", "weight": "changed", "brain": "changed", "half": "changed", "whole": "changed", "nan": "equal",
    "added": "new", "removed": "gone", "wider": "reshaped", "cast": "retyped",
}  # fmt: skip
WHOLE = numpy.array([1, 2**62, 3], "<i8")
NAN = numpy.array([numpy.nan, 1], "<f4")


def before():
    return zt1({
        "same": models.array(BASE), "weight": models.array(BASE), "removed": models.array(BASE),
        "brain": dense(models.bfloat16(BASE).tobytes(), "bf16", [30, 20]),
        "half": models.array(numpy.array([1, 2, 3, 4], "<f2")), "whole": models.array(WHOLE), "nan": models.array(NAN),
        "wider": models.array(BASE[:10]), "cast": models.array(BASE),
    })  # fmt: skip


def after():
    return zt1({
        "same": models.array(BASE), "weight": models.array(CHANGED), "added": models.array(BASE),
        "brain": dense(models.bfloat16(CHANGED).tobytes(), "bf16", [30, 20]),
        "half": models.array(numpy.array([1, 2, 3.5, 4], "<f2")), "whole": models.array(WHOLE + 1), "nan": models.array(NAN),
        "wider": models.array(BASE), "cast": models.array(BASE.astype("<f8")),
    })  # fmt: skip


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "acme").mkdir()
    (folder / "acme/before.zt").write_bytes(before())
    (folder / "acme/after.zt").write_bytes(after())
    (folder / "again.zt").write_bytes(before())
    (folder / "hostile.zt").write_bytes(models.hostile())
    return share_server(folder)


def compare(site, browser, a, b):
    query = requests.compat.urlencode({"a": a, "b": b})
    browser.open(f"{site.url}/ui/compare?{query}", ready="main:not([aria-busy]) .figures, main:not([aria-busy]) .error, main form + p")


def states(browser):
    return browser.get(
        "Object.fromEntries([...document.querySelectorAll('.table tbody tr[data-index]')].map((row) => "
        "[row.querySelector('th bdi').textContent, row.querySelector('.mark').textContent]))"
    )


def test_each_tensor_has_its_difference(site, browser):
    compare(site, browser, "acme/before", "acme/after")
    assert states(browser) == STATES
    found = browser.get("[...document.querySelectorAll('[data-state]')].map((one) => [one.dataset.state, one.querySelector('dd').textContent])")
    assert {state: text.split(" ")[0] for state, text in found} == {
        "changed": "4", "new": "1", "gone": "1", "reshaped": "1", "retyped": "1", "equal": "2",
    }  # fmt: skip
    assert axe.broken(browser) == []


def test_equal_models_are_said_to_be_equal(site, browser):
    compare(site, browser, "acme/before", "again")
    assert "All 9 tensors are equal." in browser.get("document.getElementById('main').textContent")


@pytest.mark.parametrize(
    ("tensor", "before", "after"),
    [
        ("weight", BASE, CHANGED),
        ("brain", *((models.bfloat16(one).astype("<u4") << 16).view("<f4") for one in (BASE, CHANGED))),
        ("half", numpy.array([1, 2, 3, 4], "<f4"), numpy.array([1, 2, 3.5, 4], "<f4")),
        ("whole", numpy.zeros(3), numpy.ones(3)),
    ],
)
def test_values_of_a_changed_tensor_are_compared(site, browser, tensor, before, after):
    compare(site, browser, "acme/before", "acme/after")
    browser.run(f"document.querySelector('button[aria-label=\"Compare the values of {tensor}\"]').click()")
    browser.wait("document.querySelector('[data-key=changed]') !== null")
    said = browser.get("Object.fromEntries([...document.querySelectorAll('[data-key]')].filter((one) => one.tagName === 'TD').map((one) => [one.dataset.key, one.textContent]))")
    distance = numpy.abs(before.astype("<f8") - after.astype("<f8"))
    changed = int(numpy.count_nonzero(distance))
    assert said["changed"].startswith(f"{changed} of {before.size} (")
    assert float(said["most"]) == pytest.approx(distance.max(), rel=1e-5)
    assert float(said["mean"]) == pytest.approx(distance.mean(), rel=1e-5)
    assert axe.broken(browser) == []


def test_the_form_leads_to_another_comparison_and_back(site, browser):
    browser.open(f"{site.url}/ui/compare")
    browser.run("a.value = 'acme/before'; b.value = 'again'; document.querySelector('form.compare button').click()")
    browser.wait("document.getElementById('main').textContent.includes('All 9 tensors are equal.')")
    assert browser.get("location.search") == "?a=acme%2Fbefore&b=again"
    browser.run("history.back()")
    browser.wait("document.querySelector('form.compare') !== null && a.value === ''")


@pytest.mark.complains("a model that does not exist")
def test_a_missing_model_is_named(site, browser):
    compare(site, browser, "acme/before", "nothing")
    browser.wait("document.querySelector('.error') !== null")
    assert "there is no model named nothing" in browser.get("document.querySelector('.error').textContent")


def test_hostile_names_are_text(site, browser):
    compare(site, browser, "hostile", "acme/before")
    assert len(states(browser)) == len(models.HOSTILE) + 1 + 9
    assert browser.get("document.title") == "Compare – ztserve"
