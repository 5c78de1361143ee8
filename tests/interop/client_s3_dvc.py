"""fsspec's s3fs, and DVC, which uses it; the rest is as in client_s3.py."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from client_s3 import BUCKET, ENDPOINT, PART_BYTES, PROGRAMS, Program, answer


class S3fs:
    def __init__(self):
        import s3fs

        # fsspec's cache of lists would hide what others write.
        self.system = s3fs.S3FileSystem(use_listings_cache=False)

    def put(self, path, key):
        self.system.put_file(path, f"{BUCKET}/{key}", chunksize=PART_BYTES)

    def get(self, key, path):
        self.system.get_file(f"{BUCKET}/{key}", path)

    def ranged(self, key, begin, end):
        return self.system.cat_file(f"{BUCKET}/{key}", start=begin, end=end)

    def size(self, key):
        return self.system.size(f"{BUCKET}/{key}")

    def names(self, prefix):
        return [found.removeprefix(f"{BUCKET}/") for found in self.system.find(f"{BUCKET}/{prefix}")]

    def folders(self, prefix):
        found = self.system.ls(f"{BUCKET}/{prefix}", detail=True)
        return [one["name"].removeprefix(f"{BUCKET}/") + "/" for one in found if one["type"] == "directory"]

    def copy(self, key, other):
        self.system.copy(f"{BUCKET}/{key}", f"{BUCKET}/{other}")

    def delete(self, key):
        self.system.rm_file(f"{BUCKET}/{key}")


class Dvc(Program):
    """In the working folder."""

    def dvc(self, *arguments):
        return self.run(PROGRAMS / "dvc", *arguments)

    def push(self, path):
        self.dvc("init", "--no-scm", "--quiet")
        self.dvc("remote", "add", "--default", "zt", f"s3://{BUCKET}/dvc")
        self.dvc("remote", "modify", "zt", "endpointurl", ENDPOINT)
        if "AWS_CA_BUNDLE" in os.environ:
            self.dvc("remote", "modify", "zt", "ssl_verify", os.environ["AWS_CA_BUNDLE"])
        self.dvc("add", "--quiet", path)
        self.dvc("push", "--quiet")

    def pull(self, path):
        """From the server alone."""
        shutil.rmtree(Path(".dvc", "cache"))
        Path(path).unlink()
        self.dvc("pull", "--quiet")


if __name__ == "__main__":
    answer({"s3fs": S3fs, "dvc": Dvc})
