"""Multipart uploads as an S3 client sends them, without signatures."""

import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

from containers import pattern
from wire import ask, get

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
# The least that all parts but the last must have.
UNIT = 5 << 20


def url(key):
    return "/s3/models/" + quote(key)


def code_of(answer):
    """The status, and the code of S3's error."""
    if answer.status < 300:
        return answer.status, None
    return answer.status, ElementTree.fromstring(answer.body).findtext("Code")


def text_of(answer, name):
    assert answer.status == 200, answer
    return ElementTree.fromstring(answer.body).findtext(NAMESPACE + name)


def part_data(number, length=UNIT):
    return pattern(length, seed=number)


def parts_xml(parts, quoting='"%s"', namespace=""):
    """The list of a completion, of (number, etag with its quotes)."""
    items = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{quoting % etag.strip(chr(34))}</ETag></Part>" for number, etag in parts
    )
    return f"<CompleteMultipartUpload{namespace}>{items}</CompleteMultipartUpload>".encode()


class Upload:
    """One upload; remembers the ETag of each acknowledged part."""

    def __init__(self, server, key, fields=None):
        self.server, self.key = server, key
        answer = ask(server, "POST", url(key) + "?uploads", fields or {})
        self.id = text_of(answer, "UploadId")
        self.etags = {}

    def target(self, query=""):
        return f"{url(self.key)}?uploadId={self.id}{query}"

    def try_put(self, number, data, fields=None):
        return ask(self.server, "PUT", self.target(f"&partNumber={number}"), fields or {}, data)

    def put(self, number, data, fields=None):
        answer = self.try_put(number, data, fields)
        assert answer.status == 200, answer
        self.etags[number] = answer["ETag"]
        return answer

    def try_complete(self, parts=None, fields=None, **form):
        parts = sorted(self.etags.items()) if parts is None else parts
        return ask(self.server, "POST", self.target(), fields or {}, parts_xml(parts, **form))

    def complete(self, parts=None, fields=None, **form):
        answer = self.try_complete(parts, fields, **form)
        assert answer.status == 200, answer
        return answer

    def abort(self):
        return ask(self.server, "DELETE", self.target())

    def listed(self, query=""):
        """The listed parts: number to (ETag, size)."""
        answer = get(self.server, self.target(query))
        assert answer.status == 200, answer
        return {
            int(part.findtext(NAMESPACE + "PartNumber")): (
                part.findtext(NAMESPACE + "ETag"),
                int(part.findtext(NAMESPACE + "Size")),
            )
            for part in ElementTree.fromstring(answer.body).iter(NAMESPACE + "Part")
        }


def stored(server, key):
    """The bytes of the visible file, or None."""
    answer = get(server, "/files/" + quote(key))
    return answer.body if answer.status == 200 else None


def listed_uploads(server, query=""):
    """The listed uploads, as (key, id) in their order."""
    answer = get(server, "/s3/models?uploads" + query)
    assert answer.status == 200, answer
    return [
        (upload.findtext(NAMESPACE + "Key"), upload.findtext(NAMESPACE + "UploadId"))
        for upload in ElementTree.fromstring(answer.body).iter(NAMESPACE + "Upload")
    ]
