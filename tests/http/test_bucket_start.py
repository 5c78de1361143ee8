"""The start of a server over a bucket: what is wrong is said in one line, and what may go away by itself is waited for."""

import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import meddler as acts
from buckets import bucket_environment
from certificates import Authority
from containers import dense, pattern, zt1
from server_process import PROGRAM
from wire import TIMEOUT_S, eventually, get, model_path

pytestmark = pytest.mark.waits

MODEL = zt1({"w": dense(pattern(1000))})


@pytest.fixture
def bucket(moto_bucket):
    moto_bucket.put("m.zt", MODEL)
    return moto_bucket


def refusal(bucket, place, variables=None, **options):
    """The one line of a start that must fail."""
    place.mkdir(exist_ok=True)
    environment = {**bucket_environment(bucket, place, **options), **(variables or {})}
    if "AWS_ENDPOINT_URL" in environment:
        del environment["ZTSERVE_S3_ENDPOINT"]
    done = subprocess.run(
        [PROGRAM, "serve", "--root", bucket.root, "--listen", "127.0.0.1:0"],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done
    assert done.stdout == ""
    # Beside what the log says of the start itself.
    lines = [line for line in done.stderr.splitlines() if line.startswith("ztserve: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


# --- what a start refuses ---


WRONG = {
    (403, "InvalidAccessKeyId"): ["credentials"],
    (403, "SignatureDoesNotMatch"): ["credentials"],
    (403, "AccessDenied"): ["credentials", "denied", "access"],
    (400, "ExpiredToken"): ["credentials"],
    (403, "RequestTimeTooSkewed"): ["clock"],
    (400, "AuthorizationHeaderMalformed"): ["region"],
    (301, "PermanentRedirect"): ["region", "endpoint"],
    (404, "NoSuchBucket"): ["bucket"],
}


@pytest.mark.parametrize("status, code", WRONG)
def test_start_says_in_one_line_what_is_wrong(bucket, meddler, tmp_path, status, code):
    meddler.meddle(acts.store_error(status, code, "the store's own words"))
    line = refusal(bucket, tmp_path / "place", endpoint=meddler.endpoint)
    assert any(word in line.lower() for word in WRONG[status, code]), line


def test_certificates_that_are_none_are_refused(bucket, tmp_path):
    other = tmp_path / "notes.pem"
    other.write_text("no certificate is in here\n")
    for path in (other, tmp_path, tmp_path / "absent.pem"):
        line = refusal(bucket, tmp_path / "place", s3__ca=path)
        assert "certificates" in line and str(path) in line, line


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:", "a:b:1", "[::1", "x/y"])
def test_address_of_the_environment_that_cannot_be_one_is_refused(bucket, tmp_path, address):
    variables = {"AWS_ENDPOINT_URL": f"http://{address}"}
    line = refusal(bucket, tmp_path / "place", variables)
    assert "s3.endpoint" in line and address in line, line


def test_real_stores_refusals_are_told(engine, tmp_path):
    bucket = engine.bucket()
    bucket.name += "-absent"
    assert "bucket" in refusal(bucket, tmp_path / "place")


def test_real_stores_refusal_of_credentials_is_told(ceph, tmp_path):
    bucket = ceph.bucket()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        environment = {**bucket_environment(bucket, tmp_path), name: "wrongwrongwrongwrong"}
        done = subprocess.run(
            [PROGRAM, "serve", "--root", bucket.root, "--listen", "127.0.0.1:0"],
            env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done
        assert "credentials" in done.stderr.lower(), done.stderr
        assert "wrongwrong" not in done.stderr


# --- the address ---


class Page(BaseHTTPRequestHandler):
    """What a server that is no object store says of a path that it has not."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"<!DOCTYPE html><html><body>there is nothing here<br></body></html>"
        self.send_response(404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    context = None

    def get_request(self):
        connection, address = super().get_request()
        if self.context:
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request, client_address):
        pass


@pytest.fixture
def listen():
    """Starts a server of pages; its address without the scheme."""
    started = []

    def start(certificate=None):
        listener = Listener(("127.0.0.1", 0), Page)
        if certificate:
            listener.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            listener.context.load_cert_chain(certificate.cert, certificate.key)
        threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        started.append(listener)
        return f"127.0.0.1:{listener.server_address[1]}"

    yield start
    for listener in started:
        listener.shutdown()
        listener.server_close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.sign("server")


@pytest.mark.parametrize(
    "scheme, has_tls, is_trusted, words",
    [
        ("https", True, False, ["certificate is not trusted", "s3.ca"]),
        ("https", False, False, ["speaks http, not https"]),
        ("http", True, False, ["speaks https, not http"]),
        ("http", False, False, ["not an object store", "404"]),
        ("https", True, True, ["not an object store", "404"]),
    ],
)
def test_what_listens_at_the_address_is_told(bucket, listen, certificate, authority, tmp_path, scheme, has_tls, is_trusted, words):
    address = f"{scheme}://{listen(certificate if has_tls else None)}"
    line = refusal(bucket, tmp_path / "place", endpoint=address, **({"s3__ca": authority.cert} if is_trusted else {}))
    assert all(word in line for word in words), line


@pytest.mark.parametrize("status, body", [(200, b"ok"), (302, b""), (400, b"bad request"), (405, b"<html></html>")])
def test_answers_that_no_object_store_gives_are_told(bucket, meddler, tmp_path, status, body):
    meddler.meddle(acts.reply(status, body))
    line = refusal(bucket, tmp_path / "place", endpoint=meddler.endpoint)
    assert "not an object store" in line and str(status) in line, line


def test_bucket_of_claims_that_is_wrong_is_told(bucket, tmp_path):
    line = refusal(bucket, tmp_path / "place", {"ZTSERVE_WRITABLE": "true"}, s3__claims_bucket="absent-bucket")
    assert "s3.claims_bucket" in line and "does not exist" in line and "absent-bucket" in line, line


def test_bucket_of_claims_does_not_matter_to_a_reader(bucket, serve_bucket):
    server = serve_bucket(bucket, s3__claims_bucket="absent-bucket")
    assert get(server, model_path("m")).status == 200


# --- what a start accepts ---

RAW, REFERENCE = b"\x01", b"&#x01;"


@pytest.mark.parametrize("token", [RAW, REFERENCE])
@pytest.mark.parametrize("key", [RAW, REFERENCE])
def test_control_character_in_the_first_key_does_not_stop_the_start(bucket, meddler, serve_bucket, key, token):
    """As Ceph lists it: encoding-type=url encodes the keys, but not the continuation token."""

    def act(request, handler):
        true = handler.forward(request)
        if int(request.query.get("max-keys", "1000")) > 1:
            return true
        written = b"%01" if request.query.get("encoding-type") == "url" else key
        first = (
            b"<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>" + written + b"a</Key><Size>1</Size>"
            b"<ETag>x</ETag></Contents><NextContinuationToken>" + token + b"a</NextContinuationToken></ListBucketResult>"
        )
        return acts.replace(true, body=first)

    rule = meddler.meddle(act, "list")
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert rule.used > 0
    assert get(server, "/readyz").status == 200
    assert get(server, model_path("m")).status == 200


# --- what is waited for ---


def test_proxy_that_is_down_is_told_and_waited_for(bucket, meddler, serve_bucket):
    meddler.go_away()
    server = serve_bucket(bucket, s3__proxy=meddler.endpoint)
    assert get(server, "/healthz").status == 200
    assert get(server, "/readyz").status == 503
    eventually(lambda: any("unreachable" in line and "the proxy cannot be used" in line for line in server.log_lines))


@pytest.mark.parametrize("act", [acts.reset, acts.slow_down()])
def test_store_that_does_not_answer_yet_is_waited_for(bucket, meddler, serve_bucket, act):
    meddler.meddle(act)
    server = serve_bucket(bucket, endpoint=meddler.endpoint)
    assert get(server, "/readyz").status == 503
    meddler.stop()
    eventually(lambda: get(server, "/readyz").status == 200, within_s=120)


# --- many models ---


class Held:
    """Reads of models wait until they may go on; how many have come."""

    def __init__(self, meddler):
        self.may_go_on = threading.Event()
        self.rule = meddler.meddle(self.act, "read", when=lambda request: request.key.endswith(".zt"))

    def act(self, request, handler):
        self.may_go_on.wait(TIMEOUT_S)
        return handler.forward(request)

    def await_all(self, least):
        """How many are waiting once no more come."""
        before = eventually(lambda: self.rule.used >= least and self.rule.used)
        time.sleep(0.2)
        while before < self.rule.used:
            before = self.rule.used
            time.sleep(0.2)
        return before


def count_models(server):
    answer = get(server, "/v1/models?limit=1000")
    return len(answer.json()["models"]) if answer.status == 200 else 0


@pytest.mark.parametrize("connections, most", [(8, 6), (64, 48)])
def test_models_are_opened_as_many_at_a_time_as_connections_allow_beside_clients(bucket, meddler, serve_bucket, connections, most):
    for number in range(99):
        bucket.put(f"m{number}.zt", MODEL)
    held = Held(meddler)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(serve_bucket, bucket, endpoint=meddler.endpoint, s3__connections=connections)
        assert held.await_all(most * 3 // 4) <= most
        held.may_go_on.set()
    eventually(lambda: count_models(starting.result()) == 100, within_s=120)


def test_long_start_says_how_far_it_is(bucket, meddler, serve_bucket):
    for number in range(59):
        bucket.put(f"m{number}.zt", MODEL)
    meddler.delay_s = 0.5
    server = serve_bucket(bucket, endpoint=meddler.endpoint, s3__connections=2)
    eventually(lambda: any("of 60 files are read" in line for line in server.log_lines), within_s=120)
