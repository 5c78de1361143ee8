"""Which folders are repositories in the Hub's list, and which only hold some."""

import hashlib
import os
import shutil

import pytest

from containers import dense, pattern, zt1
from wire import get

MODEL = zt1({"w": dense(pattern(64), dtype="u8")})


def fill(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(MODEL if path.endswith(".zt") else b"{}")


def ids(server, query="", **fields):
    return [told["id"] for told in get(server, f"/api/models{query}", **fields).json()]


def test_a_readme_of_the_owner_hides_no_repository(tmp_path, start_server):
    fill(tmp_path, "org/README.md", "org/notes.txt", "org/model/config.json", "org/m2/weights.zt", "other/m3/README.md")
    server = start_server(tmp_path)
    assert ids(server) == ["org/m2", "org/model", "other/m3"]
    assert ids(server, "?author=org") == ["org/m2", "org/model"]
    assert get(server, "/api/models/org/model").json()["id"] == "org/model"


def test_a_folder_with_files_can_be_addressed_although_it_is_not_listed(tmp_path, start_server):
    fill(tmp_path, "org/README.md", "org/model/config.json", "words/README.md")
    server = start_server(tmp_path)
    assert ids(server) == ["org/model"]
    assert get(server, "/api/models/org").json()["id"] == "org"
    assert get(server, "/api/models/words").json()["id"] == "words"


def test_what_makes_a_folder_a_repository(tmp_path, start_server):
    known = ["config.json", "w.zt", "w.GGUF", "w.npz", "w.onnx", "pytorch_model.bin", "w.pt", "m.safetensors", "m.safetensors.index.json"]
    others = ["README.md", "tokenizer.json", "w.txt", "config.json.bak"]
    for number, file in enumerate(known):
        fill(tmp_path, f"is{number}/{file}", f"is{number}/README.md", f"is{number}/onnx/README.md")
    for number, file in enumerate(others):
        fill(tmp_path, f"owner{number}/{file}", f"owner{number}/model/README.md")
    assert ids(start_server(tmp_path)) == [f"is{number}" for number in range(9)] + [f"owner{number}/model" for number in range(4)]


def test_a_config_makes_everything_below_a_part_of_the_repository(tmp_path, start_server):
    fill(tmp_path, "single/config.json", "single/w.zt", "single/onnx/config.json", "single/onnx/w.onnx")
    assert ids(start_server(tmp_path)) == ["single"]


@pytest.mark.parametrize("stray, file", [("tiny.pt", "config.json"), ("w.zt", "w.zt"), ("W.GGUF", "model.safetensors.index.json")])
def test_a_stray_model_hides_no_repository(tmp_path, start_server, stray, file):
    fill(tmp_path, f"acme/{stray}", f"acme/big/{file}", "acme/notes/README.md", "acme/deep/onnx/w.onnx", "other/m/w.zt")
    server = start_server(tmp_path)
    assert ids(server) == ["acme", "acme/big", "other/m"]
    assert ids(server, "?author=acme") == ["acme/big"]
    assert get(server, "/api/models/acme/big").json()["id"] == "acme/big"


def test_a_model_in_a_folder_below_makes_no_owner(tmp_path, start_server):
    """What counts lies in the folder itself; and what is deeper belongs to the repository above it."""
    fill(tmp_path, "org/model/onnx/m.zt", "org/README.md")
    assert ids(start_server(tmp_path)) == ["org/model"]


@pytest.mark.folder("a bucket has no links")
def test_a_cached_repository_without_an_owner(tmp_path, start_server):
    fill(tmp_path, f"models--single/snapshots/{'c' * 40}/README.md", "single/model/README.md")
    (tmp_path / "models--single/refs").mkdir()
    (tmp_path / "models--single/refs/main").write_text("c" * 40)
    assert ids(start_server(tmp_path)) == ["single", "single/model"]


def test_a_model_that_a_client_may_not_see_hides_nothing(tmp_path, start_server):
    fill(tmp_path, "org/secret.zt", "org/model/config.json")
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    tokens.write_text(f"a read {hashlib.sha256(b'a').hexdigest()} org/model/*\nb admin {hashlib.sha256(b'b').hexdigest()}\n")
    server = start_server(tmp_path, "--tokens", str(tokens))
    assert ids(server, Authorization="Bearer a") == ["org/model"]
    assert ids(server, Authorization="Bearer b") == ["org", "org/model"]


# --- filters ---

IMPOSSIBLE = """
    gated=true gated=True gated=1 gated=auto gated=manual gated=false&gated=true private=true pipeline_tag=text-generation
    library=transformers library=gguf,transformers apps=ollama apps=llama.cpp&apps=vllm inference=warm inference_provider=all
    num_parameters=min:1B trained_dataset=squad language=en license=mit filter=license:mit filter=text-generation
    filter=safetensors,en filter%5B%5D=en %67ated=true
""".split()


@pytest.mark.parametrize("query", IMPOSSIBLE)
def test_a_filter_that_nothing_here_meets_gives_an_empty_list(filtered, query):
    for more in ("", "&limit=3", "&full=true", "&sort=lastModified", "&search=a"):
        answer = get(filtered, f"/api/models?{query}{more}")
        assert (answer.status, answer.json(), answer["Link"]) == (200, [], None), more


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["o/a", "o/g"]),
        ("gated=false", ["o/a", "o/g"]),
        ("gated=False&private=0", ["o/a", "o/g"]),
        ("gated=&pipeline_tag=&library=&apps=&filter=", ["o/a", "o/g"]),
        ("library=gguf", ["o/g"]),
        ("library=safetensors", ["o/a"]),
        ("filter=safetensors&filter=ztensor", ["o/a"]),
        ("filter=safetensors&library=gguf", []),
        ("tags=gguf", ["o/g"]),
        ("&".join(["filter=gguf"] * 9), ["o/g"]),
        ("&".join(["filter=gguf"] * 9 + ["filter=npz"]), []),
        ("direction=-1&config=true&cardData=true&sort=downloads&blobs=true", ["o/a", "o/g"]),
    ],
)
def test_a_filter_that_can_be_met_is_met(filtered, query, expected):
    assert ids(filtered, f"?{query}") == expected


def test_pages_keep_their_filters(filtered):
    assert pages(filtered, "limit=1&library=gguf") == [["o/g"]]
    assert pages(filtered, "limit=1&gated=false") == [["o/a"], ["o/g"]]


@pytest.fixture(scope="module")
def filtered(folder, share_server):
    fill(folder, "o/a/w.zt", "o/g/w.gguf")
    return share_server(folder)


# --- pages ---


def pages(server, query, change=lambda number: None):
    """The names on each page; change is called after it."""
    target, found = f"/api/models?{query}", []
    while target:
        answer = get(server, target)
        found.append([told["id"] for told in answer.json()])
        change(len(found))
        link = answer["Link"]
        target = link and link[link.index("/api/models") : link.index(">")]
    return found


@pytest.mark.folder("removes a folder")
@pytest.mark.parametrize("order", ["", "&sort=lastModified"])
def test_a_page_continues_behind_what_has_gone(tmp_path, start_server, order):
    names = [f"o/m{number}" for number in range(5)]
    for age, name in enumerate(names):
        fill(tmp_path, f"{name}/w.zt")
        os.utime(tmp_path / name / "w.zt", (2_000_000 - age, 2_000_000 - age))
    server = start_server(tmp_path)

    def change(number):
        if number == 1:
            shutil.rmtree(tmp_path / "o/m1")

    assert pages(server, f"limit=2{order}", change) == [names[:2], names[2:4], names[4:]]


@pytest.mark.folder("times")
def test_a_page_by_time_continues_behind_what_has_changed(tmp_path, start_server):
    names = [f"o/m{number}" for number in range(4)]
    for name in names:
        fill(tmp_path, f"{name}/w.zt")
        os.utime(tmp_path / name / "w.zt", (1_000_000, 1_000_000))
    server = start_server(tmp_path)
    found = pages(server, "limit=2&sort=lastModified", lambda number: number == 1 and fill(tmp_path, "o/m1/w.zt"))
    assert found == [names[:2], names[2:]]


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "limit=", "cursor=", "sort=lastModified&cursor=other", "sort=lastModified&cursor=9:"])
def test_what_a_page_cannot_read_means_nothing(filtered, query):
    assert sorted(ids(filtered, f"?{query}")) == ([] if query.endswith("9:") else ["o/a", "o/g"])


# --- with files ---


def test_a_list_has_files_if_they_are_asked_for(tmp_path, start_server):
    fill(tmp_path, "o/a/w.zt", "o/a/config.json", "o/b/sub/x.txt", "o/b/config.json")
    server = start_server(tmp_path)
    for query in ("full=true", "full=True", "full=1", "expand=sha", "expand=author&expand=siblings", "expand%5B%5D=siblings"):
        listed = get(server, f"/api/models?{query}").json()
        assert [told["id"] for told in listed] == ["o/a", "o/b"], query
        for told in listed:
            described = get(server, f"/api/models/{told['id']}").json()
            assert (told["sha"], told["siblings"]) == (described["sha"], described["siblings"]), query
        assert {"rfilename": "model.safetensors"} in listed[0]["siblings"]
    for query in ("", "?full=false", "?expand=author"):
        told = get(server, f"/api/models{query}").json()[0]
        assert "sha" not in told and "siblings" not in told, query


def test_a_page_with_files_is_bounded(tmp_path, start_server):
    fill(tmp_path, *(f"o/m{number:03}/config.json" for number in range(120)))
    server = start_server(tmp_path)
    assert [len(page) for page in pages(server, "full=true&limit=1000")] == [100, 20]
    assert [len(page) for page in pages(server, "full=true&limit=60")] == [60, 60]


def test_a_list_with_files_has_those_that_the_client_sees(tmp_path, start_server):
    fill(tmp_path, "org/m/a.zt", "org/m/b.txt", "org/other/c.zt")
    tokens = tmp_path.parent / f"{tmp_path.name}-tokens"
    tokens.write_text(f"a read {hashlib.sha256(b'a').hexdigest()} org/m/a\n")
    server = start_server(tmp_path, "--tokens", str(tokens))
    (told,) = get(server, "/api/models?full=true", Authorization="Bearer a").json()
    assert told["id"] == "org/m" and "org/m/b.txt" not in str(told)
    assert [one["rfilename"] for one in told["siblings"]] == ["a.zt", "model.safetensors"]


# --- tags ---


def tags(server, repo):
    """In the list, which must be those of its own address."""
    (told,) = (told for told in get(server, "/api/models").json() if told["id"] == repo)
    assert told["tags"] == get(server, f"/api/models/{repo}").json()["tags"]
    return told["tags"]


def test_what_is_seen_as_safetensors_has_its_tag(tmp_path, start_server):
    fill(tmp_path, "o/zt/w.zt", "o/npz/w.npz", "o/mag/w.mag", "o/gguf/w.gguf", "o/npy/w.npy", "o/st/w.safetensors")
    server = start_server(tmp_path)
    assert tags(server, "o/zt") == ["ztensor", "safetensors"]
    assert tags(server, "o/npz") == ["safetensors", "npz"]
    assert tags(server, "o/mag") == ["safetensors", "mag"]
    assert [tags(server, f"o/{name}") for name in ("gguf", "npy", "st")] == [["gguf"], ["npy"], ["safetensors"]]
    assert ids(server, "?filter=safetensors") == ["o/mag", "o/npz", "o/st", "o/zt"]


def test_without_views_the_tags_are_those_of_the_files(tmp_path, start_server):
    fill(tmp_path, "o/zt/w.zt")
    server = start_server(tmp_path, environment={"ZTSERVE_HUB_VIEWS": "false"})
    assert tags(server, "o/zt") == ["ztensor"]
    assert ids(server, "?filter=safetensors") == []
