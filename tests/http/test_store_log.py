"""What is logged about the store: each thing once, and nothing without a reason."""

import os

import pytest

from containers import dense, pattern, zt1
from uploads import SMALL, put
from wire import ask, component_path, eventually, get, model_path

MODEL = zt1({"w": dense(pattern(100))})
MISFITS = ["my model.zt", "X.NPY"]


def lines_with(server, text):
    return [line for line in server.log_lines if text in line]


def logged(server, text, count=1):
    """The lines that hold the text, once they are there."""
    server.look_at_folder()
    eventually(lambda: len(lines_with(server, text)) >= count)
    return lines_with(server, text)


def settle(server, folder):
    """Waits until a scan has seen all earlier changes; by then they are in the log."""
    (folder / "settled.zt").write_bytes(MODEL)
    eventually(lambda: get(server, model_path("settled")).status == 200)


def test_a_shadowed_pair_is_logged_once(start_server, tmp_path):
    (tmp_path / "a.zt").write_bytes(MODEL)
    (tmp_path / "a.gguf").write_bytes(MODEL)
    server = start_server(tmp_path)
    settle(server, tmp_path)
    assert len(logged(server, "is shadowed by")) == 1, server.log
    (tmp_path / "a.safetensors").write_bytes(MODEL)
    assert "a.safetensors is shadowed by a.zt" in logged(server, "is shadowed by", 2)[1]
    for name in ("a.zt", "a.safetensors"):
        os.utime(tmp_path / name, (1, 1))
    settle(server, tmp_path)
    assert len(lines_with(server, "is shadowed by")) == 2, server.log


@pytest.mark.parametrize("name", MISFITS)
def test_a_file_with_an_unusable_name_is_logged_once(start_server, tmp_path, name):
    (tmp_path / f"\x01{name}").write_bytes(MODEL)
    (tmp_path / "notes.txt").write_text("not meant to be a model")
    server = start_server(tmp_path)
    settle(server, tmp_path)
    (line,) = logged(server, name)
    assert " warn " in line, line
    assert lines_with(server, "notes") == []
    (empty,) = logged(server, "no models yet")
    assert "name" in empty and "1 file " in empty


@pytest.mark.folder("links, folders and special files in a root")
def test_a_folder_with_an_unusable_name_is_logged_once(start_server, tmp_path):
    (tmp_path / "\x7fmy models").mkdir()
    (tmp_path / "\x7fmy models" / "m.zt").write_bytes(MODEL)
    server = start_server(tmp_path)
    settle(server, tmp_path)
    assert len(logged(server, "my models is not searched")) == 1, server.log


def test_upload_under_a_long_name_is_quiet(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    name = "n" * 252
    assert put(server, name, SMALL).status == 201
    assert get(server, component_path(name, "w")).body == pattern(1000)
    assert lines_with(server, "not removed") == [], server.log


@pytest.mark.folder("links, folders and special files in a root")
def test_configured_state_folder_that_cannot_be_written_is_a_warning(start_server, tmp_path):
    environment = {"ZTSERVE_STATE_DIR": "/nonexistent/state"}
    server = start_server(tmp_path, "--log-level", "warn", environment=environment)
    logged(server, "memory only")


@pytest.mark.folder("links, folders and special files in a root")
@pytest.mark.parametrize("is_writable", [True, False])
def test_a_state_folder_that_is_a_link_in_the_root_is_not_followed(start_server, tmp_path, is_writable):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / ".ztserve").symlink_to(outside)
    (root / "m.zt").write_bytes(zt1({"w": dense(pattern(100), digest="sha256")}))
    server = start_server(root, *(["--writable"] if is_writable else []))
    assert ask(server, "POST", model_path("m") + "/verification", body=b"").status in (200, 202, 403)
    assert get(server, component_path("m", "w")).status == 200
    (line,) = logged(server, "memory only")
    assert " warn " in line and str(root / ".ztserve") in line
    server.stop()
    assert list(outside.iterdir()) == []


@pytest.mark.folder("links, folders and special files in a root")
def test_a_state_folder_that_is_named_may_be_a_link(start_server, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "state").symlink_to("real")
    server = start_server(tmp_path / "root", environment={"ZTSERVE_STATE_DIR": str(tmp_path / "state")})
    server.stop()
    assert lines_with(server, "memory only") == []
    assert list((tmp_path / "real").iterdir()) != []


def make_weights(folder, outside):
    (folder / "weights.h5").write_bytes(MODEL)
    return "weights.h5 is not served: its extension is not supported"


def make_link_to_file(folder, outside):
    (outside / "secret.zt").write_bytes(MODEL)
    (folder / "link.zt").symlink_to(outside / "secret.zt")
    return "the link link.zt is not followed: it leads out"


def make_link_to_folder(folder, outside):
    (folder / "sub").mkdir()
    (folder / "sub" / "linked").symlink_to(os.path.relpath(outside, folder / "sub"))
    return "the link sub/linked is not followed: it leads out"


def make_link_to_nothing(folder, outside):
    (folder / "dead.zt").symlink_to("nothing.zt")
    return "the link dead.zt is not followed: its target does not exist"


def make_fifo(folder, outside):
    os.mkfifo(folder / "pipe.zt")
    return "pipe.zt is not served: it is a device, FIFO or socket"


KINDS = [make_weights, make_link_to_file, make_link_to_folder, make_link_to_nothing, make_fifo]


@pytest.mark.folder("links, folders and special files in a root")
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__.removeprefix("make_"))
def test_what_is_left_out_is_a_warning_once(start_server, tmp_path_factory, make):
    folder, outside = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("outside")
    text = make(folder, outside)
    server = start_server(folder)
    settle(server, folder)
    for name in ("again", "and-again"):
        (folder / f"{name}.zt").write_bytes(MODEL)
        eventually(lambda wanted=name: get(server, model_path(wanted)).status == 200)
    (line,) = logged(server, text)
    assert " warn " in line
    assert get(server, "/v1/models?limit=9").json()["models"][-1]["name"] == "settled"


@pytest.mark.folder("links, folders and special files in a root")
def test_a_link_within_the_root_says_nothing(start_server, tmp_path):
    (tmp_path / "m.zt").write_bytes(MODEL)
    (tmp_path / "relative.zt").symlink_to("m.zt")
    (tmp_path / "absolute.zt").symlink_to(tmp_path / "m.zt")
    server = start_server(tmp_path)
    settle(server, tmp_path)
    assert get(server, model_path("relative")).status == get(server, model_path("absolute")).status == 200
    assert lines_with(server, " link ") == []


@pytest.mark.folder("links, folders and special files in a root")
def test_no_fifo_is_opened(start_server, tmp_path):
    """Opening it would wake a writer that waits for a reader."""
    pipe = tmp_path / "pipe.zt"
    os.mkfifo(pipe)
    server = start_server(tmp_path)
    settle(server, tmp_path)
    for path in (model_path("pipe"), "/files/pipe.zt", component_path("pipe", "w")):
        assert get(server, path).status == 404
    with pytest.raises(OSError, match="No such device or address"):
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
