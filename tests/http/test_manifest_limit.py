"""limits.manifest_bytes bounds what an opened model takes, and its manifest as JSON."""

import struct

import pytest
from neighbours import safetensors
from wire import assert_problem, eventually, get

MIB = 1 << 20


def text(value):
    return struct.pack("<Q", len(value)) + value


def gguf_of_bools(count, byte=b"\0"):
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"flags") + struct.pack("<IIQ", 9, 7, count)
    return head + byte * count


@pytest.fixture(scope="module")
def server(folder, share_server):
    (folder / "small.safetensors").write_bytes(safetensors(bytes(400)))
    (folder / "bools.gguf").write_bytes(gguf_of_bools(MIB))
    (folder / "long.gguf").write_bytes(gguf_of_bools(3 * MIB // 8))
    return share_server(folder, environment={"ZTSERVE_LIMITS_MANIFEST_BYTES": str(MIB)})


def test_a_model_that_takes_more_is_refused_and_names_the_limit(server):
    problem = assert_problem(get(server, "/v1/models/bools"), 422, "invalid-model")
    assert f"more than {MIB} bytes of memory" in problem["detail"]
    listed = {model["name"]: model for model in get(server, "/v1/models").json()["models"]}
    assert "more than" in str(listed["bools"]["error"])
    assert get(server, "/v1/models/small").status == 200


def test_a_manifest_that_is_longer_as_json_is_refused(server):
    """Each bool takes a byte in the file, and six as JSON."""
    answer = get(server, "/v1/models/long")
    assert_problem(answer, 422, "not-representable")
    assert get(server, "/v1/models/long?attributes=false").status == 200
    assert get(server, "/files/long.gguf").status == 200


@pytest.mark.folder("measures the process beside a local file")
@pytest.mark.plain("measures memory, or is traced")
def test_bools_in_arrays_take_a_few_times_their_bytes(tmp_path, start_server):
    """Twenty times before: 24 MB took 461 MiB at their peak."""
    count = 12_000_000
    (tmp_path / "m.gguf").write_bytes(gguf_of_bools(count))
    server = start_server(tmp_path)
    eventually(lambda: get(server, "/v1/models/m?attributes=false").status == 200)
    assert len(get(server, "/v1/models/m").body) > 6 * count
    peak = next(line for line in open(f"/proc/{server.process.pid}/status") if line.startswith("VmHWM"))
    assert int(peak.split()[1]) * 1024 < 100 * MIB + 12 * count
