"""MLflow's artifacts in S3; the rest is as in client_s3.py."""

import os

from client_s3 import BUCKET, ENDPOINT, answer


class Mlflow:
    def __init__(self):
        os.environ["MLFLOW_S3_ENDPOINT_URL"] = ENDPOINT
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        self.repository = get_artifact_repository(f"s3://{BUCKET}/mlflow/1/run/artifacts")

    def log(self, path, folder):
        self.repository.log_artifact(path, folder)

    def names(self, folder):
        return [found.path for found in self.repository.list_artifacts(folder)]

    def download(self, name, folder):
        return self.repository.download_artifacts(name, folder)

    def delete(self, name):
        self.repository.delete_artifacts(name)


if __name__ == "__main__":
    answer({"mlflow": Mlflow})
