"""What the package gguf dequantizes, bit for bit: blocks of any bytes, of every type that it has a dequantizer for."""

import json
import struct
import subprocess

import numpy
import pytest

from environments import run_client
from server_process import PROGRAM

TYPES = [
    "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "tq1_0", "tq2_0", "mxfp4", "nvfp4",
    "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    run_client("gguf", folder, script="client_gguf_widened.py")
    command = [PROGRAM, "convert", "--dtype", "f32", folder / "blocks.gguf", folder / "out.safetensors"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def tensors(folder):
    file = (folder / "out.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", file)
    return json.loads(file[8 : 8 + length]), file[8 + length :]


def test_no_type_is_left_out(folder):
    assert sorted(json.loads((folder / "shapes.json").read_text())) == sorted(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_values_are_the_same_bits(folder, tensors, name):
    header, data = tensors
    made = numpy.frombuffer(data[slice(*header[name]["data_offsets"])], "<u4")
    expected = numpy.fromfile(folder / f"{name}.f32", "<u4")
    assert header[name]["dtype"] == "F32" and header[name]["shape"] == json.loads(
        (folder / "shapes.json").read_text()
    )[name]
    # The bits of a NaN are the processor's.
    numbers = ~numpy.isnan(expected.view("<f4"))
    assert numpy.array_equal(made[numbers], expected[numbers]) and numbers.mean() > 0.5
    assert numpy.isnan(made[~numbers].view("<f4")).all()
