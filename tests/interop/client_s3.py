"""Clients of S3, unchanged. Reads {"client", "calls": [[function, arguments…]…]} from standard input, and prints the list of
what the calls returned; a call that raised gives {"raised": text}. The variables AWS_… name the endpoint and the keys."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

BUCKET = "models"
ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
PROGRAMS = Path(sys.executable).parent
PART_BYTES = 8 << 20


class Boto3:
    """As `pip install boto3` leaves it."""

    def __init__(self):
        import boto3
        from botocore.config import Config

        self.client = boto3.client("s3", config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}))

    def put(self, path, key):
        self.client.upload_file(path, BUCKET, key)

    def get(self, key, path):
        self.client.download_file(BUCKET, key, path)

    def ranged(self, key, begin, end):
        return self.client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes={begin}-{end - 1}")["Body"].read()

    def size(self, key):
        return self.client.head_object(Bucket=BUCKET, Key=key)["ContentLength"]

    def names(self, prefix):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix, PaginationConfig={"PageSize": 2})
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def folders(self, prefix):
        page = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix, Delimiter="/")
        return [found["Prefix"] for found in page.get("CommonPrefixes", [])]

    def copy(self, key, other):
        self.client.copy({"Bucket": BUCKET, "Key": key}, BUCKET, other)

    def delete(self, key):
        self.client.delete_object(Bucket=BUCKET, Key=key)

    def buckets(self):
        return [bucket["Name"] for bucket in self.client.list_buckets()["Buckets"]]

    def put_fields(self, key):
        self.client.put_object(Bucket=BUCKET, Key=key, Body=b"{}", ContentType="application/json", Metadata={"run": "7"})

    def fields(self, key):
        head = self.client.head_object(Bucket=BUCKET, Key=key)
        return [head["ContentType"], head["Metadata"]]

    def presigned(self, key):
        return self.client.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key})

    def checksum(self, key):
        head = self.client.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
        return [head.get("ChecksumSHA256"), head.get("ChecksumType")]

    def checked_range(self, key, begin, end):
        got = self.client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes={begin}-{end - 1}", ChecksumMode="ENABLED")
        return got["Body"].read()

    def put_once(self, path, key):
        with open(path, "rb") as file:
            self.client.put_object(Bucket=BUCKET, Key=key, Body=file, IfNoneMatch="*")

    def resume(self, path, key):
        """A program that ended after two parts of an upload, and another that finds the upload and ends it."""
        data = Path(path).read_bytes()
        pieces = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
        place = {"Bucket": BUCKET, "Key": key, "UploadId": self.client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]}
        for number in (2, 1):
            self.client.upload_part(**place, PartNumber=number, Body=pieces[number - 1])
        (found,) = self.client.list_multipart_uploads(Bucket=BUCKET, Prefix=key)["Uploads"]
        assert found["UploadId"] == place["UploadId"]
        there = {part["PartNumber"]: part["ETag"] for part in self.client.list_parts(**place)["Parts"]}
        assert sorted(there) == [1, 2]
        for number in range(3, len(pieces) + 1):
            there[number] = self.client.upload_part(**place, PartNumber=number, Body=pieces[number - 1])["ETag"]
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in sorted(there.items())]
        self.client.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})


class Crt(Boto3):
    """Transfers by AWS's common runtime, which uses several ranges at once and checks the whole. boto3's own way to it needs
    https and a certificate that the system trusts; this is the way of `aws` with `preferred_transfer_client = crt`."""

    def __init__(self):
        super().__init__()
        import botocore.session
        from botocore.config import Config
        from s3transfer import crt

        session = botocore.session.Session()
        serializer = crt.BotocoreCRTRequestSerializer(session, {"config": Config(s3={"addressing_style": "path"})})
        credentials = crt.BotocoreCRTCredentialsWrapper(session.get_credentials()).to_crt_credentials_provider()
        runtime = crt.create_s3_crt_client(
            "us-east-1", credentials, part_size=PART_BYTES, use_ssl=ENDPOINT.startswith("https"), verify=os.environ.get("AWS_CA_BUNDLE")
        )
        self.manager = crt.CRTTransferManager(runtime, serializer)

    def put(self, path, key):
        with self.manager as manager:
            manager.upload(path, BUCKET, key).result()

    def get(self, key, path):
        with self.manager as manager:
            manager.download(BUCKET, key, path).result()


class Program:
    def run(self, *arguments):
        done = subprocess.run([*map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout


class Aws(Program):
    def aws(self, *arguments):
        return self.run(PROGRAMS / "aws", *arguments)

    def put(self, path, key):
        self.aws("s3", "cp", "--only-show-errors", path, f"s3://{BUCKET}/{key}")

    def get(self, key, path):
        self.aws("s3", "cp", "--only-show-errors", f"s3://{BUCKET}/{key}", path)

    def ranged(self, key, begin, end):
        self.aws("s3api", "get-object", "--bucket", BUCKET, "--key", key, "--range", f"bytes={begin}-{end - 1}", ".range")
        return Path(".range").read_bytes()

    def size(self, key):
        return json.loads(self.aws("s3api", "head-object", "--bucket", BUCKET, "--key", key, "--output", "json"))["ContentLength"]

    def names(self, prefix):
        lines = self.aws("s3", "ls", "--recursive", f"s3://{BUCKET}/{prefix}").splitlines()
        return [line.split(maxsplit=3)[3] for line in lines]

    def folders(self, prefix):
        lines = [line.split(maxsplit=1) for line in self.aws("s3", "ls", f"s3://{BUCKET}/{prefix}").splitlines()]
        return [prefix + line[1] for line in lines if line[0] == "PRE"]

    def copy(self, key, other):
        self.aws("s3", "cp", "--only-show-errors", f"s3://{BUCKET}/{key}", f"s3://{BUCKET}/{other}")

    def delete(self, key):
        self.aws("s3", "rm", "--only-show-errors", f"s3://{BUCKET}/{key}")

    def sync(self, source, target):
        """The names of what it copied."""
        return [line.split()[-1] for line in self.aws("s3", "sync", "--no-progress", source, target).splitlines()]

    def delete_all(self, prefix):
        self.aws("s3", "rm", "--only-show-errors", "--recursive", f"s3://{BUCKET}/{prefix}")


class S5cmd(Program):
    def s5cmd(self, *arguments):
        return self.run(PROGRAMS / "s5cmd", *arguments)

    def put(self, path, key):
        self.s5cmd("cp", "--part-size", "8", path, f"s3://{BUCKET}/{key}")

    def get(self, key, path):
        self.s5cmd("cp", "--part-size", "8", f"s3://{BUCKET}/{key}", path)

    def size(self, key):
        return json.loads(self.s5cmd("--json", "ls", f"s3://{BUCKET}/{key}"))["size"]

    def names(self, prefix):
        lines = self.s5cmd("--json", "ls", f"s3://{BUCKET}/{prefix}*").splitlines()
        return [json.loads(line)["key"].removeprefix(f"s3://{BUCKET}/") for line in lines]

    def folders(self, prefix):
        found = [json.loads(line) for line in self.s5cmd("--json", "ls", f"s3://{BUCKET}/{prefix}").splitlines()]
        return [one["key"].removeprefix(f"s3://{BUCKET}/") for one in found if one["type"] == "directory"]

    def copy(self, key, other):
        self.s5cmd("cp", f"s3://{BUCKET}/{key}", f"s3://{BUCKET}/{other}")

    def delete(self, key):
        self.s5cmd("rm", f"s3://{BUCKET}/{key}")


class Rclone(Program):
    """ZT_RCLONE names another program than that of the environment."""

    program = os.environ.get("ZT_RCLONE", PROGRAMS / "rclone")

    def rclone(self, *arguments):
        return self.run(self.program, *arguments)

    def put(self, path, key):
        self.rclone("copyto", path, f"zt:{BUCKET}/{key}")

    def get(self, key, path):
        self.rclone("copyto", f"zt:{BUCKET}/{key}", path)

    def ranged(self, key, begin, end):
        done = subprocess.run([self.program, "cat", "--offset", str(begin), "--count", str(end - begin), f"zt:{BUCKET}/{key}"], capture_output=True)
        return done.stdout

    def size(self, key):
        return json.loads(self.rclone("lsjson", f"zt:{BUCKET}/{key}"))[0]["Size"]

    def names(self, prefix):
        return [prefix + line for line in sorted(self.rclone("lsf", "-R", "--files-only", f"zt:{BUCKET}/{prefix}").splitlines())]

    def folders(self, prefix):
        return [prefix + line for line in self.rclone("lsf", "--dirs-only", f"zt:{BUCKET}/{prefix}").splitlines()]

    def copy(self, key, other):
        self.rclone("copyto", f"zt:{BUCKET}/{key}", f"zt:{BUCKET}/{other}")

    def delete(self, key):
        self.rclone("deletefile", f"zt:{BUCKET}/{key}")

    def is_skipped(self, path, key):
        """Whether it finds that the server has the file already."""
        done = subprocess.run([self.program, "copyto", "-vv", path, f"zt:{BUCKET}/{key}"], capture_output=True, text=True)
        return "Unchanged skipping" in done.stderr


class Obstore:
    def __init__(self):
        from obstore.store import S3Store

        options = {"allow_http": True}
        self.store = S3Store(BUCKET, endpoint=ENDPOINT, region="us-east-1", client_options=options, virtual_hosted_style_request=False)

    def put(self, path, key):
        import obstore

        with open(path, "rb") as file:
            obstore.put(self.store, key, file, chunk_size=PART_BYTES)

    def get(self, key, path):
        import obstore

        Path(path).write_bytes(obstore.get(self.store, key).bytes())

    def ranged(self, key, begin, end):
        import obstore

        return bytes(obstore.get_range(self.store, key, start=begin, end=end))

    def size(self, key):
        import obstore

        return obstore.head(self.store, key)["size"]

    def names(self, prefix):
        import obstore

        return [found["path"] for batch in obstore.list(self.store, prefix=prefix) for found in batch]

    def folders(self, prefix):
        import obstore

        return [f"{found}/" for found in obstore.list_with_delimiter(self.store, prefix)["common_prefixes"]]

    def copy(self, key, other):
        import obstore

        obstore.copy(self.store, key, other)

    def delete(self, key):
        import obstore

        obstore.delete(self.store, key)


class Pyarrow:
    def __init__(self):
        from pyarrow import fs

        url = urlsplit(ENDPOINT)
        options = {"endpoint_override": url.netloc + url.path, "scheme": url.scheme, "region": "us-east-1"}
        if "AWS_CA_BUNDLE" in os.environ:
            options["tls_ca_file_path"] = os.environ["AWS_CA_BUNDLE"]
        self.system = fs.S3FileSystem(**options)
        self.selector = fs.FileSelector

    def put(self, path, key):
        with self.system.open_output_stream(f"{BUCKET}/{key}") as file:
            file.write(Path(path).read_bytes())

    def get(self, key, path):
        with self.system.open_input_stream(f"{BUCKET}/{key}") as file:
            Path(path).write_bytes(file.read())

    def ranged(self, key, begin, end):
        with self.system.open_input_file(f"{BUCKET}/{key}") as file:
            return file.read_at(end - begin, begin)

    def size(self, key):
        return self.system.get_file_info(f"{BUCKET}/{key}").size

    def found(self, prefix, recursive):
        return self.system.get_file_info(self.selector(f"{BUCKET}/{prefix}", recursive=recursive))

    def names(self, prefix):
        return sorted(one.path.removeprefix(f"{BUCKET}/") for one in self.found(prefix, True) if one.is_file)

    def folders(self, prefix):
        return sorted(one.path.removeprefix(f"{BUCKET}/") + "/" for one in self.found(prefix, False) if not one.is_file)

    def copy(self, key, other):
        self.system.copy_file(f"{BUCKET}/{key}", f"{BUCKET}/{other}")

    def delete(self, key):
        self.system.delete_file(f"{BUCKET}/{key}")


class Duckdb:
    """Reads and writes tables."""

    def __init__(self):
        import duckdb
        import duckdb_extension_httpfs

        extension = next((Path(duckdb_extension_httpfs.__file__).parent / "extensions").rglob("httpfs.duckdb_extension"))
        url = urlsplit(ENDPOINT)
        self.connection = duckdb.connect()
        self.connection.execute(f"LOAD '{extension}'")
        if "AWS_CA_BUNDLE" in os.environ:
            self.connection.execute(f"SET ca_cert_file='{os.environ['AWS_CA_BUNDLE']}'")
        self.connection.execute(
            f"CREATE SECRET zt (TYPE s3, ENDPOINT '{url.netloc}{url.path}', URL_STYLE 'path', USE_SSL {url.scheme == 'https'},"
            f" KEY_ID '{os.environ['AWS_ACCESS_KEY_ID']}', SECRET '{os.environ['AWS_SECRET_ACCESS_KEY']}', REGION 'us-east-1')"
        )

    def put_table(self, key):
        self.connection.execute(f"COPY (SELECT range AS step, range * 2 AS loss FROM range(200000)) TO 's3://{BUCKET}/{key}'")

    def sum(self, pattern):
        return [int(one) for one in self.connection.execute(f"SELECT count(*), sum(loss) FROM 's3://{BUCKET}/{pattern}'").fetchone()]

    def names(self, pattern):
        return [one.removeprefix(f"s3://{BUCKET}/") for (one,) in self.connection.execute(f"SELECT file FROM glob('s3://{BUCKET}/{pattern}')").fetchall()]


CLIENTS = {"boto3": Boto3, "crt": Crt, "aws": Aws, "s5cmd": S5cmd, "rclone": Rclone, "obstore": Obstore, "pyarrow": Pyarrow, "duckdb": Duckdb}


def call(client, name, *arguments):
    try:
        value = getattr(client, name)(*arguments)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}
    return value.hex() if isinstance(value, bytes) else value


def answer(clients):
    asked = json.load(sys.stdin)
    client = clients[asked["client"]]()
    print(json.dumps([call(client, *one) for one in asked["calls"]]))


if __name__ == "__main__":
    answer(CLIENTS)
