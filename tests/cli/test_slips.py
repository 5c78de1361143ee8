"""What people type first: an address without a scheme, a format that is only read, a folder without --root."""

import signal
import subprocess

import meddler as meddling
import numpy
import pytest
from containers import dense, pattern, zt1
from neighbours import gguf
from server_process import PROGRAM, ServerProcess
from wire import eventually

MODEL = zt1({"a": dense(pattern(4000, seed=5), "f32", [1000])})
WAIT_S = 120


# --- addresses ---


@pytest.mark.parametrize("address", ["host:8080/x", "127.0.0.1:8080/org/m", "[::1]:8080", "models.example:80/v1/models/x?a"])
@pytest.mark.parametrize("command", ["pull", "push", "ls", "verify", "stats", "convert", "healthcheck"])
def test_an_address_without_a_scheme_suggests_one(refused, model, command, address):
    operands = {"push": [model, address], "convert": [address, "x.npz"]}.get(command, [address])
    assert f"{address}: " in (errors := refused(command, *operands)) and f"did you mean http://{address}?" in errors


@pytest.mark.parametrize("address", ["ftp://host:21/x", "host/x", "host:port/x", ":8080/x", "x"])
def test_other_texts_suggest_none(refused, model, address):
    assert "did you mean" not in refused("pull", address)
    assert "did you mean" not in refused("push", model, address)


def test_a_file_with_such_a_name_is_read(ztserve, here):
    (here / "host:8080").write_bytes(MODEL)
    assert ztserve("ls", "host:8080", folder=here).status == 0


# --- formats ---


@pytest.mark.parametrize(
    "extension, name",
    [("gguf", "GGUF"), ("GGUF", "GGUF"), ("onnx", "ONNX"), ("pt", "PyTorch"), ("pth", "PyTorch"), ("bin", "PyTorch"), ("Ckpt", "PyTorch")],
)
def test_a_format_that_is_only_read_is_named(refused, model, here, extension, name):
    assert f"x.{extension}: {name} is read, not written" in refused("convert", model, here / f"x.{extension}")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("command, option", [("convert", "--to"), ("pull", "--format")])
def test_an_option_for_such_a_format_names_it(refused, model, here, command, option):
    operands = {"convert": [model, here / "x"], "pull": ["http://127.0.0.1:9/m"]}[command]
    assert f"{option} gguf: GGUF is read, not written; it must be zt, " in refused(command, *operands, option, "gguf")


def test_other_extensions_are_unknown(refused, model, here):
    assert "no known format" in refused("convert", model, here / "x.xyz")


@pytest.mark.parametrize("extension", ["NPZ", "Npz", "SAFETENSORS", "ZT", "MAG", "NPY"])
def test_extensions_are_known_in_any_case(ztserve, model, here, extension):
    result = ztserve("convert", model, here / f"x.{extension}")
    assert result.status == 0, result.errors
    assert ztserve("verify", here / f"x.{extension}").status == 0
    if extension.lower() == "npz":
        assert numpy.load(here / f"x.{extension}")["a"].tobytes() == pattern(4000, seed=5)


def test_pull_knows_extensions_in_any_case(ztserve, start_server, root, here):
    (root / "m.zt").write_bytes(MODEL)
    server = start_server(root)
    assert ztserve("pull", f"{server.url}/m", "-o", "x.NPZ", folder=here).status == 0
    assert numpy.load(here / "x.NPZ")["a"].tobytes() == pattern(4000, seed=5)


@pytest.mark.parametrize("name, own", [("x.gguf", "GGUF"), ("x.ONNX", "ONNX"), ("x.bin", "PyTorch")])
def test_pull_does_not_give_such_an_extension_to_another_format(ztserve, start_server, root, here, name, own):
    (root / "m.zt").write_bytes(MODEL)
    server = start_server(root)
    result = ztserve("pull", f"{server.url}/m", "-o", name, folder=here)
    assert (result.status, result.output) == (2, "") and list(here.iterdir()) == []
    assert f"-o {name}: {own} is read, not written; the server's file is m.zt" in result.errors
    for arguments in ([f"{server.url}/m", "--force"], [f"{server.url}/files/m.zt"]):
        assert ztserve("pull", *arguments, "-o", name, folder=here).status == 0
        assert (here / name).read_bytes() == MODEL
        (here / name).unlink()


def test_pull_keeps_a_format_that_is_only_read(ztserve, start_server, root, here):
    (root / "m.gguf").write_bytes(gguf(bytes(100)))
    server = start_server(root)
    assert ztserve("pull", f"{server.url}/m", "-o", "x.GGUF", folder=here).status == 0
    assert (here / "x.GGUF").read_bytes() == gguf(bytes(100))


# --- a folder ---


class ServingOperand(ServerProcess):
    """`ztserve serve DIR …` in place of `serve --root DIR …`."""

    def __init__(self, folder, arguments):
        self.context = self.mirror = None
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._begin_log()
        self.host, self.port = self._read_address()


@pytest.mark.parametrize(
    "arguments",
    [["models"], ["models", "--listen", "127.0.0.1:0"], ["--listen=127.0.0.1:0", "models"], ["--listen=127.0.0.1:0", "--", "models"]],
)
def test_serve_takes_a_folder(ztserve, here, arguments):
    (here / "models").mkdir()
    (here / "models/m.zt").write_bytes(MODEL)
    if not any("--listen" in argument for argument in arguments):
        arguments = [*arguments, "--listen=127.0.0.1:0"]
    server = ServingOperand(here, arguments)
    listed = ztserve("ls", f"http://{server.host}:{server.port}/m")
    server.process.terminate()
    assert server.process.wait(WAIT_S) == 0
    assert listed.status == 0 and "1 object" in listed.output


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["a", "b"], "b: serve takes one folder, and a is another"),
        (["--root", "a", "b"], "b: --root already names a folder"),
        (["b", "--root=a"], "b: --root already names a folder"),
        (["--", "a", "b"], "b: serve takes one folder"),
        ([""], "no name"),
    ],
)
def test_serve_takes_only_one(refused, arguments, words):
    assert words in refused("serve", *arguments)


def test_a_port_is_part_of_the_address(refused):
    assert "--port: unknown argument; did you mean --listen?" in refused("serve", "--port", "8080")


def test_a_misspelled_variable_suggests_the_nearest(start_server, root):
    server = start_server(root, environment={"ZTSERVE_WRITEABLE": "1"})
    assert "ZTSERVE_WRITEABLE: unknown variable, ignored; did you mean ZTSERVE_WRITABLE?" in server.log


# --- folders ---


@pytest.mark.parametrize("command", ["ls", "verify", "stats"])
def test_the_url_of_a_folder_suggests_its_listing(ztserve, start_server, root, command):
    (root / "org").mkdir()
    url = start_server(root).url
    result = ztserve(command, url + "/org")
    assert result.status == 1 and f"; for a folder: ztserve ls {url}/org/" in result.errors + result.output
    assert "ztserve ls http://HOST/ lists the models" in ztserve("verify", url + "/").errors


def test_converting_a_folder_asks_for_its_model(ztserve, here):
    (here / "folder").mkdir()
    result = ztserve("convert", "folder", "out.zt", folder=here)
    assert (result.status, result.errors) == (1, "ztserve: folder: a folder: name its model file or index\n")


def test_pushing_a_configuration_as_a_model_suggests_its_folder(ztserve, start_server, root, here):
    (here / "config.json").write_text("{}")
    (here / "other.safetensors").write_text("{}")
    url = start_server(root, "--writable").url
    assert "; not a tensor file: push its folder" in ztserve("push", here / "config.json", url + "/m").errors
    assert "push its folder" not in ztserve("push", here / "other.safetensors", url + "/m").errors


# --- control-C ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_push_says_how_to_go_on(between, model, environment, number):
    held = between.meddle(meddling.hang, when=lambda request: request.method == "PATCH")
    process = subprocess.Popen(
        [PROGRAM, "push", model, between.endpoint + "/m"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: held.used, WAIT_S)
    process.send_signal(number)
    output, errors = process.communicate(timeout=WAIT_S)
    line = "ztserve: interrupted; run the same command again to resume\n"
    assert (process.returncode, output, errors) == (-number, "", line)
