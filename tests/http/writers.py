"""Shared by the tests of the streaming writer: an upload as a client sees it, and its files on disk."""

import base64
import hashlib
import json
import subprocess
from urllib.parse import urlencode

from server_process import PROGRAM
from uploads import files_of
from wire import ask, component_path, get, model_path, segment

JSON = {"Content-Type": "application/json"}


class Upload:
    """An upload that was begun; its requests."""

    def __init__(self, server, answer):
        self.server = server
        self.path = answer["Location"]
        self.id = self.path.rsplit("/", 1)[1]

    def at(self, server):
        """The same upload at another start of the server."""
        self.server = server
        return self

    def object_path(self, name):
        return f"{self.path}/objects/{segment(name)}"

    def component_path(self, name, role="data", **query):
        return f"{self.object_path(name)}/{segment(role)}?{urlencode(query, safe=',:')}"

    def declare(self, name, **declaration):
        return ask(self.server, "PUT", self.object_path(name), JSON, json.dumps(declaration).encode())

    def put(self, name, data, role="data", fields=None, dtype="u8", shape=None, **query):
        query = {"dtype": dtype, "shape": len(data) if shape is None else shape, **query}
        return ask(self.server, "PUT", self.component_path(name, role, **query), fields, data)

    def status(self):
        answer = get(self.server, self.path)
        assert answer.status == 200, answer
        return answer.json()

    def commit(self, **fields):
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        return ask(self.server, "POST", f"{self.path}/commit", fields)

    def delete(self):
        return ask(self.server, "DELETE", self.path)


def create(server, model, version=None, attributes=None, **fields):
    body = {"version": version, "attributes": attributes}
    body = {name: value for name, value in body.items() if value is not None}
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return ask(server, "POST", f"{model_path(model)}/uploads", {**JSON, **fields}, json.dumps(body).encode())


def begin(server, model, version=None, **options):
    answer = create(server, model, version, **options)
    assert answer.status == 201, answer
    return Upload(server, answer)


def assert_clean(folder, model):
    """What was published is whole, all its digests are right, and nothing is in it that nobody asked for."""
    checked = subprocess.run([PROGRAM, "verify", folder / f"{model}.zt"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked
    assert "unreferenced" not in checked.stdout and "padding" not in checked.stdout, checked.stdout
    return (folder / f"{model}.zt").read_bytes()


def leftovers(folder):
    """Files of uploads that the server still keeps."""
    return [path for path in files_of(folder) if path.startswith(".ztserve-")]


def repr_digest(data):
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def content(server, model, name, role="data"):
    answer = get(server, component_path(model, name, role))
    assert answer.status == 200, answer
    return answer.body


def assert_committed(server, folder, upload, model, contents):
    """Commits, and reads everything back: by name, or by (name, role)."""
    answer = upload.commit()
    assert answer.status == 201, answer
    whole = assert_clean(folder, model)
    assert answer["Location"] == model_path(model)
    assert answer["ETag"] == get(server, model_path(model))["ETag"]
    assert answer["Repr-Digest"] == repr_digest(whole)
    for name, data in contents.items():
        name = name if isinstance(name, tuple) else (name, "data")
        assert content(server, model, *name) == data
    return whole
