"""Many clients wait for one answer of the upstream, and none for ever."""

import pytest

import meddler as acts
from pull_through import REPO, files_path, resolve_path, safetensors, v1_path
from wire import at_once, eventually, get

MODEL = safetensors(1 << 16, seed=9)
CLIENTS = 60


def test_clients_of_a_new_repository_wait_for_one_look_up(upstream, mirror_of):
    """By the name of its model as well as by its path, also while the catalog opens it."""
    upstream.add(REPO, {"config.json": b"{}\n", "model.safetensors": MODEL})
    server = mirror_of(upstream.endpoint)
    counted = upstream.counting()
    targets = [files_path(REPO, "config.json"), v1_path(REPO, "model.safetensors"), files_path(REPO, "model.safetensors")]
    got = at_once(*[lambda target=target: get(server, target).status for target in targets * (CLIENTS // 3)])
    assert got == [200] * CLIENTS
    assert counted.count("info") == 1, counted


@pytest.mark.others
def test_an_upstream_that_hangs_holds_up_only_those_who_ask_for_what_it_has(upstream, mirror_of):
    root = mirror_of.new_root()
    (root / "local").mkdir()
    (root / "local" / "a.safetensors").write_bytes(MODEL)
    server = mirror_of(upstream.endpoint, root=root)
    hanging = upstream.meddle(acts.hang, "info", "tree")
    local = iter(range(CLIENTS))

    def here():
        eventually(lambda: hanging.used)
        number = next(local)
        assert get(server, files_path("local", "a.safetensors")).body == MODEL
        (root / "local" / f"new{number}.safetensors").write_bytes(MODEL)
        return eventually(lambda: get(server, v1_path("local", f"new{number}.safetensors")).status == 200)

    def wanted(number):
        reads = (v1_path, files_path, resolve_path)
        return get(server, reads[number % 3](f"acme/new{number}", "model.safetensors")).status == 503

    asked = [lambda number=number: wanted(number) for number in range(CLIENTS)]
    assert at_once(*asked, *[here] * 4) == [True] * (CLIENTS + 4)
