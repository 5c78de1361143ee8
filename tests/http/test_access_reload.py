"""Tokens while the server runs: reloading them, and what logs and metrics tell of them."""

import hashlib
import json
import signal
import threading

from clients import Client, Named, write_tokens
from containers import dense, pattern, zt1
from wire import Connection, component_path, eventually, get, metrics, model_path

NOBODY = Client("nobody", "read")


def model(data):
    return zt1({"t": dense(data)})


MODEL = model(pattern(2000, seed=82))


def start(tmp_path, start_server, *clients, arguments=(), lines=()):
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(MODEL)
    tokens = write_tokens(tmp_path / "tokens", *clients, lines=lines)
    return start_server(root, "--tokens", tokens, *arguments), tokens


def reload(server):
    before = sum("reloaded" in line or "is unchanged" in line for line in server.log_lines)
    server.signal(signal.SIGHUP)
    eventually(lambda: sum("reloaded" in line or "is unchanged" in line for line in server.log_lines) > before)
    return [line for line in server.log_lines if "reloaded" in line or "is unchanged" in line][-1]


def test_a_reload_brings_and_removes_clients_even_on_open_connections(tmp_path, start_server):
    old, kept, new = Client("old", "read"), Client("kept", "read"), Client("new", "read")
    server, tokens = start(tmp_path, start_server, old, kept)
    with Named(server, old) as of_old, Named(server, kept) as of_kept, Named(server, new) as of_new:
        statuses = [one.ask("GET", "/v1/models").status for one in (of_old, of_kept, of_new)]
        assert statuses == [200, 200, 401]
        write_tokens(tokens, kept, new)
        assert "reloaded" in reload(server)
        eventually(lambda: of_old.ask("GET", "/v1/models").status == 401)
        assert of_kept.ask("GET", "/v1/models").status == 200
        eventually(lambda: of_new.ask("GET", "/v1/models").status == 200)


def test_a_reload_changes_scopes_and_globs(tmp_path, start_server):
    client = Client("client", "write")
    server, tokens = start(tmp_path, start_server, client, arguments=["--writable"])
    assert client.ask(server, "PUT", model_path("n"), body=MODEL).status == 201
    client.scope, client.globs = "read", ("m",)
    write_tokens(tokens, client)
    reload(server)
    eventually(lambda: client.ask(server, "PUT", model_path("m"), body=MODEL).status == 403)
    assert client.get(server, model_path("n")).status == 403
    assert [one["name"] for one in client.get(server, "/v1/models").json()["models"]] == ["m"]


def test_a_broken_tokens_file_keeps_the_old_one(tmp_path, start_server):
    line, expected = "broken read nonsense", "the third field is the token's SHA-256"
    client = Client("client", "read")
    server, tokens = start(tmp_path, start_server, client)
    write_tokens(tokens, client, lines=[line])
    told = reload(server)
    assert "the configuration is unchanged: auth.tokens: " in told and f"{tokens}, line 3: " in told and expected in told
    assert client.get(server, "/v1/models").status == 200
    tokens.unlink()
    assert "No such file" in reload(server)
    assert client.get(server, "/v1/models").status == 200


def test_tokens_cannot_be_turned_off_while_everybody_could_write(tmp_path, start_server):
    client = Client("client", "write")
    tokens = write_tokens(tmp_path / "tokens", client)
    config = tmp_path / "config.json"
    # The file may say otherwise later, but the socket stays open to everybody.
    everybody = {"listen": "0.0.0.0:0", "writable": True, "auth": {"tokens": str(tokens)}}
    config.write_text(json.dumps(everybody))
    root = tmp_path / "root"
    root.mkdir()
    server = start_server(root, "--config", config, listen=None)
    config.write_text(json.dumps({"listen": "127.0.0.1:0", "writable": True}))
    assert "is refused on 0.0.0.0" in reload(server)
    assert get(server, "/v1/models").status == 401


def test_reloads_under_load_lose_no_request_and_let_nobody_in(tmp_path, start_server):
    kept, coming = Client("kept", "read"), Client("coming", "read")
    server, tokens = start(tmp_path, start_server, kept, arguments=["--threads", 2])
    stop, wrong, counts = threading.Event(), [], {200: 0, 401: 0}

    def load(client, allowed):
        with Named(server, client) as connection:
            while not stop.is_set():
                status = connection.ask("GET", component_path("m", "t")).status
                counts[status] = counts.get(status, 0) + 1
                if status not in allowed:
                    wrong.append((client.name, status))

    threads = [threading.Thread(target=load, args=arguments)
               for arguments in ((kept, {200}), (kept, {200}), (coming, {200, 401}), (NOBODY, {401}))]  # fmt: skip
    for thread in threads:
        thread.start()
    for turn in range(10):
        write_tokens(tokens, kept, *([coming] if turn % 2 == 0 else []))
        assert "reloaded" in reload(server)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    # The last reload removed it.
    eventually(lambda: coming.get(server, "/v1/models").status == 401)
    assert counts[200] > 0 and counts[401] > 0, counts


def test_a_download_goes_on_when_its_token_is_removed(tmp_path, start_server):
    client, other = Client("client", "read"), Client("other", "read")
    data = pattern(24 << 20, seed=83)
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.zt").write_bytes(model(data))
    tokens = write_tokens(tmp_path / "tokens", client, other)
    server = start_server(root, "--tokens", tokens, "--verify", "off")
    with Connection(server) as connection:
        connection.send("GET", component_path("m", "t"), client.fields)
        response = connection.http.getresponse()
        assert response.status == 200
        first = response.read(1 << 16)
        write_tokens(tokens, other)
        reload(server)
        eventually(lambda: client.get(server, "/v1/models").status == 401)
        assert hashlib.sha256(first + response.read()).digest() == hashlib.sha256(data).digest()


# --- what is told ---


def test_nothing_secret_is_told(tmp_path, start_server):
    client = Client("client", "read", "m")
    secret = Client("secret", "read")
    arguments = ["--log-level", "debug", "--writable"]
    server, tokens = start(tmp_path, start_server, client, arguments=arguments)
    bodies = []
    for one in (client, secret):
        for method, target in (("GET", "/v1/models"), ("PUT", model_path("x")), ("GET", "/nothing"), ("GET", "/metrics")):
            bodies.append(repr(one.ask(server, method, target)))
    bodies.append(repr(get(server, "/v1/models", Authorization=f"Basic {secret.token}")))
    write_tokens(tokens, client, lines=[f"{secret.token} {secret.token} {secret.token}"])
    reload(server)
    tokens.write_text(f"secret read {secret.token[:-1]}x")
    reload(server)
    bodies.append(repr(client.get(server, "/metrics")))
    everything = server.log + "".join(bodies)
    for one in (client, secret):
        digest = one.line.split()[2]
        assert one.token not in everything
        assert digest not in everything
        assert secret.token[:-1] not in everything


def test_refusals_are_counted_by_reason(tmp_path, start_server):
    client = Client("client", "read", "m")
    server, _ = start(tmp_path, start_server, client)

    def count(reason):
        text = client.get(server, "/metrics").body.decode()
        return int(next(line.split()[-1] for line in text.splitlines()
                        if line.startswith(f'ztserve_auth_failures_total{{reason="{reason}"}}')))  # fmt: skip

    asked = {
        "no_credentials": lambda: get(server, "/v1/models"),
        "bad_credentials": lambda: get(server, "/v1/models", Authorization="Basic x"),
        "unknown_token": lambda: NOBODY.get(server, "/v1/models"),
        "scope": lambda: client.ask(server, "DELETE", model_path("m")),
        "model": lambda: client.get(server, model_path("x")),
    }
    for reason, refused in asked.items():
        before = count(reason)
        assert refused().status in (401, 403)
        assert count(reason) == before + 1


def test_metrics_need_a_token_unless_they_are_public(tmp_path, start_server):
    client = Client("client", "read")
    config = tmp_path / "config.json"
    config.write_text("{}")
    server, _ = start(tmp_path, start_server, client, arguments=["--config", config])
    assert get(server, "/metrics").status == 401
    assert client.get(server, "/metrics").status == 200
    config.write_text(json.dumps({"metrics": {"public": True}}))
    reload(server)
    eventually(lambda: get(server, "/metrics").status == 200)
    assert get(server, "/v1/models").status == 401


def test_metrics_count_only_the_models_that_a_client_may_see(tmp_path, start_server):
    counted = ("ztserve_models", "ztserve_models_unreadable", "ztserve_objects", "ztserve_model_files_open")
    clients = {
        Client("all", "read"): [4, 1, 6, 5],
        Client("team", "read", "team/*"): [2, 1, 4, 3],
        Client("one", "read", "team/b"): [1, 0, 3, 1],
        Client("none", "read", "absent/*"): [0, 0, 0, 0],
    }
    folder = tmp_path / "models"
    (folder / "team").mkdir(parents=True)
    for name, objects in {"x": 1, "y": 1, "team/a": 1, "team/b": 3}.items():
        (folder / f"{name}.zt").write_bytes(zt1({f"t{number}": dense(b"data") for number in range(objects)}))
    (folder / "team/bad.zt").write_bytes(b"no model")
    server = start_server(folder, "--tokens", write_tokens(tmp_path / "tokens.txt", *clients))
    for client, expected in clients.items():
        seen = metrics(server, client)
        assert [seen[name] for name in counted] == expected, client.name
        components = sum(value for name, value in seen.items() if name.startswith("ztserve_components{"))
        assert components == expected[2], client.name


def test_a_tokens_file_that_everybody_can_read_is_a_warning(tmp_path, start_server):
    client = Client("client", "read")
    server, tokens = start(tmp_path, start_server, client)
    assert "can be read by every user" not in server.log
    tokens.chmod(0o644)
    reload(server)
    assert f"warn auth.tokens: {tokens} can be read by every user of this machine" in server.log
