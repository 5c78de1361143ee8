"""Clients of S3, unchanged: boto3, by itself and with AWS's common runtime, aws, s5cmd and obstore (test_s3_other_clients.py has
more). What one uploads all others read, those of the Hub and of tus too."""

import base64
import hashlib
import re
import subprocess

import pytest
import requests
from certificates import Authority
from flipping_proxy import FlippingProxy
from hub_clients import RELEASES, HubClient
from s3_clients import Refused, S3Client
from s3_round_trip import LARGE, assert_round_trip
from server_process import PROGRAM

import containers
import tus

CLIENTS = ["boto3", "crt", "aws", "s5cmd", "obstore"]


@pytest.fixture
def authority(tmp_path):
    (tmp_path / "authority").mkdir()
    return Authority(tmp_path / "authority")


def make_key(path, *arguments):
    """A new access key and its secret."""
    command = [PROGRAM, "token", "--s3", *arguments, "--keys", path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return tuple(re.findall(r"=(\S+)", printed))


@pytest.fixture
def new_client(tmp_path):
    return lambda name, server, **options: S3Client(name, server, tmp_path / f"client-{name}", **options)


@pytest.mark.parametrize("name", ["boto3", "crt", "s5cmd", "obstore"])
def test_files_make_the_round_trip(name, hub, root, sent, new_client):
    assert_round_trip(new_client(name, hub), root, sent)


@pytest.mark.parametrize("name", CLIENTS)
def test_files_make_the_round_trip_over_tls_with_keys(name, root, sent, start_server, new_client, authority, tmp_path):
    key = make_key(tmp_path / "keys", "trainer", "write", "acme/*")
    arguments = ["--writable", *authority.sign("server").arguments]
    server = start_server(root, *arguments, environment={"ZTSERVE_S3_KEYS": str(tmp_path / "keys")}, tls=authority)
    assert_round_trip(new_client(name, server, key=key, authority=authority), root, sent)


def test_every_client_reads_what_the_others_upload(hub, root, new_client, tmp_path):
    folder = root / "acme" / "m"
    hub_client = HubClient(RELEASES[0], tmp_path / "hub", hub.url)
    for number, name in enumerate(CLIENTS):
        (tmp_path / name).write_bytes(containers.pattern((12 << 20) + number))
        new_client(name, hub).call(["put", str(tmp_path / name), f"acme/m/{name}.bin"])
    (tmp_path / "hub.bin").write_bytes(containers.pattern(70_000))
    hub_client.expect_hf("upload", "acme/m", tmp_path / "hub.bin", "hub.bin")
    content = containers.zt1({"w": containers.dense(containers.pattern(90_000))})
    tus.patch(hub, tus.create(hub, "acme/m/tus", len(content)), 0, content)
    uploaded = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(uploaded) == sorted([*(f"{name}.bin" for name in CLIENTS), "hub.bin", "tus.zt"])
    for name in CLIENTS:
        client = new_client(name, hub)
        if name == "aws":
            client.call(["sync", "s3://models/acme/m", "."])
        else:
            client.call(*(["get", f"acme/m/{file}", file] for file in uploaded))
        assert {file: (client.folder / file).read_bytes() == content for file, content in uploaded.items()} == dict.fromkeys(uploaded, True)
    hub_client.expect_hf("download", "acme/m", "--local-dir", tmp_path / "downloaded")
    assert all((tmp_path / "downloaded" / file).read_bytes() == content for file, content in uploaded.items())


def test_boto3_continues_an_upload_of_a_program_that_ended(hub, root, sent, new_client):
    new_client("boto3", hub).call(["resume", str(sent / "large"), "acme/large.bin"])
    assert (root / "acme" / "large.bin").read_bytes() == LARGE


def test_boto3_gets_what_it_gave_to_objects(hub, new_client):
    values = new_client("boto3", hub).call(
        ["buckets"], ["put_fields", "a/x.json"], ["fields", "a/x.json"], ["copy", "a/x.json", "a/y.json"], ["fields", "a/y.json"],
        ["checksum", "a/x.json"], ["presigned", "a/x.json"],
    )  # fmt: skip
    fields = ["application/json", {"run": "7"}]
    digest = hashlib.sha256(b"{}").digest()
    assert values[:1] + values[2:3] + values[4:5] == [["models"], fields, fields]
    assert values[5] == [base64.b64encode(digest).decode(), "FULL_OBJECT"]
    assert requests.get(values[6], verify=False).content == b"{}"


def test_conditions_and_models_that_are_none_are_refused(hub, root, sent, new_client):
    client = new_client("boto3", hub)
    client.call(["put_once", str(sent / "small"), "a/notes.txt"])
    with pytest.raises(Refused, match="PreconditionFailed"):
        client.call(["put_once", str(sent / "large"), "a/notes.txt"])
    with pytest.raises(Refused, match=r"InvalidRequest.*no known format"):
        client.call(["put", str(sent / "small"), "a/model.safetensors"])
    assert [path.name for path in (root / "a").iterdir()] == ["notes.txt"]


def test_aws_sync_copies_what_differs(hub, root, new_client, tmp_path):
    source = tmp_path / "synced"
    (source / "below").mkdir(parents=True)
    for name in ("a.bin", "below/b.bin"):
        (source / name).write_bytes(containers.pattern(1000))
    client = new_client("aws", hub)
    (source / "below" / "b.bin").write_bytes(b"another")
    assert client.call(["sync", str(source), "s3://models/acme"], ["sync", str(source), "s3://models/acme"])[1] == []
    client.call(["sync", "s3://models/acme", "back"], ["delete_all", "acme/"])
    assert not [path for path in (root / "acme").rglob("*") if path.is_file()]
    assert (client.folder / "back" / "below" / "b.bin").read_bytes() == b"another"


@pytest.mark.parametrize("name, call", [
    ("crt", ["get", "large.bin", "got"]),
    ("boto3", ["checked_range", "large.bin", 0, 8 << 20]),
    ("boto3", ["get", "large.bin", "got"]),
])  # fmt: skip
def test_a_flipped_bit_is_refused(name, call, hub, sent, new_client):
    new_client(name, hub).call(["put", str(sent / "large"), "large.bin"], call)
    proxy = FlippingProxy(hub)
    with pytest.raises(Refused, match="(?i)checksum"):
        new_client(name, hub, url=proxy.url).call(call)
    assert proxy.flips == 1
    proxy.close()
