"""Where a server over a bucket has its credentials from: files, and the services that hand them out, each played by a
server of this test; and what it says when something about them is wrong."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from containers import dense, pattern, zt1
from wire import component_path, eventually, get

pytestmark = pytest.mark.waits

DATA = pattern(5000, seed=9)
TARGET = component_path("m", "w")
# Not those of the environment, and no file either.
NONE = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": ""}
ASSUMED = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
<SessionToken>t</SessionToken><Expiration>{}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


def in_seconds(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, text = self.server.service.answer(self.command, self.path, self.headers, body.decode())
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *arguments):
        pass


class Service:
    """Hands out credentials in each of the ways, under another key each time."""

    def __init__(self, lifetime_s=3600):
        self.lifetime_s, self.given, self.status, self.is_silent = lifetime_s, 0, 200, False
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.service = self
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def key(self):
        self.given += 1
        return f"KEY{self.given}"

    def json(self):
        return json.dumps(
            {"AccessKeyId": self.key(), "SecretAccessKey": "s", "Token": "t", "Expiration": in_seconds(self.lifetime_s)}
        )

    def answer(self, method, path, fields, body):
        while self.is_silent:
            time.sleep(0.05)
        if self.status != 200:
            return self.status, "<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>"
        if (method, path) == ("POST", "/"):
            form = parse_qs(body)
            good = form["WebIdentityToken"] == ["the.token"] and form["RoleArn"] == ["arn:aws:iam::1:role/r"]
            return (200, ASSUMED.format(self.key(), in_seconds(self.lifetime_s))) if good else (400, "")
        if (method, path) == ("GET", "/container?a=b"):
            return (200, self.json()) if fields["Authorization"] == "the token" else (401, "")
        if (method, path) == ("PUT", "/latest/api/token"):
            return 200, "the-token"
        if fields["X-aws-ec2-metadata-token"] != "the-token":
            return 401, ""
        roles = "/latest/meta-data/iam/security-credentials/"
        if path == roles:
            return 200, "role"
        return (200, self.json()) if path == roles + "role" else (404, "")


@pytest.fixture
def make_service():
    made = []

    def make(**options):
        made.append(Service(**options))
        return made[-1]

    yield make
    for service in made:
        service.server.shutdown()
        service.server.server_close()


@pytest.fixture
def bucket(moto_bucket):
    moto_bucket.put("m.zt", zt1({"w": dense(DATA)}))
    return moto_bucket


def web_identity(service, folder):
    token = folder / "token"
    token.write_text("the.token\n")
    return {
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ENDPOINT_URL_STS": service.address,
    }


def container(service, folder):
    token = folder / "token"
    token.write_text("the token\n")
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": service.address + "/container?a=b",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
    }


def instance(service, folder):
    return {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": service.address}


def keys_of(tally):
    """The key that each request was signed with."""
    fields = [seen.request.fields.get("authorization", "") for seen in tally.seen]
    return {text.partition("Credential=")[2].partition("/")[0] for text in fields}


@pytest.mark.parametrize("source", [web_identity, container, instance])
def test_service_hands_out_credentials(source, bucket, meddler, make_service, serve_bucket, tmp_path):
    tally = meddler.counting()
    environment = {**NONE, **source(make_service(), tmp_path)}
    server = serve_bucket(bucket, endpoint=meddler.endpoint, environment=environment)
    assert get(server, TARGET).body == DATA
    assert keys_of(tally) == {"KEY1"}
    assert all(seen.request.fields["x-amz-security-token"] == "t" for seen in tally.seen)


def test_credentials_are_renewed_before_they_expire(bucket, meddler, make_service, serve_bucket, tmp_path):
    service = make_service(lifetime_s=8)
    tally = meddler.counting()
    environment = {**NONE, **web_identity(service, tmp_path)}
    server = serve_bucket(bucket, endpoint=meddler.endpoint, environment=environment)
    eventually(lambda: "KEY2" in keys_of(tally))
    assert get(server, TARGET).body == DATA


def test_profile_is_read_again_when_it_changes(bucket, meddler, serve_bucket, tmp_path):
    profile = tmp_path / "credentials"
    text = "[default]\naws_access_key_id = KEY{}\naws_secret_access_key = s\n"
    profile.write_text(text.format(1))
    tally = meddler.counting()
    environment = {**NONE, "AWS_SHARED_CREDENTIALS_FILE": str(profile)}
    serve_bucket(bucket, endpoint=meddler.endpoint, environment=environment)
    assert keys_of(tally) == {"KEY1"}
    profile.write_text(text.format(2))
    eventually(lambda: "KEY2" in keys_of(tally))


def test_instance_whose_service_is_silent_at_the_start_is_found_later(bucket, meddler, make_service, serve_bucket, tmp_path):
    service = make_service()
    service.is_silent = True
    tally = meddler.counting()
    server = serve_bucket(bucket, endpoint=meddler.endpoint, environment={**NONE, **instance(service, tmp_path)})
    assert keys_of(tally) == {""}
    eventually(lambda: any("no credentials were found" in line for line in server.log_lines))
    service.is_silent = False
    eventually(lambda: "KEY1" in keys_of(tally), within_s=120)
    eventually(lambda: any("credentials (instance) were found" in line for line in server.log_lines))
    assert get(server, TARGET).body == DATA


def test_nobody_is_anonymous(bucket, meddler, serve_bucket):
    tally = meddler.counting()
    serve_bucket(bucket, endpoint=meddler.endpoint, environment={**NONE, "HOME": "/nonexistent"})
    assert len(tally.seen) > 0
    assert not any("authorization" in seen.request.fields for seen in tally.seen)
