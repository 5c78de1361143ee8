"""convert: the file that it writes, whatever happens meanwhile."""

import json
import os
import pty
import re
import resource
import select
import signal
import stat
import struct
import subprocess
import time
from pathlib import Path

import pytest

from containers import dense, pattern, zt1
from conversions import WEIGHTS, PLAIN, SUMMARY, convert  # noqa: F401
from server_process import PROGRAM


def test_a_failure_leaves_the_older_file(ztserve, write):
    source = write("hurt.zt", zt1({"hurt": dense(pattern(50))}).flipped("hurt"))
    out = write("out.zt", b"older")
    assert ztserve("convert", source, out).status == 1
    assert out.read_bytes() == b"older"


def test_an_older_file_is_replaced_and_a_link_followed(convert, write, tmp_path):
    source = write("a.zt", zt1(PLAIN))
    real = write("real.zt", b"older")
    (tmp_path / "link.zt").symlink_to(real)
    convert(source, "link.zt")
    assert (tmp_path / "link.zt").is_symlink()
    assert real.read_bytes() != b"older"


def test_a_file_can_be_converted_onto_itself(convert, write):
    source = write("a.zt", zt1(PLAIN))
    convert(source, "a.zt", "--to", "zt2")


def test_the_umask_holds(convert, write):
    before = os.umask(0o027)
    try:
        out = convert(write("a.zt", zt1(PLAIN)), "out.zt")
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def test_a_file_that_is_not_regular_is_not_replaced(ztserve, write, tmp_path):
    source = write("a.zt", zt1(PLAIN))
    for out in (tmp_path, "/dev/null"):
        result = ztserve("convert", source, out, "--to", "zt")
        assert result.status == 1
        assert len(result.error_lines) == 1
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_missing_folder(ztserve, write, tmp_path):
    result = ztserve("convert", write("a.zt", zt1(PLAIN)), tmp_path / "missing" / "out.zt")
    assert result.status == 1
    assert "out.zt" in result.errors


def test_a_full_disk_leaves_nothing(write, tmp_path):
    """A limit on the size of files stands for the disk."""
    source = write("a.zt", zt1({"x": dense(pattern(1 << 20))}))
    limit = 1 << 19
    result = subprocess.run(
        [PROGRAM, "convert", source, tmp_path / "out.zt"],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert b"out.zt" in result.stderr
    assert os.listdir(tmp_path) == ["a.zt"]


def make_large(tmp_path, size):
    path = tmp_path / "large.safetensors"
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return path


def catches(process, number):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"SigCgt:\s+(\w+)", status)[1], 16) >> (number - 1) & 1


def processor_s(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_signal_leaves_nothing(tmp_path):
    source = make_large(tmp_path, 1 << 30)
    process = subprocess.Popen(
        [PROGRAM, "convert", source, tmp_path / "out.zt", "--zstd=22"], stderr=subprocess.PIPE, text=True
    )
    # In the middle of it: it has computed for a while.
    while not catches(process, signal.SIGTERM) or processor_s(process) < 0.3:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert os.listdir(tmp_path) == ["large.safetensors"]


def test_progress_for_programs_is_one_object_a_line(ztserve, tmp_path):
    path = tmp_path / "a.zt"
    path.write_bytes(zt1({"w": dense(pattern(1000))}))
    result = ztserve("convert", path, tmp_path / "b.safetensors", "--progress", "json")
    assert result.status == 0
    last = [json.loads(line) for line in result.error_lines][-1]
    assert (last["event"], last["operation"], last["name"], last["bytes"]) == ("end", "converting", str(path), 1000)
    assert result.output.startswith(f"{tmp_path}/b.safetensors: 1 object, 1000 bytes, ")
    assert ztserve("convert", path, tmp_path / "b.safetensors").output == ""


def test_progress_is_shown_on_a_terminal_only(tmp_path):
    source = make_large(tmp_path, 1 << 26)
    leader, follower = pty.openpty()
    process = subprocess.Popen([PROGRAM, "convert", source, tmp_path / "out.zt", "--zstd=12"], stderr=follower)
    os.close(follower)
    shown = b""
    while process.poll() is None or select.select([leader], [], [], 0)[0]:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                shown += os.read(leader, 4096)
            except OSError:
                break
    os.close(leader)
    assert process.wait() == 0
    progress, _, summary = shown.rpartition(b"\r\x1b[K")
    assert not progress or b"\rconverting " in progress
    assert b"\n" not in progress
    assert re.fullmatch(rf".*/out.zt: {SUMMARY}\r\n", summary.decode())


def peak_kib(process):
    """The peak memory of a running process."""
    peak = 0
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            peak = max([peak, *(int(line.split()[1]) for line in status if line.startswith("VmHWM"))])
        time.sleep(0.01)
    return peak


@pytest.mark.plain("measures memory")
@pytest.mark.parametrize("target", ["zt2", "npz", "zt"])
def test_memory_does_not_follow_the_size(tmp_path, target):
    process = subprocess.Popen([PROGRAM, "convert", make_large(tmp_path, 1 << 28), tmp_path / "out", "--to", target])
    peak = peak_kib(process)
    assert process.returncode == 0
    assert peak < 64 << 10


def test_a_replaced_file_is_called_replaced(ztserve, write, tmp_path):
    source, out = write("a.zt", zt1({"w": dense(WEIGHTS)})), tmp_path / "out.zt"
    assert ztserve("convert", source, out).errors.endswith(" seconds\n")
    assert ztserve("convert", source, out).errors.endswith(" seconds, replaced\n")


def test_no_clobber_leaves_a_file_as_it_is(ztserve, write, tmp_path):
    source, out = write("a.zt", zt1({"w": dense(WEIGHTS)})), write("out.zt", b"older")
    result = ztserve("convert", "--no-clobber", source, out)
    assert (result.status, result.errors) == (1, f"ztserve: {out}: it exists, and --no-clobber is set\n")
    assert out.read_bytes() == b"older"
    assert ztserve("convert", "--no-clobber", source, tmp_path / "new.zt").status == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.zt", "out.zt", "new.zt"}


def test_no_clobber_leaves_parts_as_they_are(ztserve, write, tmp_path):
    source = write("a.zt", zt1({"v": dense(WEIGHTS), "w": dense(WEIGHTS)}))
    arguments = ["convert", "--no-clobber", "--max-shard", "30", source, tmp_path / "m.safetensors"]
    write("m-00002-of-00002.safetensors", b"older")
    result = ztserve(*arguments)
    assert result.status == 1
    assert "m-00002-of-00002.safetensors: it exists" in result.errors
    assert {path.name for path in tmp_path.iterdir()} == {"a.zt", "m-00002-of-00002.safetensors"}
    (tmp_path / "m-00002-of-00002.safetensors").unlink()
    assert ztserve(*arguments).status == 0


def test_quiet_says_nothing(ztserve, write, tmp_path):
    source = write("a.zt", zt1({"w": dense(WEIGHTS)}, attributes={"a": 1}))
    result = ztserve("convert", "-q", source, tmp_path / "out.safetensors")
    assert (result.status, result.output, result.errors) == (0, "", "")
