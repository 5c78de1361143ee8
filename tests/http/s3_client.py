"""A small client of object stores: signs by hand (AWS Signature Version 4), so that tests put, look at and remove what a
server finds in its bucket."""

import http.client
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from s3_sign import Signer, sha256

TIMEOUT_S = 180
TRIES = 3


def authorization(engine, method, path, query, fields):
    """The Authorization of a request; fields are all that are signed, in lower case; query as it is sent."""
    signer = Signer(engine.access_key, engine.secret_key, fields["x-amz-date"], engine.region)
    return signer.authorization(method, f"{path}?{query}", fields, fields["x-amz-content-sha256"])


@dataclass
class StoreAnswer:
    status: int
    fields: object
    body: bytes


def exchange(engine, method, path, query=(), fields=None, body=b""):
    """One signed request, repeated if the connection breaks or the store fails; path unquoted, query pairs unquoted."""
    encoded = quote(path, safe="/~")
    text = "&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(query))
    for last in range(TRIES - 1, -1, -1):
        signed = {
            **{name.lower(): value for name, value in (fields or {}).items()},
            "host": urlsplit(engine.endpoint).netloc,
            "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
            "x-amz-content-sha256": sha256(body),
        }
        signed["authorization"] = authorization(engine, method, encoded, text, signed)
        connection = http.client.HTTPConnection(urlsplit(engine.endpoint).netloc, timeout=TIMEOUT_S)
        try:
            connection.putrequest(method, encoded + (f"?{text}" if text else ""), skip_host=True, skip_accept_encoding=True)
            for name, value in {**signed, "content-length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            answer = StoreAnswer(response.status, response.headers, response.read())
            if last and answer.status in (500, 503):
                continue
            return answer
        except (OSError, http.client.HTTPException):
            if not last:
                raise
        finally:
            connection.close()


def texts(body, name):
    """The texts of all elements of that name, whatever their namespace."""
    return [element.text or "" for element in ElementTree.fromstring(body).iter() if element.tag.split("}")[-1] == name]


class Bucket:
    """A bucket, or what is below a prefix of it; keys are relative to the prefix."""

    def __init__(self, engine, name, prefix=""):
        self.engine, self.name, self.prefix = engine, name, prefix

    @property
    def root(self):
        """What `--root` takes."""
        return f"s3://{self.name}/{self.prefix.rstrip('/')}" if self.prefix else f"s3://{self.name}"

    def below(self, prefix):
        return Bucket(self.engine, self.name, f"{self.prefix}{prefix}/")

    def ask(self, method, key="", query=(), fields=None, body=b""):
        path = f"/{self.name}/{self.prefix}{key}" if key else f"/{self.name}"
        return exchange(self.engine, method, path, query, fields, body)

    def expect(self, statuses, *arguments, **options):
        answer = self.ask(*arguments, **options)
        assert answer.status in statuses, (arguments[:2], answer)
        return answer

    def make(self):
        self.expect((200,), "PUT")
        return self

    def put(self, key, data, **fields):
        """Writes an object; its ETag, without quotes."""
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        return self.expect((200,), "PUT", key, fields=fields, body=bytes(data)).fields["ETag"].strip('"')

    def get(self, key):
        """An object's bytes, or None."""
        answer = self.expect((200, 404), "GET", key)
        return answer.body if answer.status == 200 else None

    def etag(self, key):
        answer = self.expect((200, 404), "HEAD", key)
        return answer.fields["ETag"].strip('"') if answer.status == 200 else None

    def delete(self, key):
        self.expect((200, 204), "DELETE", key)

    def listed(self):
        """All keys below the prefix, with their ETags."""
        found, token = {}, None
        while True:
            query = [("list-type", "2"), ("encoding-type", "url"), ("prefix", self.prefix)]
            answer = self.expect((200,), "GET", query=query + ([("continuation-token", token)] if token else []))
            for key, etag in zip(texts(answer.body, "Key"), texts(answer.body, "ETag")):
                found[unquote(key)[len(self.prefix) :]] = etag.strip('"')
            token = next(iter(texts(answer.body, "NextContinuationToken")), None)
            if texts(answer.body, "IsTruncated") != ["true"]:
                return found

    def keys(self, hidden=False):
        """All keys, without those that servers keep for themselves unless wanted."""
        return sorted(key for key in self.listed() if hidden or not key.startswith(".ztserve/"))

    def uploads(self):
        """Keys and ids of multipart uploads that were neither completed nor aborted."""
        answer = self.expect((200,), "GET", query=[("uploads", "")])
        found = zip(map(unquote, texts(answer.body, "Key")), texts(answer.body, "UploadId"))
        return sorted((key[len(self.prefix) :], upload) for key, upload in found if key.startswith(self.prefix))

    def unfinished(self):
        """The keys of those."""
        return [key for key, _ in self.uploads()]

    def parts(self, key, upload):
        """The numbers of the parts that one has; none also if it is gone."""
        answer = self.expect((200, 404), "GET", key, query=[("uploadId", upload)])
        return texts(answer.body, "PartNumber")

    def put_folder(self, folder):
        """Writes all files of a folder, hidden ones too, under their paths in it."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(str(path.relative_to(folder)), path.read_bytes())
        return self
