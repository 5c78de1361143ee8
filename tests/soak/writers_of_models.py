"""Writers: each publishes a next version of a model in one way, and knows from the answer whether it is there."""

import os
import random
import time

import tus
from containers import zstd_frame
from readers import BUSY, Mismatch, require
from uploads import put
from versions import arrays, file_extension, file_of
from wire import ask, get, model_path
from writers import JSON, Upload, create

# Changes of files are noticed without a signal.
NOTICED_S = 30


class Refused(Exception):
    """The server is busy or just has no room: nothing was published."""


def accept(answer, *statuses):
    if answer.status in BUSY:
        raise Refused
    require(answer.status in statuses, answer)
    return answer


def put_whole(server, model, version, kind):
    accept(put(server, model, file_of(model, version, kind)), 201, 204)


def replace_tagged(server, model, version, kind):
    """Replaces exactly the version that is there; a wrong tag must not."""
    answer = get(server, model_path(model))
    if answer.status != 200:
        return put_whole(server, model, version, kind)
    accept(put(server, model, file_of(model, version, kind), If_Match='"other"'), 412)
    accept(put(server, model, file_of(model, version, kind), If_Match=answer["ETag"]), 204)
    return None


def write_components(server, model, version, kind):
    """The streaming writer; `z` is compressed by the server or by the client."""
    answer = accept(create(server, model, "2" if kind == "zt2" else None), 201)
    upload = Upload(server, answer)
    for name, array in arrays(model, version).items():
        fields, query, data = {}, {}, array.tobytes()
        if name == "z" and random.random() < 0.5:
            query = {"encoding": "zstd"}
        elif name == "z":
            fields, data = {"Content-Encoding": "zstd"}, zstd_frame(data)
        shape = ",".join(str(size) for size in array.shape)
        accept(upload.put(name, data, fields=fields, dtype="u64", shape=shape, **query), 201)
    accept(upload.commit(), 201)


def resume(server, model, version, kind):
    """tus, in pieces, one of them sent at a wrong place first."""
    body = file_of(model, version, kind)
    location = accept(tus.post(server, model, len(body)), 201)["Location"]
    cuts = sorted({0, len(body), *(random.randrange(len(body)) for _ in range(3))})
    for begin, end in zip(cuts, cuts[1:]):
        accept(tus.patch(server, location, begin + 1, body[begin:end]), 409)
        accept(tus.patch(server, location, begin, body[begin:end]), 204)


def abandon(server, model, version, _):
    """An upload that is begun, filled and given up leaves nothing."""
    upload = Upload(server, accept(create(server, model), 201))
    accept(upload.put("w", arrays(model, version)["w"].tobytes(), dtype="u64", shape="96,256"), 201)
    if random.random() < 0.7:
        accept(upload.delete(), 204)
    raise Refused


def send_damaged(server, model, version, kind):
    """A file with a wrong byte is refused, and the version before stays."""
    body = bytearray(file_of(model, version, kind))
    body[len(body) // 3] ^= 1
    accept(put(server, model, bytes(body)), 422)
    raise Refused


WAYS = [put_whole, replace_tagged, write_components, resume, abandon, send_damaged]


def has_version(server, model, version):
    answer = get(server, model_path(model))
    if version is None:
        return answer.status == 404
    return answer.status == 200 and f"v{version}" in answer.json()["objects"]


class Writer:
    """Publishes over HTTP; models named here are only changed so."""

    def __init__(self, soak, histories):
        self.soak = soak
        self.histories = histories

    def step(self):
        history = random.choice(self.histories)
        with history.writing:
            if random.random() < 0.1:
                self.publish(history, None, self.delete, None)
            else:
                way = random.choice(WAYS)
                kind = random.choice(("zt1", "zt2"))
                self.publish(history, history.next_version(), way, kind)

    def publish(self, history, version, way, kind):
        history.begin(version)
        try:
            way(self.soak.server, history.model, version, kind)
        except Refused:
            history.withdraw()
            self.soak.count("refused")
            self.check_current(history)
            return
        history.acknowledge()
        self.soak.count("written" if version is not None else "deleted")
        self.check_current(history)

    def delete(self, server, model, *_):
        accept(ask(server, "DELETE", model_path(model)), 204, 404)

    def check_current(self, history):
        """What was acknowledged is what everybody sees from now on."""
        answer = get(self.soak.server, model_path(history.model))
        if answer.status not in BUSY and not has_version(self.soak.server, history.model, history.current):
            raise Mismatch(history.model, "is not the acknowledged version", history.current, answer)

    def close(self):
        pass


class FileWriter:
    """Renames files into the folder and removes them, as a person or a synchronisation does."""

    def __init__(self, soak, histories):
        self.soak = soak
        self.histories = histories

    def step(self):
        history = random.choice(self.histories)
        with history.writing:
            version = history.next_version() if random.random() < 0.85 else None
            history.begin(version)
            self.change(history.model, version)
            self.await_notice(history.model, version)
            history.acknowledge()
        self.soak.count("renamed")
        time.sleep(0.1)

    def change(self, model, version):
        path = self.soak.root / f"{model}.{file_extension(model)}"
        if version is None:
            path.unlink(missing_ok=True)
            return
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(file_of(model, version, path.suffix[1:]))
        os.replace(hidden, path)

    def await_notice(self, model, version):
        deadline = time.monotonic() + NOTICED_S
        while not has_version(self.soak.server, model, version):
            require(time.monotonic() < deadline, model, "was changed to", version, "which was not noticed")
            time.sleep(0.05)

    def close(self):
        pass
