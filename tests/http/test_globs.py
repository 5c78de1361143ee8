"""Globs made to be expensive: they cost a worker a moment, and no other request waits."""

import json
import struct
import threading
import time

import pytest

from wire import assert_problem, get, model_path

NAMES = 3_000
LETTERS = 200
# As long as 64 of them can be in one target of 8192 bytes.
HOSTILE = "&".join(["match=*" + "a" * 116 + "b"] * 64)
# Characters of three bytes, each of which cuts the alphabet in two more pieces, in classes and alone.
TANGLED = "&".join(
    "match=*" + "".join(f"[!{chr(0x800 + 40 * n + 2 * i)}-\uffff]?{chr(0x4E00 + 40 * n + 2 * i)}*" for i in range(8)) + "b"
    for n in range(28)
)  # fmt: skip
# Requested in the meantime.
SOON_S = 60


@pytest.fixture(scope="module")
def server(folder, share_server):
    """Names that differ in their beginning only; no object has data."""
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"{index:06}{'a' * LETTERS}": empty for index in range(NAMES)}).encode()
    (folder / "many.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    small = json.dumps({"aab": empty, "é→b": empty}).encode()
    (folder / "small.safetensors").write_bytes(struct.pack("<Q", len(small)) + small)
    return share_server(folder)


def quoted(query):
    return "".join(letter if letter < "\x80" else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in query)


def test_hostile_globs_are_answered_while_others_are(server):
    """Four at once are more than a small machine has workers."""
    answers = []
    paths = [f"{model_path('many')}?{HOSTILE}"] * 3 + [f"{model_path('many')}/export?format=zt&{HOSTILE}"]
    askers = [threading.Thread(target=lambda path=path: answers.append(get(server, path))) for path in paths]
    for asker in askers:
        asker.start()
    while any(asker.is_alive() for asker in askers):
        asked = time.monotonic()
        assert get(server, "/healthz").status == 200
        assert set(get(server, model_path("small") + "?match=a*").json()["objects"]) == {"aab"}
        assert time.monotonic() - asked < SOON_S
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 404]
    assert all(answer.json()["objects"] == {} for answer in answers if answer.status == 200)


def test_globs_that_cut_the_alphabet_into_pieces_are_answered(server):
    target = f"{model_path('many')}?{quoted(TANGLED)}"
    assert 6000 < len(target) <= 8192
    assert get(server, target).json()["objects"] == {}


def test_more_bytes_than_a_target_has_are_refused(server):
    assert_problem(get(server, f"{model_path('small')}?match={'a' * 1025}"), 400, "invalid-request")
    assert get(server, f"{model_path('small')}?match={'a' * 1024}").json()["objects"] == {}
