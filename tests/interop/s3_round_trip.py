"""What every client of S3 does with files: a small one, and one that most upload in parts."""

import containers

SMALL = b"a few words\n"
LARGE = containers.pattern((40 << 20) + 13)
# They have no way to ask for a range.
WITHOUT_RANGES = {"s5cmd"}


def assert_round_trip(client, root, sent):
    uploaded = client.call(
        ["put", str(sent / "small"), "acme/in/small.txt"],
        ["put", str(sent / "large"), "acme/large.bin"],
        ["size", "acme/large.bin"],
        ["get", "acme/large.bin", "got"],
        ["copy", "acme/large.bin", "acme/copy.bin"],
        ["names", "acme/"],
        ["folders", "acme/"],
    )
    assert uploaded[2] == len(LARGE)
    assert uploaded[5:] == [["acme/copy.bin", "acme/in/small.txt", "acme/large.bin"], ["acme/in/"]]
    for copied in (root / "acme" / "large.bin", root / "acme" / "copy.bin", client.folder / "got"):
        assert copied.read_bytes() == LARGE
    assert (root / "acme" / "in" / "small.txt").read_bytes() == SMALL
    if client.name not in WITHOUT_RANGES:
        assert client.call(["ranged", "acme/large.bin", 10_000_001, 10_000_020]) == [LARGE[10_000_001:10_000_020].hex()]
    client.call(["delete", "acme/copy.bin"], ["delete", "acme/in/small.txt"])
    assert [path.name for path in (root / "acme").rglob("*") if path.is_file()] == ["large.bin"]
