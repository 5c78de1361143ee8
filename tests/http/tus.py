"""A client of /v1/resumable (tus 1.0.0) that can also send what a proper client does not."""

import base64
import hashlib

from uploads import files_of
from wire import ask, connect, get

TUS = {"Tus-Resumable": "1.0.0"}
PIECE = {**TUS, "Content-Type": "application/offset+octet-stream"}


def metadata(name):
    return "model " + base64.b64encode(name.encode()).decode()


def post(server, name, length, body=b"", **fields):
    fields = {key.replace("_", "-"): value for key, value in fields.items()}
    fields = {**TUS, "Upload-Metadata": metadata(name), "Upload-Length": str(length), **fields}
    return ask(server, "POST", "/v1/resumable", {key: value for key, value in fields.items() if value}, body)


def create(server, name, length, **fields):
    answer = post(server, name, length, **fields)
    assert answer.status == 201, answer
    return answer["Location"]


def head(server, upload):
    return ask(server, "HEAD", upload, TUS)


def offset_of(server, upload):
    answer = head(server, upload)
    assert answer.status == 200, answer
    return int(answer["Upload-Offset"])


def patch(server, upload, offset, body, **fields):
    fields = {key.replace("_", "-"): value for key, value in fields.items()}
    return ask(server, "PATCH", upload, {**PIECE, "Upload-Offset": str(offset), **fields}, body)


def begin_patch(server, upload, offset, length):
    connection = connect(server)
    connection.sendall(
        f"PATCH {upload} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\n"
        f"Content-Type: application/offset+octet-stream\r\nContent-Length: {length}\r\n\r\n".encode()
    )
    return connection


def uploads_of(server, name):
    return [one for one in get(server, "/v1/uploads").json()["uploads"] if one["model"] == name]


def kept_in(folder, upload):
    return [path for path in files_of(folder) if upload.split("/")[-1] in path]


def checksum(algorithm, data):
    return f"{algorithm} {base64.b64encode(hashlib.new(algorithm, data).digest()).decode()}"
