"""The real packages read models that the streaming writer published."""

import hashlib

import pytest
import requests

from environments import read_with

RELEASES = {"1.2.0": ["1.2.3"], "2": ["2.1.2"]}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("encoding", ["raw", "zstd"])
def test_packages_read_streamed_models(tmp_path, start_server, version, encoding):
    server = start_server(tmp_path, "--writable")
    answer = requests.post(f"{server.url}/v1/models/m/uploads", json={"version": version, "attributes": {"a": "b"}})
    assert answer.status_code == 201, answer.text
    upload = server.url + answer.headers["Location"]
    expected = {}
    for name, dtype, shape, width in (("z", "f32", (40, 50), 4), ("a", "i64", (3,), 8), ("m.w", "f16", (2, 2, 100), 2)):
        count = 1
        for extent in shape:
            count *= extent
        data = bytes(range(7)) * (count * width)
        data = data[: count * width]
        query = {"dtype": dtype, "shape": ",".join(map(str, shape)), "encoding": encoding}
        answer = requests.put(f"{upload}/objects/{name}/data", params=query, data=data)
        assert answer.status_code == 201, answer.text
        expected[name] = hashlib.sha256(data).hexdigest()
    assert requests.post(f"{upload}/commit").status_code == 201
    for release in RELEASES[version]:
        assert read_with(release, tmp_path / "m.zt") == expected
