"""Clients of S3, unchanged: boto3, by itself and with AWS's common runtime, aws, s5cmd and obstore (test_s3_other_clients.py has
more). What one uploads all others read, those of the Hub and of tus too."""

import base64
import hashlib
import os
import re
import subprocess

import pytest
import requests
from certificates import Authority
from flipping_proxy import FlippingProxy
from hub_clients import RELEASES, HubClient
from hub_repositories import write_files
from s3_clients import Refused, S3Client
from s3_round_trip import LARGE, SMALL, assert_round_trip
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
    with pytest.raises(Refused, match="(?i)signature"):
        new_client(name, server, key=(key[0], "wrong"), authority=authority).call(["put", str(sent / "small"), "acme/wrong.txt"])
    assert not (root / "acme" / "wrong.txt").exists()


def test_every_client_reads_what_the_others_upload(hub, root, new_client, tmp_path):
    folder = root / "acme" / "m"
    model = containers.zt1({"w": containers.dense(containers.pattern(90_000))})
    sent = {f"{name}.bin": containers.pattern((12 << 20) + number) for number, name in enumerate(CLIENTS)}
    sent |= {"hub.bin": containers.pattern(70_000), "tus.zt": model}
    hub_client = HubClient(RELEASES[0], tmp_path / "hub", hub.url)
    for name in CLIENTS:
        (tmp_path / name).write_bytes(sent[f"{name}.bin"])
        new_client(name, hub).call(["put", str(tmp_path / name), f"acme/m/{name}.bin"])
    (tmp_path / "hub.bin").write_bytes(sent["hub.bin"])
    hub_client.expect_hf("upload", "acme/m", tmp_path / "hub.bin", "hub.bin")
    tus.patch(hub, tus.create(hub, "acme/m/tus", len(model)), 0, model)
    assert sorted(path.name for path in folder.iterdir()) == sorted(sent)
    assert [name for name, content in sent.items() if (folder / name).read_bytes() != content] == []
    for name in CLIENTS:
        client = new_client(name, hub)
        if name == "aws":
            client.call(["sync", "s3://models/acme/m", "."])
        else:
            client.call(*(["get", f"acme/m/{file}", file] for file in sent))
        assert [file for file, content in sent.items() if (client.folder / file).read_bytes() != content] == []
    hub_client.expect_hf("download", "acme/m", "--local-dir", tmp_path / "downloaded")
    assert [file for file, content in sent.items() if (tmp_path / "downloaded" / file).read_bytes() != content] == []


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
    assert {path.name: path.read_bytes() for path in (root / "a").iterdir()} == {"notes.txt": SMALL}


def test_aws_sync_copies_what_differs(hub, root, new_client, tmp_path):
    source = tmp_path / "synced"
    files = {"a.bin": containers.pattern(1000), "below/b.bin": b"another"}
    write_files(source, files)
    # S3 lists times in whole seconds: aws takes a file of the same second for a newer one.
    for name in files:
        os.utime(source / name, (10**9, 10**9))
    client = new_client("aws", hub)
    copied = client.call(*([["sync", str(source), "s3://models/acme"]] * 2))
    assert [sorted(names) for names in copied] == [[f"s3://models/acme/{name}" for name in files], []]
    (source / "a.bin").write_bytes(b"longer" * 1000)
    assert client.call(["sync", str(source), "s3://models/acme"]) == [["s3://models/acme/a.bin"]]
    client.call(["sync", "s3://models/acme", "back"], ["delete_all", "acme/"])
    assert not [path for path in (root / "acme").rglob("*") if path.is_file()]
    assert {name: (client.folder / "back" / name).read_bytes() for name in files} == {**files, "a.bin": b"longer" * 1000}


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
