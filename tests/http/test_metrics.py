"""GET /metrics: the format, what is counted, and that no label holds a client's text."""

import http.client
import os
import re
import shutil
import signal
import ssl
import subprocess

import pytest

from containers import dense, pattern, zt1
from server_process import TOP
from wire import TIMEOUT_S, Connection, ask, assert_problem, component_path, connect, eventually, get, head, metrics, talk, verify

DATA = pattern(1000)
# Connections are then accepted in the order in which they were made.
ONE_LOOP = {"ZTSERVE_THREADS": "1"}
COMPONENT = "/v1/models/{model}/objects/{object}/{component}"


@pytest.fixture
def server(start_server, tmp_path):
    wrong = dense(b"1", digest="crc32c:0x00000000")
    (tmp_path / "m.zt").write_bytes(zt1({"w": dense(DATA), "wrong": wrong}))
    (tmp_path / "bad.zt").write_bytes(b"rubbish")
    return start_server(tmp_path, "--writable", "--listen", "127.0.0.1:0", environment={"ZTSERVE_WORKERS": "4"})


def requests_name(route, method, status):
    return f'ztserve_http_requests_total{{route="{route}",method="{method}",status="{status}"}}'


def wait_for(server, name, value):
    """Requests are counted when they have ended, which may be a moment after their answer."""
    return eventually(lambda: (now := metrics(server)).get(name) == value and now)


def test_the_form_is_that_of_prometheus(server):
    answer = get(server, "/metrics")
    assert answer.status == 200 and answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer["Cache-Control"] == "no-store" and answer.body.endswith(b"\n")
    assert head(server, "/metrics").status == 200
    assert_problem(ask(server, "POST", "/metrics"), 405, "method-not-allowed")


def test_promtool_has_no_complaint(server):
    if shutil.which("promtool") is None:
        pytest.skip("skipped: promtool (Debian package prometheus) is not installed")
    get(server, component_path("m", "w"))
    for _ in range(2):
        text = get(server, "/metrics").body
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_requests_are_counted_by_route_method_and_status(server):
    path = component_path("m", "w")
    get(server, path)
    get(server, path, Range="bytes=0-9")
    head(server, path)
    get(server, "/v1/models/none")
    wait_for(server, requests_name(COMPONENT, "GET", 200), 1)
    wait_for(server, requests_name(COMPONENT, "GET", 206), 1)
    wait_for(server, requests_name(COMPONENT, "HEAD", 200), 1)
    counted = wait_for(server, requests_name("/v1/models/{model}", "GET", 404), 1)
    assert counted['ztserve_http_problems_total{code="model-not-found",status="404"}'] == 1


def test_no_label_holds_text_of_a_client(server):
    for request in (
        b"BREW /v1/models/secret-name HTTP/1.1",
        b"GET /secret-name?secret-name HTTP/1.1",
        b"GET /v1/models/secret-name/objects/secret-name HTTP/1.1",
        b"GET /files/secret-name/x HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"QUERY /v1/models HTTP/1.1",
        b"TRACE /v1/models HTTP/1.1",
    ):
        talk(server, request + b"\r\nHost: x\r\nX-Request-Id: secret-name\r\nConnection: close\r\n\r\n")
    wait_for(server, requests_name("/v1/models/{model}", "other", 501), 1)
    wait_for(server, requests_name("none", "GET", 404), 1)
    wait_for(server, requests_name("none", "OPTIONS", 204), 1)
    wait_for(server, requests_name("/v1/models", "QUERY", 405), 1)
    counted = wait_for(server, requests_name("/v1/models", "other", 405), 1)
    assert not any("secret" in name for name in counted)
    routes = {route for name in counted for route in re.findall('route="([^"]*)"', name)}
    described = get(server, "/openapi.json").json()["paths"]
    assert {route.replace("...", "") for route in routes} <= {*described, "none"}


def test_bytes_are_counted_in_both_directions(server):
    before = metrics(server)
    body = zt1({"w": dense(pattern(200_000))})
    assert ask(server, "PUT", "/v1/models/new", body=body).status == 201
    wait_for(server, requests_name("/v1/models/{model}", "PUT", 201), 1)
    received = metrics(server)["ztserve_http_received_bytes_total"] - before["ztserve_http_received_bytes_total"]
    assert len(body) < received < len(body) + 10_000
    sent_before = metrics(server)["ztserve_http_sent_bytes_total"]
    get(server, component_path("new", "w"))
    counted = wait_for(server, requests_name(COMPONENT, "GET", 200), 1)
    assert 200_000 < counted["ztserve_http_sent_bytes_total"] - sent_before < 300_000


def test_connections_are_counted(server):
    idle = [connect(server) for _ in range(5)]
    names = ("ztserve_connections", "ztserve_connections_accepted_total")
    counted = eventually(lambda: min((now := metrics(server))[name] for name in names) >= 6 and now)
    assert counted["ztserve_connections_limit"] >= counted["ztserve_connections"]
    assert counted["ztserve_http_requests_in_progress"] >= 1
    for connection in idle:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
    eventually(lambda: metrics(server)["ztserve_http_requests_in_progress"] == 6)
    for connection in idle:
        connection.close()
    eventually(lambda: metrics(server)["ztserve_connections"] < 6)
    eventually(lambda: metrics(server)["ztserve_http_requests_in_progress"] == 1)


def test_refused_connections_are_counted(start_server, tmp_path):
    server = start_server(tmp_path, environment={"ZTSERVE_LIMITS_CONNECTIONS": "2", **ONE_LOOP})
    with Connection(server) as kept:
        assert kept.ask("GET", "/metrics").status == 200
        with connect(server), connect(server) as surplus:
            assert surplus.recv(1000).startswith(b"HTTP/1.1 503 ")
            text = kept.ask("GET", "/metrics").body.decode()
    assert 'ztserve_connections_refused_total{reason="limit"} 1\n' in text
    assert 'ztserve_http_problems_total{code="overloaded",status="503"} 1\n' in text


def test_connections_over_the_limit_of_an_address_are_counted(start_server, tmp_path):
    server = start_server(tmp_path, environment={"ZTSERVE_LIMITS_CONNECTIONS_PER_ADDRESS": "2", **ONE_LOOP})
    with Connection(server) as kept:
        assert kept.ask("GET", "/metrics").status == 200
        with connect(server), connect(server) as refused:
            try:
                assert refused.recv(1) == b""
            except ConnectionResetError:
                pass
            text = kept.ask("GET", "/metrics").body.decode()
    assert 'ztserve_connections_refused_total{reason="address"} 1\n' in text


def test_models_and_verification_are_counted(server):
    def states(counted):
        return {state: counted[f'ztserve_components{{state="{state}"}}'] for state in ("verified", "failed", "unchecked")}

    counted = metrics(server)
    assert (counted["ztserve_models"], counted["ztserve_models_unreadable"], counted["ztserve_objects"]) == (1, 1, 2)
    assert sum(states(counted).values()) + counted['ztserve_components{state="undigested"}'] == 2
    assert verify(server, "m")["state"] == "failed"
    assert_problem(get(server, component_path("m", "wrong")), 500, "corrupt-component")
    counted = wait_for(server, requests_name(COMPONENT, "GET", 500), 1)
    assert states(counted)["failed"] == 1
    assert counted['ztserve_verification_components_total{result="failed"}'] >= 1
    assert counted["ztserve_verification_hashed_bytes_total"] >= 1
    assert counted['ztserve_http_problems_total{code="corrupt-component",status="500"}'] == 1


@pytest.mark.folder("links, folders and special files in a root")
def test_what_is_left_out_is_counted(start_server, tmp_path):
    root = tmp_path / "root"
    (root / "with\ttab").mkdir(parents=True)
    for name in ("a\tb.zt", "c\x7fd.zt", "weights.h5"):
        (root / name).write_bytes(b"")
    (tmp_path / "elsewhere.zt").write_bytes(zt1({"w": dense(b"1")}))
    (root / "out.zt").symlink_to(tmp_path / "elsewhere.zt")
    (root / "nowhere.zt").symlink_to("missing.zt")
    os.mkfifo(root / "pipe.zt")
    counted = metrics(start_server(root))
    reasons = {"name": 2, "folder_name": 1, "extension": 1, "outside": 1, "broken": 1, "special": 1, "unreadable": 0, "long": 0}
    assert {reason: counted[f'ztserve_skipped_entries{{reason="{reason}"}}'] for reason in reasons} == reasons


def test_more_models_than_are_looked_at_together_are_counted(start_server, tmp_path):
    for i in range(600):
        (tmp_path / f"m{i}.zt").write_bytes(zt1({"w": dense(b"12"), "v": dense(b"3")}))
    counted = metrics(start_server(tmp_path))
    assert (counted["ztserve_models"], counted["ztserve_objects"]) == (600, 1200)


def test_uploads_are_counted_by_kind_and_end(server):
    assert ask(server, "PUT", "/v1/models/new", body=zt1({"w": dense(DATA)})).status == 201
    assert ask(server, "PUT", "/v1/models/rubbish", body=b"rubbish").status == 422
    created = ask(server, "POST", "/v1/models/streamed/uploads", body=b"{}")
    assert created.status == 201
    assert ask(server, "POST", created["Location"] + "/commit").status in (201, 422)
    with connect(server) as cut:
        cut.sendall(b"PUT /v1/models/cut HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
        eventually(lambda: metrics(server)['ztserve_uploads_open{kind="file"}'] == 1)
    wait_for(server, 'ztserve_uploads_failed_total{kind="file"}', 2)
    counted = wait_for(server, 'ztserve_uploads_open{kind="file"}', 0)
    assert counted['ztserve_uploads_begun_total{kind="file"}'] == 3
    assert counted['ztserve_uploads_published_total{kind="file"}'] == 1
    assert counted['ztserve_uploads_begun_total{kind="writer"}'] == 1
    ended = [counted[f'ztserve_uploads_{end}_total{{kind="writer"}}'] for end in ("published", "failed")]
    assert sum(ended) == 1
    assert counted["ztserve_upload_available_bytes"] > 0


def test_workers_and_the_process_are_shown(server):
    counted = metrics(server)
    assert counted["ztserve_workers"] == 4
    assert counted['ztserve_worker_jobs_running{kind="ordinary"}'] >= 1  # the one that writes this
    assert counted["process_threads"] > 4
    assert 0 < counted["process_open_fds"] < counted["process_max_fds"]
    assert counted["process_resident_memory_bytes"] > 1 << 20
    again = metrics(server)
    assert again["process_cpu_seconds_total"] >= counted["process_cpu_seconds_total"] > 0
    assert again["process_start_time_seconds"] == pytest.approx(counted["process_start_time_seconds"], abs=0.1)


def test_cut_requests_are_counted(server):
    with connect(server) as connection:
        connection.sendall(b"PUT /v1/models/cut HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
        eventually(lambda: metrics(server)['ztserve_uploads_open{kind="file"}'] == 1)
    wait_for(server, 'ztserve_http_requests_cut_total{reason="client"}', 1)
    wait_for(server, requests_name("/v1/models/{model}", "PUT", 499), 1)


def test_reloads_are_counted(start_server, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    server = start_server(tmp_path, "--config", settings)
    started = metrics(server)
    assert started["ztserve_config_last_reload_successful"] == 1
    settings.write_text("{")
    server.signal(signal.SIGHUP)
    counted = wait_for(server, 'ztserve_config_reloads_total{result="failed"}', 1)
    assert counted["ztserve_config_last_reload_successful"] == 0
    settings.write_text("{}")
    server.signal(signal.SIGHUP)
    counted = wait_for(server, 'ztserve_config_reloads_total{result="done"}', 1)
    assert counted["ztserve_config_last_reload_successful"] == 1
    time = "ztserve_config_last_reload_success_timestamp_seconds"
    assert counted[time] >= started[time] > 1_700_000_000


def test_the_certificates_end_is_shown(start_server, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*make, "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    server = start_server(tmp_path, "--tls-cert", certificate, "--tls-key", key)
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    connection = http.client.HTTPSConnection(server.host, server.port, timeout=TIMEOUT_S, context=context)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    shown = re.search(r"^ztserve_tls_certificate_expiry_timestamp_seconds (\d+)$", text, re.MULTILINE)
    printed = subprocess.run(["openssl", "x509", "-enddate", "-noout", "-in", certificate], check=True, capture_output=True, text=True)
    assert int(shown.group(1)) == ssl.cert_time_to_seconds(printed.stdout.strip().removeprefix("notAfter="))


def metric_names(text):
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


@pytest.mark.folder("a folder beside a bucket")
def test_the_page_describes_exactly_these_metrics(start_server, serve_bucket, moto_bucket, tmp_path):
    local, text = (get(server, "/metrics").body.decode() for server in (start_server(tmp_path), serve_bucket(moto_bucket)))
    of_stores = {name for name in metric_names(text) if name.startswith(("ztserve_cache_", "ztserve_store_"))}
    assert of_stores == metric_names(text) - metric_names(local)
    text += local
    page = (TOP / "docs" / "operations.md").read_text().split("## Metrics", 1)[1].split("\n## ", 1)[0]
    described = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([a-z_]+)`", line.split("|")[1])}
    written = metric_names(text)
    # test_upstreams.py has those of upstreams, test_versions_store.py those of versions.
    described -= {name for name in described if name.startswith(("ztserve_upstream_", "ztserve_versions_"))}
    # Without TLS there is no certificate.
    assert described - written == {"ztserve_tls_certificate_expiry_timestamp_seconds"} and written <= described
    for name, labels in re.findall(r"^([a-z_]+)\{([^}]*)\}", text.replace("{model}", "").replace("{path...}", ""), re.MULTILINE):
        line = next((line for line in page.splitlines() if f"`{re.sub('_(bucket|sum|count)$', '', name)}`" in line), "")
        words = re.findall(r'(\w+)="([^"]*)"', labels)
        named = {label for label, _ in words} | {value for label, value in words if label in ("reason", "result", "state", "kind")}
        missing = {word for word in named if f"`{word}`" not in line} - {"le"}
        assert not missing, f"{name}: {missing}"
