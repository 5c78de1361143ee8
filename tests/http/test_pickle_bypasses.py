"""What has got past scanners of pickles (picklescan, fickling and their like) is refused where it stands: by rule, with the
name, at its offset, and nothing of it runs.

Those scanners list what is bad; here a table lists what is known, and everything else is refused. The attacks are those of
the scanners' advisories, CVE-2025-1716, -1889, -1944, -1945 and -10155 to -10157 among them.
"""

import gzip
import io
import struct
import subprocess
import tarfile
import warnings
import zipfile

import pytest

from pytorch import Storage, Tensor, integer, name, pickled, pt, text
from server_process import PROGRAM
from wire import assert_problem, get, model_path

STORAGE = Storage(bytes(range(64)))
TENSORS = {"w": Tensor(STORAGE, [4, 4])}
VALID = pickled(TENSORS, {STORAGE: "0"})
# Its value alone: behind PROTO, before STOP.
VALUE = VALID[2:-1]
COMMAND = text(": >ran")
RUN = name("os", "system") + b"(" + COMMAND + b"tR"
MAGIC = 0x1950A86A20F9469CFC6C

# Called or only imported, each has run code or opened files behind a scanner that did not list it; and neighbours of known names.
NAMES = """
os system|posix system|subprocess Popen|builtins eval|builtins getattr|__builtin__ frozenset|builtins type|builtins object
pip main|pip._internal.cli.main main|asyncio.unix_events _UnixSubprocessTransport._start|runpy run_path|profile Profile.runctx
ctypes CDLL|marshal loads|types FunctionType|importlib import_module|operator attrgetter|functools partial|copyreg _reconstructor
numpy.testing._private.utils runstring|numpy.core.multiarray _reconstruct|numpy dtype|pickle loads|_pickle loads|io open
torch load|torch hub.load|torch.serialization load|torch.storage _load_from_bytes|torch.jit.unsupported_tensor_ops execWrapper
torch.utils._config_module ConfigModule.load_config|torch.jit._pickle build_intlist|__torch__.os system|__torch__ Module
torch os.system|torch.os system|torch.nn.parameter Parameter.__class__|torch._utils _rebuild_tensor_v2.__globals__
torch._utils _import_dotted_name|torch._utils _rebuild_nested_tensor|collections OrderedDict.__class__|collections namedtuple
collections.abc OrderedDict|_codecs decode|codecs encode|torch FloatStorage.__init__|torch.evil FloatStorage|torchs FloatStorage
Torch Tensor|torch tensor|torch._Utils _rebuild_tensor_v2|torch._utils _rebuild_tensor_v2_|torch. Tensor|.torch Tensor
""".replace("\n", "|").split("|")
PAIRS = sorted({tuple(pair.split(" ")) for pair in NAMES if pair})
# Not of printable ASCII: a message shows question marks.
ODD_PAIRS = {
    "a NUL behind it": ("torch", "Tensor\0", "torch.Tensor?"),
    "a space before it": (" torch", "Tensor", "?torch.Tensor"),
    "Cyrillic": ("t\u043erch", "Tensor", "t??rch.Tensor"),
    "of full width": ("torch", "\uff34ensor", "torch.???ensor"),
    "empty": ("torch", "", "torch."),
    "both empty": ("", "", "."),
}


def short(value):
    return b"\x8c" + struct.pack("<B", len(value.encode())) + value.encode()


def zipped(data, more=()):
    """An archive with this data.pkl."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        # It warns of the second entry of a name.
        warnings.simplefilter("ignore")
        for path, content in [("data.pkl", data), ("byteorder", b"little"), ("data/0", STORAGE.data), ("version", b"3\n"), *more]:
            archive.writestr(zipfile.ZipInfo(f"archive/{path}" if path[0] != "/" else path[1:], (1980, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def refused_at(before, culprit, after, rule, shown, more=()):
    """A file whose data.pkl is refused where the culprit begins."""
    data = before + culprit + after
    file = zipped(data, more)
    return file, rule, shown, file.index(data) + len(before)


def named_by_memo():
    """Names put under numbers that a scanner which counts MEMOIZE looks up as others."""
    harmless = short("collections") + b"q\x09" + short("OrderedDict") + b"q\x08"
    names = b"(" + harmless + short("os") + b"\x94" + short("system") + b"\x94t"
    return b"\x80\x04" + names, b"h\x02h\x03"


def with_hooks(culprit):
    """A tensor's hooks are what the culprit makes: deep within a value that is good otherwise."""
    hooks = name("collections", "OrderedDict") + b")R"
    before, _, after = VALUE.partition(hooks)
    return b"\x80\x02" + before, culprit, after + b"."


def with_class(culprit):
    """The class of a storage in a persistent id."""
    before, _, after = VALUE.partition(name("torch", "FloatStorage"))
    return b"\x80\x02" + before, culprit, after + b"."


SYSTEM = ("pt §Pickle Name", "os.system")
memo_before, memo_names = named_by_memo()


def opcode(shown):
    return ("pt §Pickle Opcode", f"the opcode {shown} is refused")


# In an archive's data.pkl: before, culprit, after, rule, what the message says.
IN_DATA_PKL = {
    "a stream that breaks behind the payload": (b"\x80\x02", RUN, b"\xff\xff", *SYSTEM),
    "a stream that ends behind the payload": (b"\x80\x02", RUN, b"", *SYSTEM),
    "a payload that is popped": (b"\x80\x02", RUN, b"0" + VALUE + b".", *SYSTEM),
    "a payload that is overwritten": (b"\x80\x02}" + text("a"), RUN, b"s" + text("a") + b"Ns.", *SYSTEM),
    "a payload among the hooks": (*with_hooks(RUN), *SYSTEM),
    "a payload in place of the storage's class": (*with_class(name("os", "system")), *SYSTEM),
    "names from the memo": (memo_before + memo_names, b"\x93", b"(" + COMMAND + b"tR.", *SYSTEM),
    "names of Python 2": (b"\x80\x04U\x02osU\x06system", b"\x93", b"(" + COMMAND + b"tR.", *SYSTEM),
    "names that are bytes": (b"\x80\x04C\x02osC\x06system", b"\x93", b"(" + COMMAND + b"tR.", "pt §Pickle Type", ""),
    "a name that a function would make": (
        b"\x80\x04" + short("os"), name("builtins", "getattr"), b"(NNtR\x93.", "pt §Pickle Name", "builtins.getattr"),
    "INST": (b"\x80\x02(" + COMMAND, b"ios\nsystem\n", b".", *opcode("INST")),
    "OBJ": (b"\x80\x02(", name("os", "system"), COMMAND + b"o.", *SYSTEM),
    "OBJ of a known class": (b"\x80\x02(" + name("collections", "OrderedDict"), b"o", b".", *opcode("OBJ")),
    "NEWOBJ": (b"\x80\x02", name("os", "system"), COMMAND + b"\x85\x81.", *SYSTEM),
    "NEWOBJ_EX": (b"\x80\x04" + name("collections", "OrderedDict") + b")}", b"\x92", b".", *opcode("NEWOBJ_EX")),
    "EXT1": (b"\x80\x02", b"\x82\x01", b"(" + COMMAND + b"tR.", *opcode("EXT1")),
    "PERSID": (b"\x80\x02", b"P0\n", b".", *opcode("PERSID")),
    "POP": (b"\x80\x02N", b"0", VALUE + b".", *opcode("POP")),
    "a byte that is not an opcode": (b"\x80\x02", b"\xff", VALUE + b".", "pt §Pickle Opcode", "the byte 0xFF is not an opcode"),
    "__setstate__ planted by BUILD": (
        b"\x80\x02" + name("collections", "OrderedDict") + b")R}" + text("__setstate__"), name("os", "system"),
        b"sb" + COMMAND + b"b.", *SYSTEM),
    "protocol 0, which has no first byte": (b"", b"cos\nsystem\n", b"(S': >ran'\ntR.", "pt §Pickle Protocol", ""),
    "text before the payload": (b"", b"S'PK'\n", b"0" + RUN + b".", "pt §Pickle Protocol", ""),
    "a protocol that is to come": (b"", b"\x80\x06", RUN + b".", "pt §Pickle Protocol", ""),
    "a second protocol": (b"\x80\x02", b"\x80\x04", RUN + b".", "pt §Pickle Protocol", "PROTO: it is not the first opcode"),
    "a pickle behind the pickle": (VALID, b"\x80", b"\x02" + RUN + b".", "pt §Pickle Trailing", ""),
    "a pickle within a pickle": (
        b"\x80\x03", name("pickle", "loads"), b"(C" + bytes([len(RUN) + 3]) + b"\x80\x02" + RUN + b".tR.",
        "pt §Pickle Name", "pickle.loads"),
    "a payload in a frame that is too long": (
        b"\x80\x04", b"\x95" + struct.pack("<Q", 1 << 40), RUN + b".", "pt §Pickle Truncated", "FRAME"),
}  # fmt: skip
structured = len(IN_DATA_PKL)
for label, pair in {f"{module} {attribute}": (module, attribute) for module, attribute in PAIRS}.items():
    shown = ".".join(pair)
    IN_DATA_PKL[f"{label} by GLOBAL"] = (b"\x80\x02}" + text("k"), name(*pair), b"(tRs.", "pt §Pickle Name", shown)
    names = short(pair[0]) + short(pair[1])
    IN_DATA_PKL[f"{label} by STACK_GLOBAL"] = (b"\x80\x04" + names, b"\x93", b")R.", "pt §Pickle Name", shown)
for label, (module, attribute, shown) in ODD_PAIRS.items():
    names = short(module) + short(attribute)
    IN_DATA_PKL[f"a name: {label}"] = (b"\x80\x04" + names, b"\x93", b")R.", "pt §Pickle Name", shown)
NAMED = list(IN_DATA_PKL)[structured:]
FILES = {label: refused_at(*parts) for label, parts in IN_DATA_PKL.items()}

# In a TorchScript archive classes of __torch__ are records, and nothing that can be called.
CONSTANTS = [("constants.pkl", b"\x80\x02).")]
FILES["a record of TorchScript that is called"] = refused_at(
    b"\x80\x02" + name("__torch__.os", "system") + COMMAND + b"\x85", b"R", b".", "pt §Pickle Call", "", more=CONSTANTS
)
FILES["a payload in TorchScript"] = refused_at(b"\x80\x02", RUN, b".", *SYSTEM, more=CONSTANTS)


def legacy(place):
    """Stacked pickles, the payload in one of them."""
    pickles = [
        b"\x80\x02\x8a\x0a" + MAGIC.to_bytes(10, "little") + b".",
        b"\x80\x02" + integer(1001) + b".",
        b"\x80\x02}.",
        b"\x80\x02}.",
        b"\x80\x02].",
    ]
    before = b"".join(pickles[:place])
    return before + b"\x80\x02" + RUN + b"." + b"".join(pickles[place + 1 :]), *SYSTEM, len(before) + 2


for place, label in enumerate(("system facts", "object", "keys"), start=2):
    FILES[f"a payload in the {label} of the legacy format"] = legacy(place)


STRUCTURED = [label for label in FILES if label not in NAMED]


def patched(data, changes, entry=b"archive/data.pkl", central=True):
    """An archive with bytes of one entry's header replaced, central or local."""
    file = bytearray(data)
    signature, fixed = (b"PK\1\2", 46) if central else (b"PK\3\4", 30)
    at = file.index(entry, file.index(signature) + 4) - fixed
    assert file[at : at + 4] == signature
    for offset, value in changes.items():
        file[at + offset : at + offset + len(value)] = value
    return bytes(file)


BAD = zipped(b"\x80\x02" + RUN + b".")
GOOD = pt(TENSORS)
# Archives whose headers lie, and the rule that each breaks; None for what the format allows and is not read.
ARCHIVES = {
    "CVE-2025-1944, another name in the local header": (patched(BAD, {30: b"archive/data.txt"}, central=False), "zip §Entry LocalHeader"),
    "CVE-2025-1945, marked as encrypted": (patched(BAD, {8: b"\x01"}), None),
    "CVE-2025-1945, marked as encrypted locally": (patched(BAD, {6: b"\x01"}, central=False), "zip §Entry LocalHeader"),
    "CVE-2025-1945, marked as a patch": (patched(patched(BAD, {8: b"\x20"}), {6: b"\x20"}, central=False), None),
    "CVE-2025-10156, another CRC": (patched(patched(GOOD, {16: b"\1\2\3\4"}), {14: b"\1\2\3\4"}, central=False), "pt §Archive Crc"),
    "CVE-2025-10156, another CRC locally": (patched(GOOD, {14: b"\1\2\3\4"}, central=False), "zip §Entry LocalHeader"),
    "CVE-2025-10156, no CRC": (patched(patched(BAD, {16: bytes(4)}), {14: bytes(4)}, central=False), "pt §Pickle Name"),
    "a method that is unknown": (patched(patched(BAD, {10: b"\x63"}), {8: b"\x63"}, central=False), None),
    "two that are called data.pkl": (zipped(VALID, more=[("data.pkl", b"\x80\x02" + RUN + b".")]), "pt §Archive DuplicateEntry"),
    "another data.pkl elsewhere": (zipped(VALID, more=[("/other/data.pkl", b"\x80\x02" + RUN + b".")]), "pt §Archive Root"),
    "a shorter length locally": (patched(BAD, {18: b"\x04\0\0\0\x04\0\0\0"}, central=False), "zip §Entry LocalHeader"),
    "bytes behind the end": (GOOD + b"\x80\x02" + RUN + b".", "zip §Directory EndRecord"),
    "two archives": (GOOD + BAD, "zip §Directory Bounds"),
}


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("pickle"), io.BytesIO())
    return out.getvalue()


WITHOUT_PICKLE = {
    "a pickle alone": b"\x80\x02" + RUN + b".",
    "a pickle of protocol 0": b"cos\nsystem\n(S': >ran'\ntR.",
    "gzip": gzip.compress(b"\x80\x02" + RUN + b"."),
    "a magic number with a byte before it": b"\0\x80\x02\x8a\x0a" + MAGIC.to_bytes(10, "little") + b".",
}


@pytest.fixture(scope="module")
def server(folder, share_server):
    for number, file in enumerate(FILES.values()):
        (folder / f"f{number}.pt").write_bytes(file[0])
    for number, data in enumerate(ARCHIVES.values()):
        (folder / f"z{number}.pth").write_bytes(data[0])
    for number, data in enumerate(WITHOUT_PICKLE.values()):
        (folder / f"n{number}.bin").write_bytes(data)
    (folder / "good.pt").write_bytes(GOOD)
    (folder / "tar.bin").write_bytes(tar())
    return share_server(folder)


@pytest.fixture(scope="module")
def listed(server):
    return {entry["name"]: entry.get("error") for entry in get(server, "/v1/models?limit=1000").json()["models"]}


def assert_refused(server, listed, label):
    _, rule, shown, offset = FILES[label]
    model = f"f{list(FILES).index(label)}"
    answer = get(server, model_path(model))
    assert_problem(answer, 422, "invalid-model")
    problem = answer.json()
    assert (problem["rule"], problem["offset"]) == (rule, offset), problem
    if rule == "pt §Pickle Name":
        assert problem["detail"] == f"{shown} is not a supported name"
    assert shown in problem["detail"]
    assert listed[model]["detail"] == problem["detail"]


@pytest.mark.parametrize("label", STRUCTURED)
def test_a_payload_is_refused_by_rule_name_and_offset(server, listed, label):
    assert_refused(server, listed, label)


def test_names_outside_the_table_are_refused_by_either_opcode(server, listed):
    assert len(NAMED) > 100
    for label in NAMED:
        assert_refused(server, listed, label)


@pytest.mark.parametrize("label", ARCHIVES)
def test_archives_whose_headers_lie_are_refused(server, listed, label):
    model = f"z{list(ARCHIVES).index(label)}"
    answer = get(server, model_path(model))
    assert_problem(answer, 422, "invalid-model")
    problem = answer.json()
    assert (problem.get("rule"), listed[model]["detail"]) == (ARCHIVES[label][1], problem["detail"])
    assert problem["offset"] < len(ARCHIVES[label][0])


@pytest.mark.parametrize("label", WITHOUT_PICKLE)
def test_what_is_no_archive_of_torch_is_no_model(server, folder, listed, label):
    model = f"n{list(WITHOUT_PICKLE).index(label)}"
    assert model not in listed
    assert get(server, model_path(model)).status == 404
    result = subprocess.run([PROGRAM, "verify", folder / f"{model}.bin"], capture_output=True, text=True)
    assert result.returncode == 1, result.stdout + result.stderr


def test_a_tar_of_before_the_archives_is_listed_as_such(server, listed):
    assert "a tar archive, as PyTorch wrote before 0.1.10, which is not supported" in listed["tar"]["detail"]
    assert get(server, model_path("tar")).status == 422


@pytest.mark.parametrize("command", [["ls", "--json"], ["verify"]])
@pytest.mark.parametrize("label", ["a payload that is popped", "a pickle behind the pickle"])
def test_the_command_line_refuses_as_the_server_does(tmp_path, command, label):
    data, rule, shown, offset = FILES[label]
    (tmp_path / "f.pt").write_bytes(data)
    result = subprocess.run([PROGRAM, *command, "f.pt"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode != 0
    assert (result.stdout + result.stderr).endswith(f"[{rule}, offset {offset}]\n")
    assert shown in result.stdout + result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["f.pt"]
