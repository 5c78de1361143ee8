"""What is logged about the store: each thing once, and nothing without a reason."""

import os

import pytest

from containers import dense, pattern, zt1
from uploads import SMALL, put
from wire import component_path, eventually, get, model_path

MODEL = zt1({"w": dense(pattern(100))})
MISFITS = ["my model.zt", "-d.zt", "X.ZT"]


def lines_with(server, text):
    return [line for line in server.log_lines if text in line]


def logged(server, text, count=1):
    """The lines that hold the text, once they are there."""
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
    assert len(lines_with(server, "is shadowed by")) == 1, server.log
    (tmp_path / "a.safetensors").write_bytes(MODEL)
    assert "a.safetensors is shadowed by a.zt" in logged(server, "is shadowed by", 2)[1]
    os.utime(tmp_path / "a.zt", (1, 1))
    settle(server, tmp_path)
    assert len(lines_with(server, "is shadowed by")) == 2, server.log


@pytest.mark.parametrize("name", MISFITS)
def test_a_file_with_an_unusable_name_is_logged_once(start_server, tmp_path, name):
    (tmp_path / name).write_bytes(MODEL)
    (tmp_path / "notes.txt").write_text("not meant to be a model")
    server = start_server(tmp_path)
    settle(server, tmp_path)
    assert len(lines_with(server, name)) == 1, server.log
    assert lines_with(server, "notes") == []
    (empty,) = lines_with(server, "no models yet")
    assert "name" in empty and "1 file " in empty


def test_a_folder_with_an_unusable_name_is_logged_once(start_server, tmp_path):
    (tmp_path / "my models").mkdir()
    (tmp_path / "my models" / "m.zt").write_bytes(MODEL)
    server = start_server(tmp_path)
    settle(server, tmp_path)
    assert len(lines_with(server, "my models is not searched")) == 1, server.log


def test_many_files_whose_names_do_not_fit_are_counted(start_server, tmp_path):
    for index in range(25):
        (tmp_path / f"bad {index}.zt").write_bytes(MODEL)
    server = start_server(tmp_path)
    settle(server, tmp_path)
    assert len(lines_with(server, "bad ")) == 20, server.log
    assert len(lines_with(server, "5 more")) == 1, server.log
    assert "25 files" in lines_with(server, "no models yet")[0]


def test_a_later_file_with_an_unusable_name_is_logged(start_server, tmp_path):
    server = start_server(tmp_path)
    (tmp_path / "my model.zt").write_bytes(MODEL)
    logged(server, "my model.zt")


def test_empty_folder_says_nothing_of_names(start_server, tmp_path):
    server = start_server(tmp_path)
    assert "because of" not in logged(server, "no models yet")[0]


def test_upload_under_a_long_name_is_quiet(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    name = "n" * 252
    assert put(server, name, SMALL).status == 201
    assert get(server, component_path(name, "w")).body == pattern(1000)
    assert lines_with(server, "not removed") == [], server.log


def test_configured_state_folder_that_cannot_be_written_is_a_warning(start_server, tmp_path):
    environment = {"ZTSERVE_STATE_DIR": "/nonexistent/state"}
    server = start_server(tmp_path, "--log-level", "warn", environment=environment)
    logged(server, "memory only")
