"""convert with several threads writes what one writes, and reports what one reports."""

import json
import os
import struct
import subprocess

import pytest

from containers import dense, pattern, zt1, zt2
from conversions import EXTENSIONS, convert, fails  # noqa: F401
from server_process import PROGRAM


def on_one_processor(source, out, *arguments):
    """Converts as a machine with one processor does: in one thread."""
    return subprocess.run(
        [PROGRAM, "convert", source, out, *arguments],
        capture_output=True,
        preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]),
        timeout=60,
        check=False,
    )


def in_parts(tmp_path, count=5):
    """A model over several files, with components of many blocks, small ones, empty ones and twins."""
    weight_map = {}
    for part in range(count):
        file = f"model-{part + 1:05}-of-{count:05}.safetensors"
        header, data = {}, b""
        tensors = {"large": pattern(700_001 + 4096 * part), "small": bytes([part, 1]), "empty": b"", "twin": b"t" * 300_000}
        for name, raw in tensors.items():
            place = [len(data), len(data) + len(raw)]
            header[f"{name}.{part}"] = {"dtype": "U8", "shape": [len(raw)], "data_offsets": place}
            weight_map[f"{name}.{part}"] = file
            data += raw
        text = json.dumps(header).encode()
        (tmp_path / file).write_bytes(struct.pack("<Q", len(text)) + text + data)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize("target", ["zt", "zt2", "safetensors", "npz"])
def test_threads_write_the_bytes_that_one_writes(convert, tmp_path, target):
    source = in_parts(tmp_path)
    alone = tmp_path / "alone"
    assert on_one_processor(source, alone, "--to", target).returncode == 0
    assert convert(source, "together" + EXTENSIONS[target], "--to", target).read_bytes() == alone.read_bytes()


def test_threads_write_the_parts_that_one_writes(ztserve, tmp_path):
    source = in_parts(tmp_path)
    for folder in ("alone", "together"):
        (tmp_path / folder).mkdir()
    arguments = ["--max-shard", "1MB"]
    assert on_one_processor(source, tmp_path / "alone/out.safetensors", *arguments).returncode == 0
    assert ztserve("convert", source, tmp_path / "together/out.safetensors", *arguments).status == 0
    names = sorted(os.listdir(tmp_path / "alone"))
    assert len(names) > 2
    assert sorted(os.listdir(tmp_path / "together")) == names
    for name in names:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "together" / name).read_bytes()


@pytest.mark.parametrize("target", ["zt", "zt2", "safetensors", "npz"])
@pytest.mark.parametrize("hurt", [["0"], ["7"], ["3", "6"]])
def test_threads_refuse_damage_as_one_does(fails, write, tmp_path, target, hurt):
    """Of several damaged components the first is named, whichever thread was faster."""
    whole = zt1({str(i): dense(pattern(400_000 * (8 - i)), digest="sha256") for i in range(8)})
    data = bytearray(whole)
    for name in hurt:
        data[whole.offsets[name, "data"]] ^= 1
    source = write("hurt.zt", data)
    alone = on_one_processor(source, tmp_path / "out", "--to", target)
    assert alone.returncode == 1
    assert f'"{hurt[0]}"' in alone.stderr.decode()
    assert fails(source, "--to", target) == alone.stderr.decode()


def test_the_first_failure_in_the_files_order_is_reported(fails, write):
    """The second component is found damaged while the first, which takes a thread much longer, is still being read."""
    whole = zt1({"a": dense(bytes(32 << 20), digest="sha256"), "b": dense(pattern(64), digest="sha256")})
    data = bytearray(whole)
    for name in "ab":
        data[whole.offsets[name, "data"]] ^= 1
    source = write("hurt.zt", data)
    for target in ("zt", "safetensors"):
        assert '"a"' in fails(source, "--to", target)


@pytest.mark.parametrize("target", ["zt", "zt2"])
def test_any_number_of_jobs_compresses_to_the_same_bytes(convert, write, target):
    large = bytes(range(256)) * (11 << 10) + pattern(300_000)
    # Frames hold 1 MiB; zstd gives none to a thread that is as short as the last ones of these.
    last = {f"last-{length}": dense(b"zstd" * (((1 << 20) + length) // 4)) for length in (12, 140_000, 512 << 10, 516 << 10)}
    source = write("source.zt", zt1({"a": dense(large), "b": dense(pattern(5000)), "c": dense(b"", "u8", [0]), **last}))
    made = [convert(source, f"{jobs}.zt", "--to", target, "--zstd=1", "--jobs", jobs).read_bytes() for jobs in "123"]
    assert made[0] == made[1] == made[2]
    assert len(made[0]) < len(large) // 2
