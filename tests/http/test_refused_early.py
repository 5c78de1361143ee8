"""A model that another one lies behind is not replaced, which writes hear before a byte of their body is read."""

import pytest

import tus
import writers
from uploads import OTHER, SMALL, begin_put, files_of, put
from wire import ask, assert_problem, model_path, read_exactly, read_head

IN_A_FOLDER = pytest.mark.folder("only a folder is looked at before the body")


@pytest.fixture(scope="module")
def server(folder, share_server):
    return share_server(folder, "--writable", environment={"ZTSERVE_UPLOAD_MAX_BYTES": "1000000"})


@pytest.fixture
def doubled(server, folder, name):
    """A name that two files have; the first write makes the server look at them."""
    (folder / f"{name}.zt").write_bytes(SMALL)
    (folder / f"{name}.npz").write_bytes(b"someone's")
    assert_problem(put(server, name, OTHER), 409, "conflict")
    return name


def assert_names(problem, name):
    assert f"{name}.npz, is hidden by" in problem["detail"]


def answer_before_body(server, name, length, *fields):
    with begin_put(server, model_path(name), length, "Expect: 100-continue", *fields) as connection:
        status, fields, begun = read_head(connection)
        return status, read_exactly(connection, int(fields.get("content-length", 0)), begun)


@IN_A_FOLDER
def test_put_is_refused_in_place_of_100(server, doubled):
    status, body = answer_before_body(server, doubled, 500_000)
    assert status == 409 and f"{doubled}.npz".encode() in body


@IN_A_FOLDER
def test_preconditions_are_refused_before_and_lengths_behind(server, doubled):
    assert answer_before_body(server, doubled, 2_000_000, "If-None-Match: *")[0] == 412
    assert answer_before_body(server, doubled, 2_000_000)[0] == 409


@IN_A_FOLDER
def test_a_resumable_upload_is_not_created(server, doubled):
    assert_names(assert_problem(tus.post(server, doubled, 500_000), 409, "conflict"), doubled)
    assert tus.uploads_of(server, doubled) == []


@IN_A_FOLDER
def test_a_writers_upload_is_not_created(server, doubled):
    assert_names(assert_problem(ask(server, "POST", model_path(doubled) + "/uploads", body=b""), 409, "conflict"), doubled)


def test_once_the_other_file_is_gone_the_write_succeeds_at_once(server, folder, doubled):
    (folder / f"{doubled}.npz").unlink()
    assert put(server, doubled, OTHER).status == 204
    assert [path for path in files_of(folder) if path.startswith(doubled)] == [f"{doubled}.zt"]


def test_what_comes_to_lie_behind_later_is_found_at_the_end(server, folder, name):
    assert put(server, name, SMALL).status == 201
    whole, written = tus.create(server, name, len(OTHER)), writers.begin(server, name)
    written.put("a", b"1234")
    (folder / f"{name}.npz").write_bytes(b"someone's")
    assert_names(assert_problem(tus.patch(server, whole, 0, OTHER), 409, "conflict"), name)
    assert_names(assert_problem(written.commit(), 409, "conflict"), name)
    assert (folder / f"{name}.zt").read_bytes() == SMALL
