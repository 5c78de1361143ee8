"""More clients of S3, unchanged: rclone, pyarrow, s3fs, DuckDB, DVC, MLflow, and the streamer with which vLLM loads models."""

import hashlib
import shutil

import pytest
from environments import is_available
from hub_repositories import write_files
from s3_clients import S3Client
from s3_round_trip import LARGE, assert_round_trip

import containers
import joined

STREAMER = "runai_model_streamer-0.17.1"


@pytest.fixture
def new_client(hub, tmp_path):
    return lambda name, **environment: S3Client(name, hub, tmp_path / f"client-{name}", **environment)


@pytest.mark.parametrize("name", ["rclone", "pyarrow", "s3fs"])
def test_files_make_the_round_trip(name, root, sent, new_client):
    assert_round_trip(new_client(name), root, sent)


@pytest.mark.skipif(shutil.which("rclone", path="/usr/bin") is None, reason="Debian's rclone is not installed")
def test_files_make_the_round_trip_by_an_old_rclone(root, sent, new_client):
    assert_round_trip(new_client("rclone", ZT_RCLONE="/usr/bin/rclone"), root, sent)


def test_rclone_does_not_copy_again(sent, new_client, root):
    client = new_client("rclone")
    client.call(["put", str(sent / "small"), "a/small"])
    assert client.call(["is_skipped", str(sent / "small"), "a/small"], ["is_skipped", str(sent / "large"), "a/small"]) == [True, False]
    assert (root / "a" / "small").read_bytes() == LARGE


def test_duckdb_writes_and_reads_tables(new_client):
    client = new_client("duckdb")
    for ending in ("csv", "parquet"):
        found = client.call(["put_table", f"runs/loss.{ending}"], ["sum", f"runs/*.{ending}"], ["names", f"runs/*.{ending}"])
        assert found[1:] == [[200_000, 2 * sum(range(200_000))], [f"runs/loss.{ending}"]]


def test_dvc_stores_and_fetches(new_client, root):
    client = new_client("dvc")
    content = containers.pattern(20 << 20)
    (client.folder / "weights.bin").write_bytes(content)
    client.call(["push", "weights.bin"], ["pull", "weights.bin"])
    assert (client.folder / "weights.bin").read_bytes() == content
    assert [path.stat().st_size for path in (root / "dvc").rglob("*") if path.is_file()] == [len(content)]


def test_mlflow_stores_and_fetches_artifacts(new_client, root):
    client = new_client("mlflow")
    content = containers.pattern(20 << 20)
    (client.folder / "weights.bin").write_bytes(content)
    found = client.call(["log", "weights.bin", "model"], ["names", "model"], ["download", "model/weights.bin", str(client.folder)])
    assert found[1] == ["model/weights.bin"]
    assert (client.folder / "model" / "weights.bin").read_bytes() == content
    client.call(["delete", "model/weights.bin"])
    assert not [path for path in (root / "mlflow").rglob("*") if path.is_file()]


@pytest.mark.skipif(not is_available(STREAMER), reason="skipped: torch or the streamer cannot be installed here")
def test_a_model_in_several_files_is_streamed(new_client, root):
    contents = [containers.pattern((3 << 20) + number) for number in range(3)]
    write_files(root, joined.files_with_index("acme/m/model", contents))
    keys = [f"acme/m/{name}" for name in joined.part_names("model", len(contents))]
    client = new_client("runai")
    listed, found, _ = client.call(["listed", "acme/m"], ["tensors", keys], ["pull", "acme/m", "pulled"])
    assert listed == keys
    assert found == {f"w{number}": hashlib.sha256(content).hexdigest() for number, content in enumerate(contents, 1)}
    pulled = [path.name for path in (client.folder / "pulled").rglob("*") if path.is_file()]
    assert pulled == ["model.safetensors.index.json"]
