"""The pages in docs/ are true: links and paths exist, the configuration table and the map of the rooms are complete."""

import json
import re

import pytest

from server_process import TOP

PAGES = [TOP / "README.md", TOP / "CHANGELOG.md", *sorted((TOP / "docs").rglob("*.md"))]


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:core|config|server|tests|docs|deploy)/[\w/.]+)`", page.read_text())
    assert [path for path in named if not (TOP / path).exists()] == []


def keys_of(configuration, prefix=""):
    for key, value in configuration.items():
        if isinstance(value, dict):
            yield from keys_of(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def meanings_of(properties, prefix=""):
    for key, described in properties.items():
        if "properties" in described:
            yield from meanings_of(described["properties"], f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", described["description"]


def test_the_configuration_table_has_every_key_with_default_and_meaning():
    defaults = dict(keys_of(json.loads((TOP / "config" / "ztserve.json").read_text())))
    meanings = dict(meanings_of(json.loads((TOP / "config" / "ztserve.schema.json").read_text())["properties"]))
    page = (TOP / "docs" / "configuration.md").read_text()
    table = re.findall(r"^\| `([a-z0-9_.]+)` \| (\S+) \| (.*) \|$", page, re.MULTILINE)
    shown = {key: "—" if value is None else f"`{json.dumps(value).strip(chr(34))}`" for key, value in defaults.items()}
    assert table == [(key, shown[key], meanings[key]) for key in defaults]


def test_the_table_of_upstreams_has_every_key_with_default_and_meaning():
    keys = json.loads((TOP / "config" / "ztserve.schema.json").read_text())["properties"]["upstreams"]["items"]["properties"]
    page = (TOP / "docs" / "configuration.md").read_text()
    table = re.findall(r"^\| `upstreams\[\]\.(\w+)` \| (\S+) \| (.*?)(?: \*Reloads\.\*)? \|$", page, re.MULTILINE)
    shown = {key: "—" if member.get("default") is None else f"`{json.dumps(member['default']).strip(chr(34))}`" for key, member in keys.items()}
    assert table == [(key, shown[key], member["description"]) for key, member in keys.items()]


def test_the_keys_that_wait_for_a_restart_are_named():
    """Those of the table in config/schema.c that lack the mark."""
    entries = (TOP / "config" / "schema.c").read_text().split("{.name = ")[1:]
    waiting = [entry.split('"')[1] for entry in entries if ".reloads = true" not in entry]
    page = (TOP / "docs" / "configuration.md").read_text()
    sentence = page.split("except for", 1)[1].split(":", 1)[0]
    assert re.findall(r"`([a-z0-9_.]+)`", sentence) == waiting


def test_the_map_shows_every_room():
    lines = (TOP / "tests" / "lint" / "rooms.txt").read_text().splitlines()
    rooms = [line.lstrip("= ").split()[0] for line in lines if line.strip() and not line.startswith("#")]
    drawing = re.search(r"```\n(.*?)```", (TOP / "docs" / "internals" / "architecture.md").read_text(), re.DOTALL).group(1)
    drawn = re.findall(r"(?:core/src|server|config)\b[\w/]*", drawing)
    assert [room for room in rooms if room not in drawn and room != "server"] == []


def test_the_figures_of_the_comparison_are_measured():
    compared = (TOP / "docs" / "compare.md").read_text()
    measured = (TOP / "docs" / "benchmarks.md").read_text()
    figures = re.findall(r"(?<![\w.,])[\d.,]+ (?:GB/cpu s|GB/s|/cpu s|MiB|GiB|KiB)", compared)
    assert len(figures) > 10
    assert [figure for figure in figures if f" {figure}" not in measured] == []
    ztserve, nginx, date = re.search(r"ztserve (\S+) and nginx (\S+) on two cores, measured on (\S+)\.", compared).groups()
    for line in (f"| ztserve | {ztserve} |", f"| nginx | {nginx} |", "| cores | 2 |", f"Measured on {date} "):
        assert line in measured
