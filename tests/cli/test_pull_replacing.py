"""A server chooses no file that pull replaces: its names must be those of tensor files, and only tensor files are replaced."""

import functools
import http.server
import io
import json
import threading
import zipfile

import joined
import pytest
from containers import dense, pattern, zt1

MODEL = zt1({"a": dense(pattern(5000, seed=25), digest="sha256")})
OLDER = zt1({"a": dense(pattern(900, seed=26), digest="sha256")})
MINE = b"all:\n\tcc -o mine mine.c\n"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for each path what a server of models might; a manifest names any file."""

    def do_GET(self):  # noqa: N802
        data = self.server.answers.get(self.path.split("?")[0])
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data or b"")

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def answers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers = {}
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    server.answers["url"] = f"http://127.0.0.1:{server.server_address[1]}"
    yield server.answers
    server.shutdown()
    server.server_close()


@pytest.fixture
def pull(ztserve, here):
    return functools.partial(ztserve, "pull", folder=here)


def name_file(answers, name, data=MODEL, href=None):
    """The model's file, as its manifest names it."""
    href = href or f"/files/{name}"
    answers["/v1/models/m"] = json.dumps({"name": "m", "source": {"href": href}, "objects": {}}).encode()
    answers[href] = data
    return answers["url"] + "/v1/models/m"


def serve_index(answers, part, data=MODEL):
    answers["/files/m.safetensors.index.json"] = json.dumps({"weight_map": {"a": part}}).encode()
    answers[f"/files/{part}"] = data
    return answers["url"] + "/files/m.safetensors.index.json"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["Makefile", "run.sh", "id_rsa", "notes.txt", "zt", "a.zt.sh", "config.json", "a.index.json"])
def test_file_name_from_the_server_must_be_that_of_a_tensor_file(answers, pull, here, name):
    url = name_file(answers, name)
    for before in ({}, {name: MINE}, {name: OLDER}):
        for present, data in before.items():
            (here / present).write_bytes(data)
        result = pull(url)
        assert result.status == 1 and name in result.errors and "--force" in result.errors
        assert files(here) == before


@pytest.mark.parametrize("name", ["Makefile", "run.sh", "a.zt.sh", "tokenizer.json"])
def test_name_of_a_part_must_be_that_of_a_tensor_file(answers, pull, here, name):
    url = serve_index(answers, name)
    (here / name).write_bytes(MINE)
    result = pull(url)
    assert result.status == 1 and name in result.errors
    assert files(here) == {name: MINE}


@pytest.mark.parametrize("part", ["../m.safetensors", "sub/../../m.safetensors", "/etc/m.safetensors", ".m.safetensors", "..", "",
                                  ".git/m.safetensors", "sub/.m.safetensors", "a\nb.safetensors"])
def test_name_of_a_part_is_that_of_a_file_below_the_index(answers, pull, here, part):
    url = serve_index(answers, part)
    for options in ([], ["--force"]):
        assert pull(url, *options).status == 1
        assert files(here) == {}


def test_part_in_a_subfolder_replaces_no_other_file_and_follows_no_link(answers, pull, here, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    url = serve_index(answers, "sub/m.safetensors", joined.safetensors({"a": pattern(400)}))
    (here / "sub").symlink_to(elsewhere)
    assert pull(url).status == 1 and pull(url, "--force").status == 1
    assert not list(elsewhere.iterdir())
    (here / "sub").unlink()
    (here / "sub").mkdir()
    (here / "sub" / "m.safetensors").write_bytes(MINE)
    assert pull(url).status == 1 and files(here / "sub") == {"m.safetensors": MINE}


@pytest.mark.parametrize("href", ["/files/..%2Fm.zt", "/files/%2Fetc%2Fm.zt", "/files/..", "/files/a%0Ab.zt", "/files/"])
def test_name_of_a_file_has_no_folders(answers, pull, here, href):
    url = name_file(answers, None, href=href)
    for options in ([], ["--force"]):
        assert pull(url, *options).status != 0
        assert files(here) == {}


@pytest.mark.parametrize("name", ["m.zt", "m.bin", "model.pt", "m.SAFETENSORS", "m.npy"])
def test_file_that_is_no_tensor_file_is_not_replaced(answers, pull, here, name):
    url = name_file(answers, name)
    (here / name).write_bytes(MINE)
    result = pull(url)
    assert result.status == 1 and name in result.errors and "--force" in result.errors
    assert files(here) == {name: MINE}
    assert pull(url, "--force").status == 0
    assert files(here) == {name: MODEL}


def test_part_replaces_no_other_file(answers, pull, here):
    part = joined.safetensors({"a": pattern(400)})
    url = serve_index(answers, "weights.bin", part)
    (here / "weights.bin").write_bytes(MINE)
    result = pull(url)
    assert result.status == 1 and "weights.bin" in result.errors
    assert files(here) == {"weights.bin": MINE}
    assert pull(url, "--force").status == 0
    assert (here / "weights.bin").read_bytes() == part


def test_index_replaces_no_other_file(answers, pull, here):
    url = serve_index(answers, "weights.bin", joined.safetensors({"a": pattern(400)}))
    name = "m.safetensors.index.json"
    (here / name).write_bytes(b'{"of": "another program"}')
    assert pull(url).status == 1
    assert (here / name).read_bytes() == b'{"of": "another program"}'
    (here / name).write_bytes(b'{"weight_map": {"b": "older.bin"}}')
    assert pull(url).status == 0


@pytest.mark.parametrize("before", [OLDER, MODEL[:-100], MODEL[:100], b"", bytes(100_000), joined.safetensors({"a": b"1234"}),
                                    joined.safetensors({"a": b"1234"})[:-1], b"GGUF",
                                    b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 4\n"],
                         ids=["older", "cut", "head", "empty", "zeros", "safetensors", "cut-safetensors", "magic", "pointer"])
def test_tensor_file_is_replaced_also_if_it_is_damaged(answers, pull, here, before):
    url = name_file(answers, "m.zt")
    (here / "m.zt").write_bytes(before)
    result = pull(url)
    assert result.status == 0, result.errors
    assert files(here) == {"m.zt": MODEL}


def archive(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            made.writestr(name, b"mine")
    return file.getvalue()


@pytest.mark.parametrize("name", ["backup.bin", "backup.pt", "backup.npz", "backup.ckpt"])
@pytest.mark.parametrize("before", [archive("notes.txt"), archive("word/document.xml", "[Content_Types].xml"), archive("model.weights.h5"),
                                    archive("archive_format"), b"\x89HDF\r\n\x1a\n" + bytes(600)],
                         ids=["archive", "document", "keras", "pt2", "hdf5"])
def test_archive_without_tensors_is_kept(answers, pull, here, name, before):
    url = name_file(answers, name)
    (here / name).write_bytes(before)
    result = pull(url)
    assert result.status == 1 and name in result.errors and "--force" in result.errors
    assert files(here) == {name: before}
    assert pull(url, "--force").status == 0 and files(here) == {name: MODEL}


@pytest.mark.parametrize("before", [bytes(100_000) + b"1", b"<html>", b'{"a": 1}', b"\x80\x04K\x01."], ids=["end", "page", "json", "pickle"])
def test_content_of_no_known_format_is_kept(answers, pull, here, before):
    url = name_file(answers, "m.zt")
    (here / "m.zt").write_bytes(before)
    assert pull(url).status == 1 and files(here) == {"m.zt": before}


def test_path_that_a_person_names_is_kept_too_if_it_is_no_tensor_file(answers, pull, here):
    url = name_file(answers, "Makefile")
    (here / "Makefile").write_bytes(MINE)
    assert pull(url, "-o", "Makefile").status == 1 and files(here) == {"Makefile": MINE}
    assert pull(url, "-o", "copy").status == 0
    assert files(here) == {"Makefile": MINE, "copy": MODEL}
    assert pull(url, "-o", "Makefile", "--force").status == 0


def test_url_of_a_file_gives_it_any_name(answers, pull, here):
    answers["/files/weights"] = MODEL
    assert pull(answers["url"] + "/files/weights").status == 0
    assert files(here) == {"weights": MODEL}

def test_file_that_would_be_hidden_needs_a_name(answers, refused, here):
    answers["/.m.zt"] = MODEL
    assert "would be hidden" in refused("pull", answers["url"] + "/.m.zt", folder=here)
    assert files(here) == {}
