"""A disk that fails during an upload: the client gets an error, nothing is left, and the server keeps running."""

import errno
import random

import pytest

import interrupted
from recorded_calls import FAULTS
from s3_parts import UNIT, Upload, part_data, stored
from server_process import ServerProcess
from wire import ask, get

# The most calls of one kind in an upload; the loop ends earlier if no such call is left.
CALLS_MAX = 40
ERRORS = {
    "write": errno.ENOSPC,
    "sync": errno.EIO,
    "link": errno.EIO,
    "rename": errno.EIO,
    "copy": errno.ENOSPC,
    "truncate": errno.EIO,
}

pytestmark = [
    pytest.mark.folder("failing system calls on files"),
    pytest.mark.plain("a preloaded library makes calls fail"),
]


def start(root, fault=None, mark=None):
    environment = {"ZTSERVE_UPLOAD_RESERVE_BYTES": "0", "ZTSERVE_STATE_DIR": str(root.parent / "state")}
    if fault:
        environment |= {"LD_PRELOAD": str(FAULTS), "ZT_FAULT": fault, "ZT_FAULT_MARK": str(mark)}
    return ServerProcess(root, "--writable", environment=environment)


def drop_unfinished(server):
    for identifier in interrupted.uploads_in_progress(server):
        for path in (f"/v1/uploads/{identifier}", f"/v1/resumable/{identifier}"):
            if ask(server, "DELETE", path, {"Tus-Resumable": "1.0.0"}).status == 204:
                break


def run_with_fault(kind, fault, root, mark):
    """Returns whether the fault occurred. In any case the outcome must be all or nothing."""
    server = start(root, fault, mark)
    upload = kind("m", random.Random(7))
    upload.start(server)
    upload.join()
    assert get(server, "/healthz").status == 200, server.log
    if upload.refusal is not None and "not-durable" in upload.refusal:
        upload.is_published = True
    status = get(server, "/v1/models/m").status
    assert status == (200 if upload.is_published else 404), f"{fault}: {upload.refusal}"
    if upload.is_published:
        upload.assert_whole(server)
    else:
        assert upload.refusal is not None and any(f": {code} " in upload.refusal for code in (500, 507)), (
            f"{fault}: {upload.refusal}"
        )
    server.kill()
    return mark.stat().st_size > 0, upload


def check_after(root, upload, fault):
    """Starts the server again, on a disk that works."""
    server = start(root)
    status = get(server, "/v1/models/m").status
    assert status == (200 if upload.is_published else 404), f"{fault}, after a restart"
    if not upload.is_published:
        assert interrupted.hidden_files(root) <= interrupted.uploads_in_progress(server), fault
        upload.refusal = None
        upload.resume(server)
    upload.assert_whole(server)
    assert ask(server, "DELETE", "/v1/models/m").status == 204
    drop_unfinished(server)
    assert interrupted.hidden_files(root) == set(), fault
    assert server.stop() == 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("kind", interrupted.KINDS, ids=lambda kind: kind.__name__.lower())
def test_a_failing_call_leaves_all_or_nothing(kind, call, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for number in range(1, CALLS_MAX):
        mark = tmp_path / f"mark{number}"
        fault = f"{call}:{number}:{ERRORS[call]}"
        met, upload = run_with_fault(kind, fault, root, mark)
        check_after(root, upload, fault)
        if not met:
            return


def twice(action):
    """Only one call fails, so the second attempt succeeds."""
    try:
        return action()
    except AssertionError:
        return action()


def test_completion_that_could_not_be_recorded_is_not_taken_for_published(tmp_path):
    """The parts are joined in a file of their own, which is removed when the completion fails."""
    data = part_data(1) + b"last"
    for number in range(1, 3 * CALLS_MAX):
        root, mark = tmp_path / f"root{number}", tmp_path / f"mark{number}"
        root.mkdir()
        server = start(root, f"sync:{number}:{errno.EIO}", mark)
        upload = twice(lambda server=server: Upload(server, "a.bin"))
        twice(lambda upload=upload: upload.put(2, data[:UNIT]))
        twice(lambda upload=upload: upload.put(3, data[UNIT:]))
        assert upload.try_complete().status in (200, 500), server.log
        server.kill()
        upload.server = start(root)
        upload.complete()
        assert stored(upload.server, upload.key) == data, f"sync {number}"
        assert upload.server.stop() == 0
        if not mark.stat().st_size:
            return
    raise AssertionError("every call failed")
