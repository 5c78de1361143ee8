"""ztserve token: a token that the server accepts, and a tokens file that stays private and whole."""

import hashlib
import json
import os
import re
import stat
import struct
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from containers import dense, zt1
from server_process import PROGRAM

ACL, NO_ID = "system.posix_acl_access", 0xFFFFFFFF
LINE = re.compile(r"[0-9a-f]{64}")


@pytest.fixture
def tokens(tmp_path):
    return tmp_path / "tokens"


@pytest.fixture
def make(ztserve, tokens):
    def make(*arguments, **options):
        return ztserve("token", *arguments, "--tokens", tokens, **options)

    return make


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def hash_of(result):
    return hashlib.sha256(result.output.strip().encode()).hexdigest()


def fails(result, path, words):
    """Nothing is printed and nothing has changed."""
    assert result.status in (1, 2) and result.output == ""
    assert len(result.error_lines) == 1 and words in result.errors
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["tokens"]


def test_a_token_is_printed_once_and_its_hash_is_stored(make, tokens):
    result = make("grafana", "read")
    assert result.status == 0
    assert LINE.fullmatch(result.output.strip()) and result.output.count("\n") == 1
    assert tokens.read_text() == f"grafana  read  {hash_of(result)}\n"
    assert result.output.strip() not in tokens.read_text() + result.errors
    assert str(tokens) in result.errors and "SIGHUP" in result.errors


def test_quiet_prints_only_the_token(make):
    result = make("grafana", "read", "--quiet")
    assert (result.status, result.errors) == (0, "") and LINE.fullmatch(result.output.strip())


def test_tokens_differ(make):
    assert make("a", "read").output != make("b", "read").output


def test_a_new_file_is_private_whatever_the_umask(tokens):
    command = ["sh", "-c", 'umask 0; exec "$@"', "sh", str(PROGRAM), "token", "a", "read", "--tokens", str(tokens)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert mode(tokens) == 0o600


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o400])
def test_an_existing_file_keeps_its_text_and_its_rights(make, tokens, kept):
    before = "# clients\n\nold read " + "0" * 64
    tokens.write_text(before)
    tokens.chmod(kept)
    result = make("new", "write", "acme/*", "shared-[ab]")
    assert result.status == 0, result.errors
    assert tokens.read_text() == f"{before}\nnew  write  {hash_of(result)}  acme/*  shared-[ab]\n"
    assert mode(tokens) == kept


def test_an_existing_file_keeps_its_owner(make, tokens):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    tokens.touch(0o640)
    os.chown(tokens, 1234, 4321)
    assert make("a", "read").status == 0
    assert (tokens.stat().st_uid, tokens.stat().st_gid, mode(tokens)) == (1234, 4321, 0o640)


def test_an_existing_file_keeps_its_access_control_list(make, tokens):
    """The mode shows the list's mask as the rights of the group, which here has none."""
    own, user, group, mask, other = (1, 6, NO_ID), (2, 4, 1234), (4, 0, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID)
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (own, user, group, mask, other))
    tokens.touch(0o600)
    try:
        os.setxattr(tokens, ACL, acl)
    except OSError:
        pytest.skip("no access control lists here")
    assert mode(tokens) == 0o640
    assert make("a", "read").status == 0
    assert os.getxattr(tokens, ACL) == acl


def test_a_link_stays_a_link(make, tokens, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    tokens.symlink_to(tmp_path / "elsewhere/tokens")
    (tmp_path / "elsewhere/tokens").touch(0o600)
    assert make("a", "read").status == 0
    assert tokens.is_symlink() and tokens.read_text().startswith("a  read  ")


@pytest.mark.parametrize("open_to_all", [0o604, 0o644])
def test_a_file_that_every_user_can_read_is_refused(make, tokens, open_to_all):
    tokens.write_text("")
    tokens.chmod(open_to_all)
    fails(make("a", "read"), tokens, "every user of this machine can read it")
    assert tokens.read_text() == ""


def test_a_name_that_exists_is_refused(make, tokens):
    assert make("a", "read").status == 0
    before = tokens.read_text()
    fails(make("a", "admin"), tokens, "line 1: there already is a client named a")
    assert tokens.read_text() == before


def test_a_file_with_a_mistake_is_refused(make, tokens):
    tokens.write_text("nonsense\n")
    tokens.chmod(0o600)
    fails(make("a", "read"), tokens, "line 1")
    assert tokens.read_text() == "nonsense\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "a name and a scope"),
        (["a"], "a name and a scope"),
        (["a", "everything"], "read, write or admin"),
        (["", "read"], "name"),
        (["a read x", "read"], "name"),
        (["a\nb", "read"], "name"),
        (["#a", "read"], "name"),
        (["n" * 64, "read"], "name"),
        (["a", "read", ""], "glob"),
        (["a", "read", "x y"], "glob"),
        (["a", "read", "#x"], "glob"),
        (["a", "read", "[x"], "glob"),
        (["a", "read", *["x"] * 65], "64"),
    ],
)
def test_a_line_that_would_mean_something_else_is_refused(refused, tokens, arguments, words):
    assert words in refused("token", *arguments, "--tokens", tokens)
    assert not tokens.exists()


def test_control_characters_are_refused(ztserve, tokens, tmp_path):
    result = ztserve("token", "a\x01b", "read", "--tokens", tokens)
    assert result.status == 1 and "control character" in result.errors and list(tmp_path.iterdir()) == []


def test_the_configuration_names_the_file(ztserve, tokens, tmp_path):
    (tmp_path / "ztserve.json").write_text(json.dumps({"auth": {"tokens": str(tokens)}}))
    assert ztserve("token", "a", "read", "--config", tmp_path / "ztserve.json").status == 0
    environment = {**os.environ, "ZTSERVE_AUTH_TOKENS": str(tokens)}
    assert ztserve("token", "b", "read", environment=environment).status == 0
    assert [line.split()[0] for line in tokens.read_text().splitlines()] == ["a", "b"]


def test_no_file_is_wrong_usage(refused):
    assert "--tokens FILE" in refused("token", "a", "read")


def test_a_folder_that_cannot_be_written_to_is_named(ztserve, tmp_path):
    result = ztserve("token", "a", "read", "--tokens", tmp_path / "nothere/tokens")
    assert result.status == 1 and result.output == "" and "nothere/tokens" in result.errors


def test_a_token_that_cannot_be_printed_is_a_failure(ztserve, tokens):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        assert ztserve("token", "a", "read", "--tokens", tokens, stdout=full).status == 1


def test_commands_at_the_same_time_lose_no_line(make, tokens):
    results = {}

    def add(name):
        results[name] = make(name, "read")

    threads = [threading.Thread(target=add, args=(f"client-{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result.status == 0 for result in results.values())
    lines = {line.split()[0]: line.split()[2] for line in tokens.read_text().splitlines()}
    assert lines == {name: hash_of(result) for name, result in results.items()}


def test_of_two_commands_for_one_name_one_succeeds(make, tokens):
    results = []
    threads = [threading.Thread(target=lambda: results.append(make("a", "read"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [result for result in results if result.status == 0]
    assert tokens.read_text() == f"a  read  {hash_of(winner)}\n"


# --- access keys of S3 ---


@pytest.fixture
def make_key(ztserve, tokens):
    def make(*arguments):
        return ztserve("token", "--s3", *arguments, "--keys", tokens)

    return make


def secret_of(result, name):
    match = re.fullmatch(rf"AWS_ACCESS_KEY_ID={name}\nAWS_SECRET_ACCESS_KEY=([0-9a-f]{{64}})\n", result.output)
    assert match, result
    return match.group(1)


def test_an_access_key_is_printed_as_variables_and_stored_with_its_secret(make_key, tokens):
    first, second = make_key("trainer", "write", "acme/*", "shared-[ab]"), make_key("AKIA+/=", "read", "--quiet")
    assert (first.status, second.status, second.errors) == (0, 0, "")
    one, other = secret_of(first, "trainer"), secret_of(second, re.escape("AKIA+/="))
    assert tokens.read_text() == f"trainer  {one}  write  acme/*  shared-[ab]\nAKIA+/=  {other}  read\n"
    assert mode(tokens) == 0o600
    assert one not in first.errors and str(tokens) in first.errors and "SIGHUP" in first.errors


def test_a_keys_file_that_other_users_can_read_or_with_that_key_is_refused(make_key, tokens):
    assert make_key("a", "read").status == 0
    before = tokens.read_text()
    fails(make_key("a", "admin"), tokens, "line 1: there already is a client named a")
    for open_to_others in (0o604, 0o660, 0o644):
        tokens.chmod(open_to_others)
        fails(make_key("b", "read"), tokens, "other users can read it")
    assert tokens.read_text() == before


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--s3", "a,b", "read", "--keys", "keys"], "access key"),
        (["--s3", "\xe9", "read", "--keys", "keys"], "access key"),
        (["--s3", "a", "read", "--tokens", "tokens"], "--s3 adds to a keys file"),
        (["--s3", "a", "read"], "the keys file is not known"),
        (["a", "read", "--tokens", "tokens", "--keys", "keys"], "--s3"),
    ],
)
def test_access_keys_that_no_client_can_use_are_refused(refused, arguments, words):
    assert words in refused("token", *arguments)


def test_the_configuration_names_the_keys_file(ztserve, tokens, tmp_path):
    (tmp_path / "ztserve.json").write_text(json.dumps({"s3": {"keys": str(tokens)}}))
    assert ztserve("token", "--s3", "a", "read", "--config", tmp_path / "ztserve.json").status == 0
    assert tokens.read_text().startswith("a  ")


# --- with a server ---


def status_of(server, token, path):
    request = urllib.request.Request(server.url + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_server_accepts_the_token_with_its_globs(make, tokens, start_server, root):
    for name in ("mine", "other"):
        (root / f"{name}.zt").write_bytes(zt1({"a": dense(b"1")}))
    token = make("a", "read", "mi*").output.strip()
    server = start_server(root, "--tokens", tokens)
    assert status_of(server, token, "/v1/models/mine") == 200
    assert status_of(server, token, "/v1/models/other") == 403
    assert status_of(server, token[:-1] + ("0" if token[-1] != "0" else "1"), "/v1/models/mine") == 401
