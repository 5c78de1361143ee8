"""Server-Timing: what ?timing adds to an answer, and that it changes nothing else."""

import re

import pytest

from containers import dense, pattern, zstd_dense, zt1
from wire import ask, assert_problem, component_path, get, head

ENTRY = re.compile(r"([a-z]+);dur=(\d+\.\d{3})")


@pytest.fixture(scope="module")
def server(folder, share_server):
    data = pattern(100_000)
    (folder / "m.zt").write_bytes(zt1({"w": dense(data), "z": zstd_dense(data)}))
    return share_server(folder, "--writable")


def phases(answer):
    """{phase: milliseconds}, of a field of the right form."""
    entries = answer["Server-Timing"].split(", ")
    assert all(ENTRY.fullmatch(entry) for entry in entries), entries
    return {name: float(ms) for name, ms in (ENTRY.fullmatch(entry).groups() for entry in entries)}


def assert_sum(shown):
    parts = [ms for name, ms in shown.items() if name not in ("wait", "total")]
    assert sum(parts) <= shown["total"] + 0.01 and shown["wait"] <= shown["total"] + 0.01, shown


def test_phases_add_up(server):
    answer = get(server, component_path("m", "z") + "?timing")
    assert answer.status == 200
    shown = phases(answer)
    assert list(shown) == ["begin", "handle", "verify", "decode", "digest", "wait", "total"]
    assert shown["wait"] > 0
    assert_sum(shown)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m", "/files/m.zt", "/healthz", "/openapi.json", "/metrics"])
def test_any_resource_tells_its_time(server, path):
    shown = phases(get(server, path + "?timing=1"))
    assert {"begin", "handle", "total"} <= set(shown)
    assert_sum(shown)


def test_bodies_and_errors_are_timed_too(server):
    shown = phases(ask(server, "PUT", "/v1/models/rubbish?timing=true", body=b"rubbish"))
    assert "body" in shown and shown["wait"] > 0
    assert_sum(shown)
    shown = phases(get(server, "/nowhere?timing"))
    assert set(shown) == {"begin", "handle", "wait", "total"}


@pytest.mark.parametrize("query", ["", "?pretty", "?timing=0", "?timing=false", "?xtiming=1"])
def test_nobody_else_is_told(server, query):
    assert get(server, "/v1/models/m" + query)["Server-Timing"] is None


def test_other_values_make_no_sense(server):
    problem = assert_problem(get(server, "/v1/models/m?timing=maybe"), 400, "invalid-request")
    assert "timing" in problem["detail"]


def test_nothing_else_changes(server):
    for path in ("/v1/models/m", component_path("m", "w"), "/v1/models/m/export?format=npz"):
        both = path + ("&timing" if "?" in path else "?timing")
        plain, timed = get(server, path), get(server, both)
        assert timed.body == plain.body
        for name in ("ETag", "Cache-Control", "Content-Length", "Last-Modified", "Vary", "Content-Type"):
            assert timed[name] == plain[name], name
        unchanged = get(server, both, If_None_Match=plain["ETag"])
        assert unchanged.status == 304 and "total" in phases(unchanged)
        assert head(server, both)["ETag"] == plain["ETag"]
