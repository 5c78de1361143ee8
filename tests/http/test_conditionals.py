"""If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since, in the order of RFC 9110 section 13.2.2."""

import email.utils
import os

import pytest

from containers import dense, pattern, zstd_dense, zt1
from wire import Connection, assert_problem, component_path, get, head, model_path, object_path

MODIFIED = 1_700_000_000
PATHS = {
    "manifest": model_path("m"),
    "object": object_path("m", "w"),
    "component": component_path("m", "w"),
    "decoded": component_path("m", "z"),
    "file": "/files/m.zt",
}


def date(offset=0):
    return email.utils.formatdate(MODIFIED + offset, usegmt=True)


@pytest.fixture(scope="module")
def server(folder, share_server):
    path = folder / "m.zt"
    odd = zstd_dense(pattern(1000), states_length=False)
    odd.format = "acme.odd/1"
    path.write_bytes(zt1({"w": dense(pattern(1000)), "x": dense(pattern(1000)), "z": zstd_dense(pattern(1000)), "odd": odd}))
    os.utime(path, (MODIFIED, MODIFIED))
    return share_server(folder)


@pytest.fixture(params=PATHS)
def path(request):
    return PATHS[request.param]


@pytest.fixture
def tag(server, path):
    return get(server, path)["ETag"]


def assert_not_modified(answer, tag):
    assert (answer.status, answer.body) == (304, b""), answer
    assert answer["ETag"] == tag
    assert "Date" in answer.fields
    assert "Content-Range" not in answer.fields


def test_if_none_match_with_the_tag_is_304(server, path, tag):
    for value in (tag, f'"x" ,W/{tag} , "y"', "*"):
        assert_not_modified(get(server, path, If_None_Match=value), tag)
        assert_not_modified(head(server, path, If_None_Match=value), tag)


def test_if_none_match_without_the_tag_is_200(server, path, tag):
    for value in ('"other"', tag[:-1] + 'x"'):
        assert get(server, path, If_None_Match=value).status == 200, value


def test_304_has_the_fields_that_200_would_have(server, path, tag):
    whole, short = get(server, path), get(server, path, If_None_Match=tag)
    for name in ("Cache-Control", "ETag", "Last-Modified", "Vary", "Content-Location", "Expires"):
        assert short.fields.get(name) == whole.fields.get(name), name


def test_a_304_has_the_length_of_the_200_or_none(server):
    """RFC 9110 section 8.6; the length of a decoded component may not be known yet."""
    for name in ("w", "z", "odd"):
        path = component_path("m", name)
        tag = head(server, path)["ETag"]
        answer = get(server, path, If_None_Match=tag)
        assert_not_modified(answer, tag)
        assert answer.fields.get("Content-Length") in ("1000", None), name
        assert "Transfer-Encoding" not in answer.fields


def assert_kept(server, path, tag):
    with Connection(server) as connection:
        for _ in range(3):
            answer = connection.ask("GET", path, {"If-None-Match": tag})
            assert_not_modified(answer, tag)
            assert answer["Connection"] is None, answer


def test_the_connection_is_kept_behind_a_304(server, path, tag):
    assert_kept(server, path, tag)


def test_the_connection_is_kept_behind_a_304_of_a_manifest_that_nobody_has_fetched(server, folder, start_server):
    tag = get(server, PATHS["manifest"])["ETag"]
    assert_kept(start_server(folder), PATHS["manifest"], tag)


def test_the_connection_is_kept_behind_a_304_of_statistics_that_are_known(server):
    target = component_path("m", "w") + "/statistics?bins=5"
    whole = get(server, target)
    assert_kept(server, target, whole["ETag"])
    answer = get(server, target, If_None_Match=whole["ETag"])
    assert answer.status == 304 and answer["Content-Length"] == str(len(whole.body))


def test_if_match_decides(server, path, tag):
    for value in (tag, f'"a", {tag}'):
        assert get(server, path, If_Match=value).status == 200, value
    for value in ('"other"', f"W/{tag}"):
        assert_problem(get(server, path, If_Match=value), 412, "precondition-failed")
        assert head(server, path, If_Match=value).status == 412


@pytest.mark.folder("times of files")
def test_if_modified_since_decides(server):
    path = PATHS["component"]
    assert get(server, path, If_Modified_Since=date()).status == 304
    assert get(server, path, If_Modified_Since=date(-1)).status == 200


@pytest.mark.folder("times of files")
def test_if_unmodified_since_decides(server):
    path = PATHS["component"]
    assert get(server, path, If_Unmodified_Since=date()).status == 200
    assert_problem(get(server, path, If_Unmodified_Since=date(-1)), 412, "precondition-failed")


def test_tags_go_before_dates(server, path, tag):
    assert get(server, path, If_None_Match='"other"', If_Modified_Since=date(+100)).status == 200
    assert get(server, path, If_None_Match=tag, If_Modified_Since=date(-100)).status == 304
    assert get(server, path, If_Match=tag, If_Unmodified_Since=date(-100)).status == 200
    assert get(server, path, If_Match='"other"', If_Unmodified_Since=date(+100)).status == 412


def test_conditions_go_before_the_range(server):
    path = PATHS["component"]
    tag = get(server, path)["ETag"]
    assert get(server, path, If_None_Match=tag, Range="bytes=0-1").status == 304
    assert get(server, path, If_Match='"other"', Range="bytes=9999-").status == 412
    assert get(server, path, If_None_Match='"other"', Range="bytes=0-1").status == 206
    assert get(server, path, If_Match=tag, Range="bytes=9999-").status == 416


def test_conditions_do_not_turn_an_error_into_something_else(server):
    missing = component_path("m", "nothing")
    assert get(server, missing, If_None_Match="*").status == 404
    assert get(server, missing, If_Match='"x"').status == 404
    assert get(server, model_path("none"), If_Match="*").status == 404


def test_each_representation_has_a_tag_of_its_own(server):
    paths = [*PATHS.values(), component_path("m", "x"), PATHS["component"] + "?representation=stored"]
    paths += [PATHS["decoded"] + "?representation=stored", PATHS["manifest"] + "?prefix=w", PATHS["manifest"] + "?pretty"]
    tags = {path: get(server, path)["ETag"] for path in paths}
    assert not any(value.startswith("W/") for value in tags.values())
    manifest_tags = [value for path, value in tags.items() if path.startswith(PATHS["manifest"]) and "objects" not in path]
    assert len(set(manifest_tags)) == len(manifest_tags)
    assert tags[PATHS["decoded"]] != tags[PATHS["decoded"] + "?representation=stored"]


def test_tag_changes_with_the_file_and_only_then(server, start_server, tmp_path):
    path = tmp_path / "m.zt"
    path.write_bytes(zt1({"w": dense(pattern(1000))}))
    first = start_server(tmp_path)
    before = get(first, PATHS["component"])["ETag"]
    first.stop()
    second = start_server(tmp_path)
    assert get(second, PATHS["component"])["ETag"] == before
