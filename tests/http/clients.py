"""Clients with tokens: a tokens file, and servers as one of its clients sees them."""

import hashlib
import secrets

from wire import Connection, ask


class Client:
    """A name in the tokens file, with a token of its own."""

    def __init__(self, name, scope, *globs):
        self.name, self.scope, self.globs = name, scope, globs
        self.token = secrets.token_hex(32)

    @property
    def line(self):
        digest = hashlib.sha256(self.token.encode()).hexdigest()
        return " ".join([self.name, self.scope, digest, *self.globs])

    @property
    def fields(self):
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, server, method, target, fields=None, body=None):
        return ask(server, method, target, {**self.fields, **(fields or {})}, body)

    def get(self, server, target, fields=None):
        return self.ask(server, "GET", target, fields)


def write_tokens(path, *clients, lines=()):
    """Replaces the file at once, as an operator should."""
    new = path.with_suffix(".new")
    new.write_text("\n".join(["# clients of a test", *[client.line for client in clients], *lines, ""]))
    new.chmod(0o600)
    new.rename(path)
    return path


class Named(Connection):
    """A kept connection of one client."""

    def __init__(self, server, client):
        super().__init__(server)
        self.client = client

    def ask(self, method, target, fields=None, body=None):
        return super().ask(method, target, {**self.client.fields, **(fields or {})}, body)
