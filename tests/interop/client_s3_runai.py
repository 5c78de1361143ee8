"""Run:ai Model Streamer, with which vLLM and SGLang load models from S3; the rest is as in client_s3.py."""

import hashlib

from client_s3 import BUCKET, answer


class Runai:
    def listed(self, folder):
        from runai_model_streamer import list_safetensors

        return sorted(path.removeprefix(f"s3://{BUCKET}/") for path in list_safetensors(f"s3://{BUCKET}/{folder}"))

    def tensors(self, keys):
        """The SHA-256 of each tensor."""
        import torch
        from runai_model_streamer import SafetensorsStreamer

        with SafetensorsStreamer() as streamer:
            streamer.stream_files([f"s3://{BUCKET}/{key}" for key in keys])
            found = list(streamer.get_tensors())
            return {name: hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy()).hexdigest() for name, tensor in found}

    def pull(self, folder, path):
        """The files that are no tensors, as vLLM fetches them."""
        from runai_model_streamer import pull_files

        pull_files(f"s3://{BUCKET}/{folder}", path, ignore_pattern=["*.safetensors"])


if __name__ == "__main__":
    answer({"runai": Runai})
