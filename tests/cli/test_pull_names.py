"""What pull calls a file where the URL or -o leave a doubt."""

import functools
import http.server
import threading

import pytest
from containers import dense, pattern, zt1

MODEL = zt1({"a": dense(pattern(5000, seed=25), digest="sha256")})


@pytest.fixture
def server(start_server, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/m.zt").write_bytes(MODEL)
    return start_server(tmp_path / "root")


def test_a_folder_that_is_not_there_is_said_to_be_absent(refused, server, here):
    assert "there is no such folder" in refused("pull", server.url + "/m", "-o", "newdir/", folder=here)
    assert list(here.iterdir()) == []


def test_a_file_that_would_be_hidden_needs_a_name(refused, here):
    folder = here / "served"
    folder.mkdir()
    (folder / ".m.zt").write_bytes(MODEL)
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder))
    threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{serving.server_address[1]}/.m.zt"
    assert "would be hidden" in refused("pull", url, folder=here)
    serving.shutdown()
    serving.server_close()
    assert [path.name for path in here.iterdir()] == ["served"]
