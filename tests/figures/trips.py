"""What path.py measures: for each kind a function that makes so many requests, or runs a command, with an instrumented program."""

import base64
import hashlib
import http.client
import json
import struct
import sys
import types
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "http")]

DATA_BYTES = 1 << 20
ANSWER_S = 60
WARMING, MANY = 20, 220  # what is done once is done within the first requests
MODEL = "m"


def safetensors(number=0):
    """A file of one tensor of 1 MiB, different for each number."""
    head = json.dumps({"w": {"dtype": "U8", "shape": [DATA_BYTES], "data_offsets": [0, DATA_BYTES]}}).encode()
    content = struct.pack("<Q", number) + bytes(range(256)) * (DATA_BYTES // 256)
    return struct.pack("<Q", len(head)) + head + content[:DATA_BYTES]


class Client:
    """One kept connection; each answer must have one of the statuses expected."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)

    def ask(self, method, target, body=None, *, expected=(200, 201, 204), **fields):
        self.connection.request(method, target, body, {name.replace("_", "-"): value for name, value in fields.items()})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status not in expected:
            raise RuntimeError(f"{method} {target} returned {answer.status}: {content[:300]}")
        return answer, content

    def send(self, method, target, value, kind="application/json"):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask(method, target, body, Content_Type=kind)


def make_root(program):
    """A root with one zTensor 1.2 file of one component of 1 MiB, with its digest."""
    root, source = program.scratch / "root", program.scratch / "m.safetensors"
    root.mkdir()
    source.write_bytes(safetensors())
    uncounted = types.SimpleNamespace(**vars(program))
    uncounted.environment = program.environment | {"GCOV_PREFIX": str(program.scratch / "uncounted")}
    type(program).run(uncounted, "convert", source, root / "m.zt")
    return root


def over_http(ask):
    """A trip that calls ask(client, number) for each request."""

    def trip(program, requests, end):
        server, port = program.serve("--root", make_root(program), "--writable")
        try:
            client = Client(port)
            for number in range(requests):
                ask(client, number)
        finally:
            end(server)

    return trip


def get_component(client, number):
    client.ask("GET", f"/v1/models/{MODEL}/objects/w/data")


def get_manifest(client, number):
    client.ask("GET", f"/v1/models/{MODEL}")


def put_model(client, number):
    client.ask("PUT", f"/v1/models/new-{number}", safetensors(number))


def patch_twice(client, number):
    content = safetensors(number)
    half = len(content) // 2
    name = base64.b64encode(f"tus-{number}".encode()).decode()
    fields = {"Tus_Resumable": "1.0.0"}
    answer, _ = client.ask("POST", "/v1/resumable", **fields, Upload_Length=str(len(content)), Upload_Metadata=f"model {name}")
    for offset, part in ((0, content[:half]), (half, content[half:])):
        client.ask("PATCH", answer.getheader("Location"), part, **fields, Upload_Offset=str(offset), Content_Type="application/offset+octet-stream")


def commit_writer(client, number):
    answer, _ = client.send("POST", f"/v1/models/written-{number}/uploads", {})
    client.ask("PUT", f"{answer.getheader('Location')}/objects/w/data?dtype=u8&shape={DATA_BYTES}", safetensors(number)[:DATA_BYTES])
    client.ask("POST", f"{answer.getheader('Location')}/commit")


def commit_to_hub(client, number):
    content = safetensors(number)
    value = {"path": f"m-{number}.safetensors", "content": base64.b64encode(content).decode(), "encoding": "base64"}
    lines = ({"key": "header", "value": {"summary": "s"}}, {"key": "file", "value": value})
    client.send("POST", "/api/models/acme/tiny/commit/main", b"\n".join(json.dumps(line).encode() for line in lines), "application/x-ndjson")


def commit_by_lfs(client, number):
    content = safetensors(number)
    known = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    batch = {"operation": "upload", "transfers": ["basic"], "objects": [known], "hash_algo": "sha256"}
    _, answer = client.send("POST", "/acme/tiny.git/info/lfs/objects/batch", batch, "application/vnd.git-lfs+json")
    href = json.loads(answer)["objects"][0]["actions"]["upload"]["href"]
    client.ask("PUT", "/" + href.split("/", 3)[3], content)
    value = {"path": f"m-{number}.safetensors", "algo": "sha256", **known}
    lines = ({"key": "header", "value": {"summary": "s"}}, {"key": "lfsFile", "value": value})
    client.send("POST", "/api/models/acme/tiny/commit/main", b"\n".join(json.dumps(line).encode() for line in lines), "application/x-ndjson")


def read_cold(program, requests, end):
    """Each request opens another model of a bucket, and reads it for the first time."""
    import s3_engines
    from buckets import bucket_environment

    engine = s3_engines.moto()
    bucket = next(engine).bucket()
    for number in range(requests):
        bucket.put(f"m-{number}.safetensors", safetensors(number))
    place = program.scratch / "place"
    place.mkdir()
    server, port = program.serve("--root", bucket.root, **bucket_environment(bucket, place))
    try:
        client = Client(port)
        for number in range(requests):
            client.ask("GET", f"/v1/models/m-{number}/objects/w/data")
    finally:
        end(server)
        engine.close()


def convert(program, requests, end):
    source = program.scratch / "a.safetensors"
    source.write_bytes(safetensors())
    program.run("convert", source, program.scratch / "b.zt")


def pull(program, requests, end):
    counters = program.environment["GCOV_PREFIX"]
    program.environment["GCOV_PREFIX"] = str(program.scratch / "server")
    server, port = program.serve("--root", make_root(program))
    program.environment["GCOV_PREFIX"] = counters
    try:
        program.run("pull", "--quiet", "-o", program.scratch / "pulled.zt", f"http://127.0.0.1:{port}/v1/models/{MODEL}")
    finally:
        end(server)


# Each kind: its trip, the number of requests in the shorter run (none: everything counts) and in the longer one.
KINDS = {
    "GET of a component": (over_http(get_component), WARMING, MANY),
    "GET of a manifest": (over_http(get_manifest), WARMING, MANY),
    "PUT": (over_http(put_model), WARMING, MANY),
    "tus, two PATCHes": (over_http(patch_twice), WARMING, MANY),
    "commit of the writer": (over_http(commit_writer), WARMING, MANY),
    "commit to the Hub": (over_http(commit_to_hub), WARMING, MANY),
    "commit by LFS": (over_http(commit_by_lfs), WARMING, MANY),
    "cold GET from a bucket": (read_cold, 5, 65),
    "convert": (convert, 0, 1),
    "pull": (pull, 0, 1),
}
