"""Names that can be read but not uploaded: any UTF-8 without control characters, and extensions in any case."""

import io
import os
from urllib.parse import quote

import numpy
import pytest
from containers import dense, pattern, zt1
from uploads import put
from wire import ask, assert_problem, component_path, eventually, get, model_path

NAMES = ["with space", "日本語", "-dash", 'quo"te', "per%cent", "a\\b", "sub dir/ä ö/m", "🙂"]
MODEL = zt1({"w": dense(pattern(64))})


def npy(values):
    file = io.BytesIO()
    numpy.save(file, numpy.array(values, "<f4"))
    return file.getvalue()


def write(root, name, data):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def delete(server, name):
    return ask(server, "DELETE", model_path(name))


def names(server, query="?limit=1000"):
    return [model["name"] for model in get(server, f"/v1/models{query}").json()["models"]]


@pytest.fixture(scope="module")
def server(folder, share_server):
    for name in NAMES:
        write(folder, f"{name}.zt", MODEL)
    for name in ("ctrl\x01", "tab\tbed", "c1\x85", ".hidden", "dir/.hidden", "m-*-of-00002.gguf"):
        write(folder, f"{name}.zt" if "*" not in name else name, MODEL)
    write(folder, "UPPER.NPY", npy([1, 2]))
    write(folder, "both.NPY", npy([1, 1, 1]))
    write(folder, "both.npy", npy([2, 2]))
    return share_server(folder, "--writable")


def test_all_are_listed_in_bytewise_order_and_page_by_page(server):
    expected = sorted([*NAMES, "UPPER", "both"], key=str.encode)
    assert names(server) == expected
    paged, cursor = [], ""
    while cursor is not None:
        page = get(server, f"/v1/models?limit=2{cursor and f'&cursor={cursor}'}").json()
        paged += [model["name"] for model in page["models"]]
        cursor = page["next"]
    assert paged == expected
    assert names(server, f"?match={quote('日?語')}") == ["日本語"]
    assert names(server, f"?prefix={quote('sub dir/ä')}") == ["sub dir/ä ö/m"]


@pytest.mark.parametrize("name", NAMES)
def test_every_resource_of_such_a_model_is_read(server, name):
    manifest = get(server, model_path(name)).json()
    assert manifest["name"] == name
    assert get(server, component_path(name, "w")).body == pattern(64)
    assert get(server, manifest["objects"]["w"]["components"]["data"]["href"]).body == pattern(64)
    assert get(server, manifest["source"]["href"]).body == MODEL
    assert get(server, f"{model_path(name)}/verification").status == 200
    assert get(server, f"{model_path(name)}/objects/w/statistics").status in (200, 404)
    assert get(server, f"{model_path(name)}/export?format=npz").status == 200


def test_what_is_saved_has_the_name(server):
    answer = get(server, f"{model_path('sub dir/ä ö/m')}/export?format=npz")
    assert answer["Content-Disposition"] == 'attachment; filename="m.npz"'
    answer = get(server, f"{model_path('日本語')}/export?format=npz")
    extended = "%E6%97%A5%E6%9C%AC%E8%AA%9E.npz"
    assert answer["Content-Disposition"] == f"attachment; filename=\"{'_' * 9}.npz\"; filename*=UTF-8''{extended}"
    answer = get(server, f"{model_path('with space')}/export?format=npz")
    assert answer["Content-Disposition"] == 'attachment; filename="with_space.npz"'


def test_extensions_have_any_case_and_small_letters_go_first(server):
    assert get(server, model_path("UPPER")).json()["source"]["format"] == "npy"
    assert get(server, "/files/UPPER.NPY").body == npy([1, 2])
    (array,) = get(server, model_path("both")).json()["objects"].values()
    assert array["shape"] == [2]
    assert get(server, "/files/both.NPY").body == npy([1, 1, 1])


@pytest.mark.parametrize("name", ["新", "x" * 256, "with space"])
def test_they_are_not_uploaded(server, name):
    assert_problem(put(server, name, MODEL), 400, "invalid-name")
    assert_problem(ask(server, "POST", f"{model_path(name)}/uploads"), 400, "invalid-name")


def test_they_are_removed(start_server, tmp_path):
    for name in ("a b.zt", "c.NPY", "d.NPY", "d.npy"):
        write(tmp_path, name, npy([1]) if name[-1] in "Yy" else MODEL)
    server = start_server(tmp_path, "--writable")
    for name in ("a b", "c", "d", "d"):
        assert delete(server, name).status == 204
        assert_problem(delete(server, "nicht da"), 404, "model-not-found")
    assert names(server) == []
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []


def test_an_upload_replaces_a_file_of_another_case(start_server, tmp_path):
    write(tmp_path, "m.NPY", npy([1]))
    server = start_server(tmp_path, "--writable")
    assert_problem(put(server, "m", npy([1, 2]), If_None_Match="*"), 412, "precondition-failed")
    assert put(server, "m", npy([1, 2])).status in (200, 201, 204)
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == ["m.npy"]
    assert list(get(server, model_path("m")).json()["objects"].values())[0]["shape"] == [2]
    write(tmp_path, "m.NPY", npy([1]))
    # So end the tags of the files that the catalog has noticed.
    assert eventually(lambda: get(server, "/files/m.NPY")["ETag"].endswith('-file"'))
    assert_problem(put(server, "m", npy([1, 2, 3])), 409, "conflict")


@pytest.mark.folder("a name that is not UTF-8")
def test_names_that_are_not_utf8_are_skipped_and_logged_escaped(start_server, tmp_path):
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9\n.zt"), "wb") as file:
        file.write(MODEL)
    server = start_server(tmp_path)
    assert names(server) == []
    eventually(lambda: "is not served: a model's name is UTF-8" in server.log)
