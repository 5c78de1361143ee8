"""Syncs happen in their order: bytes before the name that shows them, and both before the answer that promises them.

A test that kills the server cannot see this, since the kernel keeps what was written; a power cut would show it.
"""

import base64
import json
import random

import pytest

import interrupted
from containers import dense, pattern, zt1
from recorded_calls import Disk, environment_to_record, position, read_calls
from wire import ask

pytestmark = [
    pytest.mark.folder("syncs of files and folders"),
    pytest.mark.plain("a preloaded library records calls"),
]

TUS = {"Tus-Resumable": "1.0.0"}
MODEL = bytes(zt1({"w": dense(pattern(100_000))}))


@pytest.fixture
def server(root, record, tmp_path, start_server):
    settings = {"ZTSERVE_UPLOAD_RESERVE_BYTES": "0", "ZTSERVE_STATE_DIR": str(tmp_path / "state")}
    return start_server(root, "--writable", environment=settings | environment_to_record(record))


@pytest.fixture
def calls_of(record):
    """The calls of a request, which must succeed, up to its answer. What the server remembers for later may be saved behind it."""

    def run(request):
        before = len(read_calls(record))
        answer = request()
        assert 200 <= answer.status < 300, answer
        calls = read_calls(record)[before:]
        (end,) = (index for index, made in enumerate(calls) if made.call == "answer")
        return calls[: end + 1]

    return run


def assert_order(calls, *wanted):
    """Each (call, path) was made, and each after the one before."""
    positions = [position(calls, call, path) for call, path in wanted]
    assert -1 not in positions and positions == sorted(positions), f"{wanted}\n{calls}"


def put(server, name, **fields):
    return ask(server, "PUT", f"/v1/models/{name}", {key.replace("_", "-"): value for key, value in fields.items()}, MODEL)


@pytest.mark.parametrize("kind", interrupted.KINDS, ids=lambda kind: kind.__name__.lower())
def test_an_answer_comes_after_the_syncs_that_it_promises(kind, server, root, record):
    upload = kind("m", random.Random(7))
    upload.proceed(server)
    assert upload.is_published
    assert ask(server, "DELETE", "/v1/models/m").status == 204
    assert Disk(root).follow(read_calls(record)) == []


def test_a_put_syncs_bytes_then_links_then_syncs_the_folder(server, root, calls_of):
    calls = calls_of(lambda: put(server, "m", If_None_Match="*"))
    data = next(made.path for made in calls if made.call == "write" and made.path.parent == root)
    assert_order(calls, ("write", data), ("sync", data), ("link", root / "m.zt"), ("sync", root))


def test_a_replacing_put_syncs_bytes_then_renames_then_syncs_the_folder(server, root, calls_of):
    put(server, "m")
    calls = calls_of(lambda: put(server, "m"))
    data = next(made.path for made in calls if made.call == "write" and made.path.parent == root)
    assert_order(calls, ("write", data), ("sync", data), ("rename", root / "m.zt"), ("sync", root))


def test_a_put_into_a_new_folder_syncs_the_folder_above(server, root, calls_of):
    calls = calls_of(lambda: put(server, "new%2Fm"))
    assert_order(calls, ("mkdir", root / "new"), ("sync", root), ("link", root / "new" / "m.zt"), ("sync", root / "new"))


def test_a_delete_syncs_the_folder_before_its_answer(server, root, calls_of):
    put(server, "m")
    calls = calls_of(lambda: ask(server, "DELETE", "/v1/models/m"))
    assert_order(calls, ("unlink", root / "m.zt"), ("sync", root))


@pytest.fixture
def session(server):
    answer = ask(server, "POST", "/v1/models/m/uploads", {}, json.dumps({"version": "2"}).encode())
    assert answer.status == 201, answer
    return answer["Location"]


def send_component(server, session, name="w", query=""):
    return ask(server, "PUT", f"{session}/objects/{name}/data?dtype=u8&shape=100000{query}", {}, pattern(100_000))


@pytest.mark.parametrize("query", ["", "&encoding=zstd"], ids=["raw", "zstd"])
def test_a_component_is_synced_before_the_journal_says_that_it_is_there(query, server, session, calls_of):
    calls = calls_of(lambda: send_component(server, session, query=query))
    change = "copy" if query else "write"
    assert_order(calls, (change, "data"), ("sync", "data"), ("write", "writer-journal"), ("sync", "writer-journal"))


def test_a_declaration_is_journalled_and_synced_before_its_answer(server, session, calls_of):
    declared = json.dumps({"attributes": {"a": 1}}).encode()
    calls = calls_of(lambda: ask(server, "PUT", f"{session}/objects/w", {}, declared))
    assert_order(calls, ("write", "writer-journal"), ("sync", "writer-journal"))


def test_a_commit_syncs_bytes_and_journal_before_the_name_and_the_folder_after_it(server, session, root, calls_of):
    send_component(server, session)
    calls = calls_of(lambda: ask(server, "POST", f"{session}/commit", {}, b""))
    publication = position(calls, "rename", root / "m.zt")
    assert_order(calls, ("write", "data"), ("sync", "data"), ("rename", root / "m.zt"), ("sync", root))
    assert_order(calls[:publication], ("write", "writer-journal"), ("sync", "writer-journal"))


def create_resumable(server):
    fields = TUS | {"Upload-Length": str(len(MODEL)), "Upload-Metadata": f"model {base64.b64encode(b'm').decode()}"}
    return ask(server, "POST", "/v1/resumable", fields, b"")


def send_piece(server, path, first, last):
    fields = TUS | {"Upload-Offset": str(first), "Content-Type": "application/offset+octet-stream"}
    return ask(server, "PATCH", path, fields, MODEL[first:last])


def test_a_piece_is_synced_before_the_offset_that_counts_it(server, calls_of):
    path = create_resumable(server)["Location"]
    calls = calls_of(lambda: send_piece(server, path, 0, 50_000))
    assert_order(calls, ("write", "data"), ("sync", "data"), ("write", "state"), ("sync", "state"))


def test_the_last_piece_is_synced_before_the_name_and_the_folder_after_it(server, root, calls_of):
    path = create_resumable(server)["Location"]
    send_piece(server, path, 0, 50_000)
    calls = calls_of(lambda: send_piece(server, path, 50_000, len(MODEL)))
    assert_order(calls, ("write", "data"), ("sync", "data"), ("rename", root / "m.zt"), ("sync", root))
