"""URLs of https: a certificate that is not trusted, or a server without TLS, is told with what to do."""

import pytest
from certificates import Authority
from containers import dense, pattern, zt1

MODEL = zt1({"a": dense(pattern(100_000, seed=41), digest="sha256")})


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "m.zt").write_bytes(MODEL)
    return folder


@pytest.fixture
def secure(start_server, root, authority):
    return f"https://127.0.0.1:{start_server(root, *authority.sign('server').arguments).port}"


def test_a_server_of_an_authority_that_is_named_is_trusted(secure, authority, ztserve, tmp_path):
    result = ztserve("pull", secure + "/m", "--ca", authority.cert, "-o", tmp_path / "m.zt")
    assert (result.status, result.errors) == (0, "")
    assert (tmp_path / "m.zt").read_bytes() == MODEL
    for command in ("ls", "verify", "stats"):
        assert ztserve(command, secure + "/m", "--ca", authority.cert).status == 0
    assert ztserve("convert", secure + "/m", tmp_path / "m.npz", "--quiet", "--ca", authority.cert).status == 0


def test_a_server_that_is_not_trusted_gets_no_request_and_the_option_is_named(secure, ztserve, tmp_path):
    for arguments in (["pull", secure + "/m", "-o", tmp_path / "m.zt"], ["ls", secure + "/m"]):
        result = ztserve(*arguments)
        assert result.status == 1 and len(result.error_lines) == 1
        assert "certificate" in result.errors and "--ca FILE" in result.errors
    assert not (tmp_path / "m.zt").exists()


def test_a_server_without_tls_is_told(start_server, root, ztserve):
    result = ztserve("ls", f"https://127.0.0.1:{start_server(root).port}/m")
    assert result.status == 1 and len(result.error_lines) == 1
    assert "should the URL begin with http:?" in result.errors
