"""Clients of S3, run unchanged in their environments against a server here, each in an empty folder."""

import json
import os
import subprocess

from certificates import common_authority
from environments import CLIENTS, HERE, python_of

TIMEOUT_S = 300
# The environment of each client.
ENVIRONMENT_OF = {"s3fs": "s3-dvc", "dvc": "s3-dvc", "mlflow": "s3-mlflow", "runai": "runai_model_streamer-0.17.1"}
# Anything, for servers without keys: these clients always sign.
ANY_KEY = ("key", "secret")
INHERITED = ("AWS_", "RCLONE_", "S3_", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


class Refused(Exception):
    """A call of a client that failed, with what the client says."""


class S3Client:
    """`url`: what stands before the server, if something does."""

    def __init__(self, name, server, folder, key=ANY_KEY, authority=None, url=None, **environment):
        self.name, self.folder = name, folder
        self.folder.mkdir(exist_ok=True)
        endpoint = (url or server.url) + "/s3"
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(INHERITED)}
        self.environment |= {"HOME": str(folder), "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key[0], "AWS_SECRET_ACCESS_KEY": key[1]}
        self.environment |= {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
        self.environment |= {"S3_ENDPOINT_URL": endpoint, "RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING": "0"}
        rclone = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": endpoint, "ENV_AUTH": "true"}
        self.environment |= {f"RCLONE_CONFIG_ZT_{key}": value for key, value in rclone.items()} | {"RCLONE_CONFIG": "/dev/null"}
        if endpoint.startswith("https"):
            authority = str((authority or common_authority()).cert)
            self.environment |= {"AWS_CA_BUNDLE": authority, "SSL_CERT_FILE": authority, "RCLONE_CA_CERT": authority}
        self.environment |= environment

    def call(self, *calls):
        """What each of the calls returned; raises Refused for the first that failed."""
        environment = ENVIRONMENT_OF.get(self.name, "s3")
        command = [python_of(environment), HERE / CLIENTS[environment][1]]
        asked = json.dumps({"client": self.name, "calls": calls})
        result = subprocess.run(
            command, input=asked, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert result.returncode == 0, result.stderr
        values = json.loads(result.stdout.splitlines()[-1])
        for value, call in zip(values, calls):
            if isinstance(value, dict) and "raised" in value:
                raise Refused(f"{self.name} {call}: {value['raised']}")
        return values
