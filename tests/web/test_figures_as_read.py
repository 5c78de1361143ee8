"""How figures are written: the viewer's own functions, called in the browser."""

import pytest

import models


@pytest.fixture(scope="module")
def site(folder, share_server):
    (folder / "small.zt").write_bytes(models.small())
    (folder / "quantized.gguf").write_bytes(models.quantized()[0])
    return share_server(folder)


@pytest.fixture
def call(site, browser):
    """call("format.js", "bytes", 1024): what a function of a module returns."""
    browser.open(f"{site.url}/ui/")

    def call(module, function, *arguments):
        return browser.run_async(
            "const module = await import(document.querySelector('script[type=module]').src.replace('app.js', arguments[0]));"
            "return module[arguments[1]](...arguments[2]);",
            module,
            function,
            list(arguments),
        )

    return call


def test_sizes(call):
    sizes = {0: "0 B", 1023: "1,023 B", 1024: "1.00 KiB", 10 << 10: "10.0 KiB", 1023 << 10: "1023 KiB", 3 << 29: "1.50 GiB",
             1 << 60: "1.00 EiB", 1 << 71: "2048 EiB"}  # fmt: skip
    assert {size: call("format.js", "bytes", size) for size in sizes} == sizes
    assert call("format.js", "bytes", None) == "0 B"
    assert call("format.js", "bytes", "nonsense") == "?"


def test_a_part_is_not_the_whole_before_the_end(call):
    parts = {(0, 10): "0 %", (1, 3): "33 %", (995, 1000): "99 %", (999_999, 1_000_000): "99 %", (7, 7): "100 %", (0, 0): "100 %"}
    assert {part: call("format.js", "percent", *part) for part in parts} == parts


def test_times_that_are_left(call):
    times = {0: "0 s", 0.2: "1 s", 59: "59 s", 59.5: "1 min 0 s", 125: "2 min 5 s", 3600: "1 h 0 min", 7500: "2 h 5 min"}
    assert {time: call("format.js", "duration", time) for time in times} == times


def test_dates(call):
    assert call("format.js", "date", None) == call("format.js", "date", "nonsense") == ""
    # In whatever time zone the browser is.
    assert call("format.js", "date", "2026-11-20T09:30:00Z")[-3:] in (":30", ":00", ":15", ":45")


def test_counts(call):
    assert call("format.js", "plural", 1, "tensor") == "1 tensor"
    assert call("format.js", "plural", 0, "tensor") == "0 tensors"
    assert call("format.js", "plural", 12345, "tensor") == "12,345 tensors"
    assert call("format.js", "plural", 2, "part of it", "parts of it") == "2 parts of it"
    assert call("format.js", "shape", []) == "scalar"
    assert call("format.js", "shape", [2, 3]) == "2 × 3"


def test_moments_are_short_and_integers_whole(call):
    figures = {(1.23456789, 3): "1.23", (2.5, 6): "2.5", (1e300, 6): "1e+300", (123456789, 3): "123456789", (-0.0, 6): "-0",
               (1.0000001, 3): "1", (2901295543210987, 6): "2901295543210987", (-(2**53) + 1, 6): "-9007199254740991",
               (1.25e15 + 0.5, 3): "1.25e+15", (2.0**60, 6): "1.15292e+18"}  # fmt: skip
    assert {figure: call("decode.js", "rough", *figure) for figure in figures} == figures
    assert call("decode.js", "rough", None) == "none"


def test_the_ends_of_a_scale(call):
    assert call("colours.js", "limits", "viridis", -1, 3) == [-1, 3]
    assert call("colours.js", "limits", "diverging", -1, 3) == [-3, 3]
    assert call("colours.js", "limits", "diverging", -4, 3) == [-4, 4]


def test_words_for_a_shell(call):
    words = {"plain-1.0": "plain-1.0", "two words": "'two words'", "it's": "'it'\\''s'", "a\nb'\\": "$'a\\012b\\'\\\\'", "": "''",
             "é": "'é'", "\u202e": "$'\\342\\200\\256'"}  # fmt: skip
    assert {word: call("snippets.js", "shellQuote", word) for word in words} == words
    assert call("snippets.js", "globQuote", "a*[b]?") == "a[*][[]b][?]"
    assert call("snippets.js", "pythonQuote", 'a"\\\u202eé') == '"a\\"\\\\\\u202e\\u00e9"'


def test_files_are_named_after_what_they_are(site, browser):
    browser.open(f"{site.url}/ui/models/quantized")
    names = browser.get("[...document.querySelectorAll('a[download]')].map((e) => e.download)")
    assert names == ["quantized.gguf", "quantized.zt", "quantized.zt", "quantized.safetensors", "quantized.npz"]


@pytest.mark.parametrize("value, text", [
    (0, "0"), (999, "999"), (9_999, "9,999"), (10_000, "10.0 K"), (999_600, "999 K"), (1_000_000, "1.00 M"), (124_439_808, "124 M"),
    (8_030_261_248, "8.03 B"), (1_026_000_000_000, "1.03 T"),
])  # fmt: skip
def test_parameters_have_the_units_that_people_use(call, value, text):
    assert call("format.js", "compact", value) == text
