"""Requests of every kind that fail, at any call: afterwards the accounts of space and of descriptors are where they were."""

import contextlib
import errno

import pytest

import faulty
import lfs
import tus
import writers
import xet
from containers import dense, pattern, zt1
from recorded_calls import FAULTS
from small_disk import small_disk
from uploads import put
from wire import ask, connect, eventually, model_path, read_head

MIB = 1 << 20
CALLS_MAX = 120
# Bodies that may arrive at once: see test_upload_descriptors.py.
FEW, BODIES = 96, 6

pytestmark = [
    pytest.mark.folder("mounts a small disk for the root, and makes calls fail"),
    pytest.mark.plain("a preloaded library makes calls fail"),
]


def start(root, control):
    environment = {
        "LD_PRELOAD": str(FAULTS),
        "ZT_FAULT_CONTROL": str(control.path),
        "ZTSERVE_UPLOAD_RESERVE_BYTES": "0",
        "ZTSERVE_HUB_PART_BYTES": str(MIB),
        "ZTSERVE_STATE_DIR": str(root.parent / "state"),
        "ZTSERVE_UPLOAD_OPEN_PER_CLIENT": "0",
        "ZTSERVE_UPLOAD_SESSIONS_PER_CLIENT": "0",
        "ZTSERVE_HUB_STAGED_PER_CLIENT": "0",
    }
    return faulty.ServerProcess(
        root, "--writable", "--threads", "1", environment=environment, launcher=("prlimit", f"--nofile={FEW}:{FEW}")
    )


def body(number, length=MIB):
    return bytes(zt1({"w": dense(pattern(length, seed=number))}))


def chunked(content):
    return (content[at : at + 300_000] for at in range(0, len(content), 300_000))


class Put:
    def __init__(self, server, number):
        self.server, self.number, self.content = server, number, body(number)
        self.name = f"m{number}"
        self.prepare()

    def prepare(self):
        pass

    def attempt(self):
        return put(self.server, self.name, self.content)

    def forget(self):
        pass


class PutChunked(Put):
    def attempt(self):
        return ask(self.server, "PUT", model_path(self.name), {"Transfer-Encoding": "chunked"}, chunked(self.content))


class PutPath(Put):
    def attempt(self):
        return ask(self.server, "PUT", f"/files/{self.name}.txt", {}, self.content)


class TusCreate(Put):
    def attempt(self):
        return tus.post(self.server, self.name, len(self.content), self.content, Content_Type="application/offset+octet-stream")


class TusPiece(Put):
    fields = {}

    def prepare(self):
        self.upload = tus.create(self.server, self.name, len(self.content))

    def attempt(self):
        return tus.patch(self.server, self.upload, 0, self.content[:-10], **self.fields)

    def forget(self):
        ask(self.server, "DELETE", self.upload, tus.TUS)


class TusLastPiece(TusPiece):
    def attempt(self):
        return tus.patch(self.server, self.upload, 0, self.content)


class TusCheckedPiece(TusPiece):
    def attempt(self):
        return tus.patch(self.server, self.upload, 0, self.content[:-10], Upload_Checksum=tus.checksum("sha1", self.content[:-10]))


class TusJoined(Put):
    def prepare(self):
        self.parts = []
        for part in (self.content[:300], self.content[300:]):
            answer = tus.post(self.server, "", len(part), part, Upload_Concat="partial", Upload_Metadata=None,
                              Content_Type="application/offset+octet-stream")  # fmt: skip
            self.parts.append(answer["Location"])

    def attempt(self):
        return tus.post(self.server, self.name, None, Upload_Concat="final;" + " ".join(self.parts), Upload_Length=None)

    def forget(self):
        for part in self.parts:
            ask(self.server, "DELETE", part, tus.TUS)


class Object(Put):
    def prepare(self):
        self.target = lfs.address(self.server, self.content, transfers=["basic"])

    def attempt(self):
        return lfs.put(self.server, self.target, self.content)


class ObjectInParts(Put):
    def prepare(self):
        (told,) = lfs.objects_of(lfs.batch(self.server, lfs.entry(self.content)))
        self.told = told["actions"]["upload"]
        self.count = -(-len(self.content) // MIB)

    def attempt(self):
        for part in range(1, self.count + 1):
            href = lfs.target_of(self.told["header"][f"{part:05}"])
            answer = lfs.put(self.server, href, self.content[MIB * (part - 1) : MIB * part])
            if answer.status != 200:
                return answer
        parts = [{"partNumber": part, "etag": f'"{part}"'} for part in range(1, self.count + 1)]
        return lfs.post(self.server, lfs.target_of(self.told["href"]), {"oid": lfs.oid_of(self.content), "parts": parts})


class CommitTwice(Put):
    def prepare(self):
        lfs.stage(self.server, self.content)

    def attempt(self):
        return lfs.commit(self.server, *(lfs.lfs_file(f"{self.name}-{at}.zt", self.content) for at in range(2)))


class CommitInline(Put):
    def attempt(self):
        return lfs.commit(self.server, lfs.inline(f"{self.name}.bin", self.content))


class Xorb(Put):
    def prepare(self):
        self.session = xet.Session(self.server, lfs.REPO)
        self.xorb, self.entry = xet.whole(self.content)

    def attempt(self):
        return self.session.send(self.xorb)


class Shard(Xorb):
    def prepare(self):
        super().prepare()
        self.session.send(self.xorb)

    def attempt(self):
        return self.session.describe(xet.shard(self.entry))


class Writer(Put):
    def prepare(self):
        self.upload = writers.begin(self.server, self.name)

    def attempt(self):
        return self.upload.put("w", self.content)

    def forget(self):
        self.upload.delete()


class WriterCommit(Writer):
    def prepare(self):
        super().prepare()
        self.upload.put("w", self.content)
        self.upload.put("w", self.content)

    def attempt(self):
        return self.upload.commit()


KINDS = [
    Put, PutChunked, PutPath, TusCreate, TusPiece, TusLastPiece, TusCheckedPiece, TusJoined, Object, ObjectInParts, CommitTwice,
    CommitInline, Xorb, Shard, Writer, WriterCommit,
]  # fmt: skip


def is_all_space_free(server, disk):
    """Whether a body of all that the disk has is let begin."""
    length = disk.free() - MIB // 2
    with connect(server) as connection:
        head = f"PUT {model_path('all')} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(head.encode())
        return read_head(connection)[0] == 100


def fit_all_bodies(server):
    """Whether as many bodies as there may be are let begin."""
    with contextlib.ExitStack() as stack:
        bodies = [stack.enter_context(connect(server)) for _ in range(BODIES)]
        for at, one in enumerate(bodies):
            head = f"PUT {model_path(f'b{at}')} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
            one.sendall(head.encode())
        return all(read_head(one)[0] == 100 for one in bodies)


def attempt(kind, server, control, number, error):
    """Whether the request failed, and the kind of its call that did."""
    publication = kind(server, 2 * number + (error == errno.EMFILE))
    control.fail(number, error)
    try:
        failed = publication.attempt().status >= 400
    except ConnectionError:
        # Refused before the end of the body.
        failed = True
    met = control.rest()
    publication.forget()
    return failed, met


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_failed_holds_neither_space_nor_descriptors(kind, tmp_path):
    control = faulty.Control(tmp_path / "control")
    with small_disk(tmp_path / "disk", 1000 * MIB) as disk:
        server = start(disk.path, control)
        xet.create(server, lfs.REPO)
        first = kind(server, 1000)
        first.attempt()
        first.forget()
        failed = 0
        for number in range(1, CALLS_MAX):
            one, met = attempt(kind, server, control, number, errno.ENOSPC)
            failed += one
            if met is None:
                break
            if met in ("open", "duplicate"):
                failed += attempt(kind, server, control, number, errno.EMFILE)[0]
        assert failed > 3 and met is None, (failed, met)
        eventually(lambda: is_all_space_free(server, disk))
        # The connections before this are let go a moment after they were closed.
        eventually(lambda: fit_all_bodies(server))
        assert server.stop() == 0, server.log


def test_a_part_that_could_not_be_written_keeps_no_space(tmp_path):
    control = faulty.Control(tmp_path / "control")
    with small_disk(tmp_path / "disk", 100 * MIB) as disk:
        server = start(disk.path, control)
        xet.create(server, lfs.REPO)
        written = 0
        for number in range(1, CALLS_MAX):
            failed, met = attempt(ObjectInParts, server, control, number, errno.EIO)
            written += failed and met == "write"
            if met == "sync":
                break
        assert written > 0
        eventually(lambda: is_all_space_free(server, disk))
        assert server.stop() == 0, server.log
