"""GET …/objects/{object}/{component}: the bytes, and the fields that go with them."""

import struct

import pytest

from containers import WIDTHS, Component, Object, dense, dense_encoded, pattern, seekable, zstd_dense, zt01, zt1, zt10, zt2
from wire import assert_problem, component_path, eventually, get, head, sha256_field, verify

LOGICAL = [
    ("u8", "f8_e4m3fn", 1), ("u8", "f8_e5m2", 1), ("u8", "f8_e4m3fnuz", 1), ("u8", "f8_e5m2fnuz", 1),
    ("f32", "complex64", 2), ("f64", "complex128", 2),
]  # fmt: skip
BIG = pattern(300_000, seed=7)
GIVEN = ("Content-Type", "Content-Length", "ETag", "Last-Modified", "Accept-Ranges", "Cache-Control")


def data_of(dtype, count):
    return bytes([index & 1 for index in range(count)]) if dtype == "bool" else pattern(WIDTHS[dtype] * count)


def big_endian(dtype, count):
    """(stored, served): the bytes of a big-endian 0.1 file, and the same numbers in little-endian order."""
    served = pattern(WIDTHS[dtype] * count, seed=3)
    width = WIDTHS[dtype]
    stored = b"".join(served[at : at + width][::-1] for at in range(0, len(served), width))
    return stored, served


def zt01_big(dtype, shape):
    count = 1
    for extent in shape:
        count *= extent
    return dense(big_endian(dtype, count)[0], dtype, shape, digest="crc32c", fields={"data_endianness": "big"})


@pytest.fixture(scope="module")
def server(folder, share_server):
    types = {dtype: dense(data_of(dtype, 6), dtype, [2, 3]) for dtype in WIDTHS}
    for dtype, logical, factor in LOGICAL:
        types[logical] = dense(pattern(6 * factor * WIDTHS[dtype]), dtype, [2, 3], type=logical)
    (folder / "types.zt").write_bytes(zt1(types))
    special = {
        "scalar": dense(struct.pack("<f", 1.5), "f32", []),
        "empty": dense(b"", "f32", [0, 4]),
        "empty zstd": zstd_dense(b"", "u8", [0]),
        "zstd": zstd_dense(BIG),
        "undigested": zstd_dense(BIG, digest=None),
        "unlengthed": zstd_dense(BIG, states_length=False),
        "unknown": dense_encoded(b"12345678", b"????", "lz4", digest="sha256"),
        "bad zstd": dense_encoded(b"12345678", b"not a frame", "zstd", digest="sha256"),
        "long zstd": Object([4], {"data": Component(zstd_dense(BIG).components["data"].stored, encoding="zstd", decoded=b"1234")}),
        "csr": Object(
            [2, 3],
            {
                "values": Component(pattern(8), "f32"),
                "indices": Component(struct.pack("<2Q", 0, 2), "u64"),
                "indptr": Component(struct.pack("<3Q", 0, 1, 2), "u64"),
            },
            "sparse_csr",
        ),
        "odd format": Object([3], {"data": Component(b"123"), "x/y": Component(b"4567", type="o\nw")}, "my→format"),
    }
    (folder / "special.zt").write_bytes(zt1(special))
    (folder / "v2.zt").write_bytes(
        zt2(
            {
                "seekable": dense_encoded(BIG, seekable(BIG), "zt.zstd-seekable/1", digest="xxh3"),
                "raw": dense(BIG, digest="xxh3"),
                "sha": dense(BIG, digest="sha256"),
                "unknown": dense_encoded(b"1234", b"??", "x.future/1", digest="xxh3"),
            }
        )
    )
    (folder / "v01.zt").write_bytes(
        zt01({dtype: zt01_big(dtype, [2, 3]) for dtype in WIDTHS if WIDTHS[dtype] > 1} | {"many": zt01_big("f64", [5000])})
    )
    (folder / "v10.zt").write_bytes(zt10({"w": dense(pattern(64), "f32", [4, 4], digest="crc32c"), "z": zstd_dense(BIG, digest="crc32c")}))
    return share_server(folder)


def component(server, model, name, role="data", query="", **fields):
    return get(server, component_path(model, name, role) + query, **fields)


@pytest.mark.parametrize("dtype, name, factor", [*((dtype, dtype, 1) for dtype in WIDTHS), *LOGICAL])
def test_bytes_of_every_type_are_exact(server, dtype, name, factor):
    answer = component(server, "types", name)
    assert (answer.status, answer.body) == (200, data_of(dtype, 6 * factor))
    assert [answer[f"ZT-{field}"] for field in ("Dtype", "Type", "Shape", "Format")] == [dtype, name, "2,3", "dense"]


def test_fields_are_those_documented(server):
    answer = component(server, "types", "f32")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Length"] == "24"
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["ETag"].startswith('"') and answer["ETag"].endswith('"')
    assert answer["Last-Modified"].endswith(" GMT")
    assert answer.fields["Cache-Control"]
    assert answer["Repr-Digest"] == sha256_field(data_of("f32", 6))


def test_scalar_has_no_shape_field(server):
    answer = component(server, "special", "scalar")
    assert answer.body == struct.pack("<f", 1.5)
    assert "ZT-Shape" not in answer.fields


@pytest.mark.parametrize("name, shape", [("empty", "0,4"), ("empty zstd", "0")])
def test_empty_tensor_is_200_without_bytes(server, name, shape):
    answer = component(server, "special", name)
    assert (answer.status, answer.body, answer["Content-Length"]) == (200, b"", "0")
    assert answer["ZT-Shape"] == shape


@pytest.mark.parametrize("model, name", [
    ("special", "zstd"), ("special", "undigested"), ("special", "unlengthed"), ("v10", "z"), ("v2", "seekable"), ("v2", "raw"),
])  # fmt: skip
def test_decoded_bytes_are_exact_and_ranges_address_them(server, model, name):
    whole = component(server, model, name)
    assert whole.status == 200
    assert whole.body == BIG
    assert "Content-Encoding" not in whole.fields
    for first, last in ((0, 0), (65_535, 65_536), (131_000, 262_200), (299_999, 299_999)):
        part = component(server, model, name, Range=f"bytes={first}-{last}")
        assert part.status == 206
        assert part.body == BIG[first : last + 1]
        assert part["Content-Range"] == f"bytes {first}-{last}/300000"
        assert part["ETag"] == whole["ETag"]


def test_a_known_sha256_is_sent_with_the_bytes_that_it_covers(server):
    assert component(server, "v2", "sha")["Repr-Digest"] == sha256_field(BIG)
    assert component(server, "v2", "sha", Range="bytes=5-9")["Repr-Digest"] == sha256_field(BIG)
    for model, name in (("special", "zstd"), ("v2", "raw"), ("v2", "seekable")):
        assert component(server, model, name).fields.get("Repr-Digest") in (None, sha256_field(BIG))


def test_stored_form_of_a_compressed_component(server):
    stored = zstd_dense(BIG).components["data"].stored
    answer = component(server, "special", "zstd", query="?representation=stored")
    assert answer.status == 200
    assert answer.body == stored
    assert "Content-Encoding" not in answer.fields
    assert answer["Repr-Digest"] == sha256_field(stored)
    decoded = component(server, "special", "zstd", query="?representation=decoded")
    assert decoded.body == BIG
    assert answer["ETag"] != decoded["ETag"]
    part = component(server, "special", "zstd", query="?representation=stored", Range="bytes=2-5")
    assert (part.status, part.body) == (206, stored[2:6])


@pytest.mark.parametrize("value", ["", "packed", "Stored"])
def test_senseless_representation_is_refused(server, value):
    assert_problem(component(server, "v2", "raw", query=f"?representation={value}"), 400, "invalid-request")


@pytest.mark.parametrize("model, stored", [("special", b"????"), ("v2", b"??")])
def test_unknown_encoding_is_refused_but_there_as_stored(server, model, stored):
    problem = assert_problem(component(server, model, "unknown"), 422, "unsupported-encoding")
    assert problem["detail"]
    assert_problem(component(server, model, "unknown", Range="bytes=0-0"), 422, "unsupported-encoding")
    answer = component(server, model, "unknown", query="?representation=stored")
    assert (answer.status, answer.body) == (200, stored)


@pytest.mark.parametrize("name", ["bad zstd", "long zstd"])
def test_a_component_that_does_not_decode_is_never_served(server, name):
    answer = component(server, "special", name)
    assert_problem(answer, 500, "corrupt-component")
    assert component(server, "special", name, Range="bytes=0-0").status == 500


def test_big_endian_data_is_served_little_endian(server):
    for dtype in (dtype for dtype, width in WIDTHS.items() if width > 1):
        stored, served = big_endian(dtype, 6)
        assert component(server, "v01", dtype).body == served, dtype
        assert component(server, "v01", dtype, query="?representation=stored").body == stored, dtype


def test_ranges_of_swapped_data_begin_and_end_anywhere(server):
    _, served = big_endian("f64", 5000)
    assert component(server, "v01", "many").body == served
    for first in (0, 3, 8):
        for last in (first, first + 7, first + 8, 39_999):
            part = component(server, "v01", "many", Range=f"bytes={first}-{last}")
            assert part.body == served[first : last + 1], (first, last)


def test_parts_of_a_sparse_object_carry_their_own_type(server):
    values = component(server, "special", "csr", "values")
    assert (values.body, values["ZT-Dtype"], values["ZT-Format"], values["ZT-Shape"]) == (pattern(8), "f32", "sparse_csr", "2,3")
    assert component(server, "special", "csr", "indptr").body == struct.pack("<3Q", 0, 1, 2)
    assert_problem(component(server, "special", "csr", "data"), 404, "component-not-found")


def test_texts_of_the_file_that_no_field_can_hold_are_left_out(server):
    answer = component(server, "special", "odd format", "x/y")
    assert answer.status == 200 and answer.body == b"4567"
    assert "ZT-Format" not in answer.fields
    assert "ZT-Type" not in answer.fields
    assert answer["ZT-Dtype"] == "u8"


@pytest.mark.parametrize(
    "model, name, query",
    [
        ("types", "f32", ""), ("special", "empty", ""), ("special", "zstd", ""), ("special", "zstd", "?representation=stored"),
        ("v2", "seekable", ""), ("v01", "f32", ""),
    ],
)  # fmt: skip
def test_head_equals_get_without_the_body(server, model, name, query):
    path = component_path(model, name) + query
    got, asked = get(server, path), head(server, path)
    assert (asked.status, asked.body) == (200, b"")
    changing = {"date", "x-request-id"}
    if got["Repr-Digest"] is None:
        changing.add("repr-digest")  # it may have been found in between
    shown = {key.lower() for key in got.fields.keys()} - changing
    assert shown == {key.lower() for key in asked.fields.keys()} - changing
    for field in [*GIVEN, *(key for key in got.fields.keys() if key.startswith("ZT-"))]:
        assert asked[field] == got[field], field


def test_head_ignores_range(server):
    answer = head(server, component_path("types", "f32"), Range="bytes=0-3")
    assert (answer.status, answer["Content-Length"]) == (200, "24")


def test_head_of_errors_has_the_status(server):
    assert head(server, component_path("types", "nothing")).status == 404
    assert head(server, component_path("special", "unknown")).status == 422


def test_a_sha256_computed_by_verification_is_sent(server):
    assert verify(server, "v10")["state"] == "verified"
    eventually(lambda: component(server, "v10", "w").status == 200)
    assert component(server, "v10", "w").fields.get("Repr-Digest") in (None, sha256_field(pattern(64)))
