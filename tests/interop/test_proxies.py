"""The configurations in deploy/proxy, each with its proxy in front of a server, at the root of a host name and below a path."""

import json
import re
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest
import requests
from tusclient.client import TusClient

import certificates
import proxies
from environments import run_client
from server_process import TOP, ServerProcess

import tus
from containers import dense, pattern, zt1
from uploads import SMALL, put
from wire import TIMEOUT_S, ask, component_path, connect, eventually, get, model_path, read_head

CONFIGURATIONS = TOP / "deploy" / "proxy"
STARTS = {
    "nginx.conf": proxies.start_nginx,
    "nginx-prefix.conf": proxies.start_nginx,
    "Caddyfile": proxies.start_caddy,
    "Caddyfile-prefix": proxies.start_caddy,
    "haproxy.cfg": proxies.start_haproxy,
    "haproxy-prefix.cfg": proxies.start_haproxy,
    "apache.conf": proxies.start_apache,
    "apache-prefix.conf": proxies.start_apache,
}
PROGRAMS = {"nginx": "nginx", "Caddyfile": "caddy", "haproxy": "haproxy", "apache": "apache2"}
ENVOY = ["envoy.yaml", "envoy-prefix.yaml"]
PREFIX = "/models"
# What proxies decode, merge or resolve if they are allowed to.
NAMES = ["layer.0/weight", "50%", "a b", "..", "a//b", "größe", "what?", "a%2Fb", "semi;colon", "#"]
# More than the proxies hold in memory, and more than nginx accepts by default.
LARGE = zt1({"w": dense(pattern(5_000_000))})
HALF = len(LARGE) // 2


class Front:
    """A proxy in front of a server: targets are those of the server, below the prefix."""

    def __init__(self, proxy, server, root, prefix):
        self.host, self.port, self.url = proxy.host, proxy.port, proxy.url + prefix
        self.context = proxy.context
        self.proxy, self.server, self.root, self.prefix = proxy, server, root, prefix

    def ask(self, method, target, fields=None, body=None):
        return ask(self, method, self.prefix + target, fields, body)

    def follow(self, location, method="GET", fields=None, body=None):
        """A request to what Location named, as a client at the proxy understands it."""
        target = location.removeprefix(self.proxy.url)
        assert target.startswith(f"{self.prefix}/v1/"), location
        return ask(self, method, target, fields, body)


def read_last_head(connection):
    """The status that is not 1xx. Interim heads may come together with the next."""
    received = b""
    while not (statuses := [int(line) for line in re.findall(rb"HTTP/1.1 ([2-5]\d\d) ", received)]):
        more = connection.recv(1 << 16)
        assert more, received
        received += more
    return statuses[0]


def require_proxy(configuration):
    name = next(name for start, name in PROGRAMS.items() if configuration.startswith(start))
    if proxies.program(name) is None:
        pytest.skip(f"skipped: {name} is not installed")


@pytest.fixture(scope="module", params=STARTS)
def front(request, tmp_path_factory):
    configuration = request.param
    require_proxy(configuration)
    folder, root = tmp_path_factory.mktemp("proxy"), tmp_path_factory.mktemp("root")
    (root / "org").mkdir()
    contents = {name: dense(pattern(300_000, seed=index)) for index, name in enumerate(NAMES)}
    (root / "org" / "model.zt").write_bytes(zt1(contents))
    prefix = PREFIX if "prefix" in configuration else ""
    settings = {"ZTSERVE_TRUSTED_PROXIES": "127.0.0.1"} | ({"ZTSERVE_BASE_PATH": prefix} if prefix else {})
    server = ServerProcess(root, "--writable", environment=settings)
    proxy = STARTS[configuration](folder, (CONFIGURATIONS / configuration).read_text(), f"{server.host}:{server.port}")
    yield Front(proxy, server, root, prefix)
    proxy.stop()
    assert server.stop() == 0, server.log


def test_every_configuration_is_tried():
    assert {path.name for path in CONFIGURATIONS.iterdir()} == set(STARTS) | set(ENVOY)


@pytest.mark.parametrize("name", ENVOY)
def test_configurations_of_envoy_are_read_by_its_own_types(name):
    """Envoy itself is not in Debian, so nothing passes through it here."""
    found = json.loads(run_client("envoy", CONFIGURATIONS / name))
    assert found == {"ports": [80], "clusters": ["ztserve"], "routed": ["ztserve"], "timeouts": ["0s"]}


@pytest.mark.parametrize("name", NAMES)
def test_names_arrive_as_they_were_sent(front, name):
    # Dots alone need no escape, but only escaped are they a name.
    answer = front.ask("GET", component_path("org/model", name).replace("/../", "/%2E%2E/"))
    assert answer.status == 200, answer
    assert answer.body == pattern(300_000, seed=NAMES.index(name))


def test_ranges_and_conditions_pass_both_ways(front):
    target = component_path("org/model", NAMES[0])
    whole = pattern(300_000, seed=0)
    one = front.ask("GET", target, {"Range": "bytes=1000-1999"})
    assert (one.status, one["Content-Range"], one.body) == (206, "bytes 1000-1999/300000", whole[1000:2000])
    several = front.ask("GET", target, {"Range": "bytes=0-9,200000-200009"})
    assert several.status == 206 and several["Content-Type"].startswith("multipart/byteranges")
    assert whole[:10] in several.body and whole[200_000:200_010] in several.body
    assert front.ask("GET", target, {"Range": "bytes=300000-"}).status == 416
    assert front.ask("GET", target, {"If-None-Match": one["ETag"]}).status == 304


def test_queries_pass(front):
    target = component_path("org/model", NAMES[0])
    assert front.ask("GET", f"{target}?slice=10:20").body == pattern(300_000, seed=0)[10:20]
    listing = front.ask("GET", "/v1/models?prefix=org%2Fmo&limit=7").json()
    assert [model["name"] for model in listing["models"]] == ["org/model"]


def test_the_server_learns_the_address_of_the_client(front):
    """From the proxy: what the client itself says about it does not count."""
    invented = {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.66", "X-Request-Id": "whose-address"}
    client = HTTPConnection(front.host, front.port, timeout=TIMEOUT_S, source_address=("127.0.0.2", 0))
    client.request("GET", f"{front.prefix}/healthz", headers=invented)
    assert client.getresponse().status == 200
    client.close()
    line = eventually(lambda: next((line for line in front.server.log_lines if "whose-address" in line), None))
    assert 'client="127.0.0.1"' in line and 'forwarded="127.0.0.2"' in line


def test_addresses_in_answers_lead_to_the_proxy(front):
    """Whatever the client says about where it is."""
    invented = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example;proto=https"}
    refs = front.ask("GET", f"{model_path('org/model')}/export?format=reference&match=50%25", invented).json()["refs"]
    assert [url for url, *_ in (value for value in refs.values() if isinstance(value, list))] == [f"{front.url}/files/org/model.zt"]
    manifest = front.ask("GET", model_path("org/model")).json()
    assert manifest["source"]["href"] == f"{front.prefix}/files/org/model.zt"
    assert ask(front, "GET", manifest["source"]["href"]).status == 200


@pytest.mark.parametrize("page, status", [("own", 201), ("http://elsewhere.example", 403)])
def test_only_pages_of_the_proxy_itself_may_write(front, page, status):
    """It passes on the name and the port under which the browser knows it."""
    name = f"org/page-{status}"
    answer = front.ask("PUT", model_path(name), {"Origin": page.replace("own", front.proxy.url)}, SMALL)
    assert answer.status == status, answer


def connections_to(port):
    """The ports from which connections to this one are or were open, as far as the kernel remembers them."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = (line.split()[1:3] for line in lines)
    return {here for here, there in ends if there.endswith(f":{port:04X}")}


def test_connections_to_the_server_are_kept(front):
    assert front.ask("GET", "/healthz").status == 200
    before = connections_to(front.server.port)
    for _ in range(30):
        assert front.ask("GET", "/healthz").status == 200
    # Health checks of HAProxy, and a second process of Apache, may open some.
    assert before and len(connections_to(front.server.port) - before) < 10


@pytest.mark.parametrize("target", [component_path("org/model", NAMES[0]), model_path("org/model"), "/files/org/model.zt"])
def test_head_is_that_of_get(front, target):
    """Also that no proxy compresses or unpacks on its own account, which would change length and tag."""
    seen, headed, direct = front.ask("GET", target), front.ask("HEAD", target), get(front.server, target)
    for field in ("Content-Length", "ETag", "Content-Type", "Last-Modified", "Accept-Ranges"):
        assert seen.fields[field] == headed.fields[field] == direct.fields[field], field
    assert headed.status == 200 and headed.body == b"" and seen.body == direct.body


def test_refusals_are_those_of_the_server(front):
    for method, target in [("GET", model_path("org/none")), ("PUT", "/v1/models"), ("GET", "/v1/models/.hidden"), ("BREW", "/")]:
        seen, direct = front.ask(method, target), ask(front.server, method, target)
        assert (seen.status, seen.json()["code"]) == (direct.status, direct.json()["code"])


def test_large_uploads_are_stored_and_the_location_leads_to_them(front):
    answer = front.ask("PUT", model_path("org/large"), body=LARGE)
    assert answer.status == 201, answer
    assert (front.root / "org" / "large.zt").read_bytes() == LARGE
    assert front.follow(answer["Location"]).json()["name"] == "org/large"
    assert front.ask("DELETE", model_path("org/large"), {"If-Match": answer["ETag"]}).status == 204


def test_bodies_of_unknown_length_are_stored(front):
    pieces = (LARGE[start : start + 100_000] for start in range(0, len(LARGE), 100_000))
    fields = {"Transfer-Encoding": "chunked"}
    chunks = (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    answer = front.ask("PUT", model_path("org/chunked"), fields, b"".join(chunks) + b"0\r\n\r\n")
    assert answer.status == 201, answer
    assert (front.root / "org" / "chunked.zt").read_bytes() == LARGE


def test_uploads_are_passed_on_while_they_arrive(front):
    created = front.ask(
        "POST", "/v1/resumable", {**tus.TUS, "Upload-Metadata": tus.metadata("org/slow"), "Upload-Length": str(len(LARGE))}
    )
    with connect(front) as connection:
        fields = {**tus.PIECE, "Upload-Offset": "0", "Content-Length": str(len(LARGE)), "Host": front.host}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        target = created["Location"].removeprefix(front.proxy.url)
        connection.sendall(f"PATCH {target} HTTP/1.1\r\n{lines}\r\n".encode() + LARGE[:HALF])
        # The last few kilobytes may wait for more.
        eventually(lambda: tus.uploads_of(front.server, "org/slow")[0]["received"] > HALF - (64 << 10))
        connection.sendall(LARGE[HALF:])
        assert read_head(connection)[0] == 204
    assert (front.root / "org" / "slow.zt").read_bytes() == LARGE


def test_clients_that_wait_for_100_continue_get_it(front):
    with connect(front) as connection:
        connection.sendall(
            f"PUT {front.prefix}{model_path('org/waited')} HTTP/1.1\r\nHost: {front.host}\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(LARGE)}\r\n\r\n".encode()
        )
        assert read_head(connection)[0] == 100
        connection.sendall(LARGE)
        # Caddy passes the server's 100 on after its own.
        assert read_last_head(connection) == 201
    assert (front.root / "org" / "waited.zt").read_bytes() == LARGE


@pytest.mark.parametrize("expects", [True, False])
def test_a_refused_upload_shows_the_refusal(front, expects, tmp_path):
    """The server answers before it has read the body; the proxy must not turn that into an error of its own."""
    assert put(front.server, "org/model", LARGE, If_None_Match="*").status == 412
    (tmp_path / "sent").write_bytes(LARGE)
    command = ["curl", "-sS", "-o", "-", "-w", "%{http_code}", "-T", tmp_path / "sent", "-H", "If-None-Match: *"]
    command += [] if expects else ["-H", "Expect:"]
    result = subprocess.run([*command, f"{front.url}{model_path('org/model')}"], capture_output=True, text=True, timeout=60)
    assert result.stdout.endswith("412") and '"precondition-failed"' in result.stdout, result


def test_a_client_of_tus_uploads_in_pieces(front, tmp_path):
    (tmp_path / "sent").write_bytes(LARGE)
    uploader = TusClient(f"{front.url}/v1/resumable").uploader(
        str(tmp_path / "sent"), chunk_size=2_000_000, metadata={"model": "org/resumed"}
    )
    uploader.upload()
    assert (front.root / "org" / "resumed.zt").read_bytes() == LARGE


def test_the_streaming_writer_works(front):
    begun = front.ask("POST", f"{model_path('org/written')}/uploads", body=b"{}")
    assert begun.status == 201, begun
    component = f"{begun['Location']}/objects/a%2Fb/data?dtype=u8&shape=5"
    assert front.follow(component, "PUT", body=b"12345").status == 201
    committed = front.follow(f"{begun['Location']}/commit", "POST")
    assert committed.status == 201, committed
    assert front.follow(committed["Location"]).status == 200
    assert front.ask("GET", component_path("org/written", "a/b")).body == b"12345"



# The mistakes that docs/deployment.md warns of, and what they look like from outside.
MISTAKES = {
    "a slash behind the name": ("nginx.conf", "proxy_pass http://ztserve;", "proxy_pass http://ztserve/;", 404, True),
    "the limit of nginx": ("nginx.conf", "client_max_body_size 0;", "", 413, False),
    "the paths of Apache": ("apache.conf", "AllowEncodedSlashes NoDecode", "", 404, False),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_look_as_the_page_says(mistake, start_server, tmp_path):
    configuration, right, wrong, status, is_from_server = MISTAKES[mistake]
    text = (CONFIGURATIONS / configuration).read_text()
    require_proxy(configuration)
    assert right in text
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable")
    proxy = STARTS[configuration](tmp_path, text.replace(right, wrong), f"{server.host}:{server.port}")
    try:
        answer = ask(proxy, "PUT", model_path("org/export/model"), body=LARGE if status == 413 else SMALL)
    finally:
        proxy.stop()
    assert answer.status == status
    assert (b'"detail":"there is no resource at this path"' in answer.body) == is_from_server


# A name that proxies pass on, and a page that came from there, with TLS before the proxy.
PUBLIC = {"Host": "models.example.org"}
PAGE = {**PUBLIC, "Origin": "https://models.example.org"}


@pytest.mark.parametrize(
    "settings, fields, status",
    [
        ({}, PUBLIC, 403),
        ({"ZTSERVE_HOSTS": "models.example.org"}, PUBLIC, 201),
        ({"ZTSERVE_HOSTS": "models.example.org"}, PAGE, 201),
        ({"ZTSERVE_HOSTS": "other.example.org"}, PAGE, 403),
    ],
)
def test_writes_by_a_public_name_need_settings(settings, fields, status, start_server, tmp_path):
    require_proxy("nginx.conf")
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable", environment=settings)
    text = (CONFIGURATIONS / "nginx.conf").read_text()
    proxy = proxies.start_nginx(tmp_path, text, f"{server.host}:{server.port}")
    try:
        sent = requests.put(f"{proxy.url}{model_path('org/small')}", data=SMALL, headers=fields)
        assert sent.status_code == status, sent.text
    finally:
        proxy.stop()


@pytest.mark.parametrize("configuration", ["nginx.conf", "haproxy.cfg"])
def test_the_lines_about_tls_work(configuration, start_server, tmp_path):
    """curl speaks HTTP/2 if the proxy does. The page is the proxy's own, although the server sees no TLS."""
    require_proxy(configuration)
    (tmp_path / "root").mkdir()
    server = start_server(tmp_path / "root", "--writable")
    authority = certificates.Authority(tmp_path)
    made = authority.sign("models", "DNS:localhost")
    (tmp_path / "chain.pem").write_bytes(made.cert.read_bytes() + made.key.read_bytes())
    text = re.sub(r"(listen 80;|bind :80)\n *# With TLS: ", "", (CONFIGURATIONS / configuration).read_text())
    files = {"/etc/ssl/models.key": made.key, "/etc/ssl/models.pem": made.cert, "/etc/haproxy/models.pem": "chain.pem"}
    for path, here in files.items():
        text = text.replace(path, str(tmp_path / here))
    proxy = STARTS[configuration](tmp_path, text, f"{server.host}:{server.port}")
    (tmp_path / "sent").write_bytes(LARGE)
    origin = f"https://localhost:{proxy.port}"
    command = ["curl", "-sS", "--cacert", authority.cert, "--resolve", f"localhost:{proxy.port}:{proxy.host}"]
    command += ["-H", f"Origin: {origin}", "-w", "%{http_code}", "-T", tmp_path / "sent", f"{origin}{model_path('org/large')}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        proxy.stop()
    assert result.stdout == "201", result
    assert (tmp_path / "root" / "org" / "large.zt").read_bytes() == LARGE
