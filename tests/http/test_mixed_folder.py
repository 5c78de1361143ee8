"""A folder with every kind of file: extensions decide names and precedence, contents decide formats."""

from containers import dense, zt1, zt2
from neighbours import gguf, mag, npy, npz, safetensors
from wire import assert_problem, component_path, eventually, get, manifest, model_path

# In order of precedence; each holds different bytes, which show which one is served.
EXTENSIONS = ("zt", "safetensors", "gguf", "mag", "npz", "npy")
DATA = {extension: bytes([0, 1] * (10 + rank)) for rank, extension in enumerate(EXTENSIONS)}
FILES = {
    "zt": zt1({"w": dense(DATA["zt"])}),
    "safetensors": safetensors(DATA["safetensors"]),
    "gguf": gguf(DATA["gguf"]),
    "mag": mag(DATA["mag"]),
    "npz": npz(DATA["npz"]),
    "npy": npy(DATA["npy"]),
}


def served(server, model):
    """The format that is served; the served bytes must be of that file."""
    extension = manifest(server, model)["source"]["format"]
    name = "data" if extension == "npy" else "w"
    assert get(server, component_path(model, name)).body == DATA[extension]
    return extension


def format_of(server, model):
    answer = get(server, model_path(model))
    return answer.json()["source"]["format"] if answer.status == 200 else None


def test_every_format_is_served_from_one_folder(start_server, tmp_path):
    for extension, file in FILES.items():
        (tmp_path / f"of-{extension}.{extension}").write_bytes(file)
    server = start_server(tmp_path)
    models = get(server, "/v1/models").json()["models"]
    assert [model["name"] for model in models] == sorted(f"of-{extension}" for extension in EXTENSIONS)
    assert all(model["objects"] == 1 and "error" not in model for model in models)
    assert [served(server, f"of-{extension}") for extension in EXTENSIONS] == list(EXTENSIONS)


def test_the_first_extension_is_served_and_the_next_takes_over_when_it_is_removed(start_server, tmp_path):
    for extension, file in FILES.items():
        (tmp_path / f"m.{extension}").write_bytes(file)
    server = start_server(tmp_path)
    for rank, extension in enumerate(EXTENSIONS):
        eventually(lambda wanted=extension: manifest(server, "m")["source"]["format"] == wanted)
        assert served(server, "m") == extension
        assert [model["name"] for model in get(server, "/v1/models").json()["models"]] == ["m"]
        for hidden in EXTENSIONS[rank:]:
            assert get(server, f"/files/m.{hidden}").body == FILES[hidden]
        (tmp_path / f"m.{extension}").unlink()
    eventually(lambda: get(server, model_path("m")).status == 404)


def test_a_better_extension_that_comes_later_takes_over(start_server, tmp_path):
    server = start_server(tmp_path)
    for extension in reversed(EXTENSIONS):
        (tmp_path / ".partial").write_bytes(FILES[extension])
        (tmp_path / ".partial").rename(tmp_path / f"m.{extension}")
        # The format first: between two requests the next file may take precedence.
        eventually(lambda wanted=extension: format_of(server, "m") == wanted)
        assert served(server, "m") == extension


def test_an_unreadable_file_shadows_all_the_same(start_server, tmp_path):
    """An error is better than silently serving another file of the name."""
    (tmp_path / "m.zt").write_bytes(FILES["zt"][:-1])
    (tmp_path / "m.safetensors").write_bytes(FILES["safetensors"])
    server = start_server(tmp_path)
    assert_problem(get(server, model_path("m")), 422, "invalid-model")
    (entry,) = get(server, "/v1/models").json()["models"]
    assert entry["error"]["code"] == "invalid-model"


def test_the_content_decides_the_format(start_server, tmp_path):
    """Each content under each other extension."""
    for extension in EXTENSIONS:
        for content in EXTENSIONS:
            (tmp_path / f"{content}-as-{extension}.{extension}").write_bytes(FILES[content])
    server = start_server(tmp_path)
    listed = {model["name"]: model["format"] for model in get(server, "/v1/models").json()["models"]}
    for extension in EXTENSIONS:
        for content in EXTENSIONS:
            name = f"{content}-as-{extension}"
            assert served(server, name) == listed[name] == content
            assert manifest(server, name)["source"]["href"] == f"/files/{name}.{extension}"


def test_a_version_2_file_under_a_foreign_extension_is_served(start_server, tmp_path):
    (tmp_path / "m.npz").write_bytes(zt2({"w": dense(b"1234", digest="xxh3")}))
    server = start_server(tmp_path)
    assert manifest(server, "m")["source"]["version"] == "2"
    assert get(server, component_path("m", "w")).body == b"1234"


def test_an_extension_alone_makes_no_model_readable(start_server, tmp_path):
    for extension in EXTENSIONS[1:]:
        (tmp_path / f"of-{extension}.{extension}").write_bytes(b"neither this nor that")
    server = start_server(tmp_path)
    for extension in EXTENSIONS[1:]:
        problem = assert_problem(get(server, model_path(f"of-{extension}")), 422, "invalid-model")
        assert problem["rule"] == "zt §Detection UnknownFormat"
