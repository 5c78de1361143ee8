"""Faults by a seed, at whatever a meddler passes on: a store's or a Hub's answers are cut, delayed, changed or refused.

The same seed does the same to the same request (by path, range and how often it was asked before), in whatever order requests
arrive. `log` says what was done.
"""

import random
import threading
from collections import Counter
from dataclasses import replace

import meddler as acts
from meddler import Reply


def delayed(generator):
    """Later than asked; the answer is true."""
    pause_s = generator.uniform(0.01, 0.4)

    def act(request, handler):
        handler.server.meddler.ended.wait(pause_s)
        return handler.forward(request)

    return act


def paused(generator):
    """Waits within the body."""
    pause_s, share = generator.uniform(0.01, 0.4), generator.random()

    def act(request, handler):
        true = handler.forward(request)
        length = int(len(true.body) * share)

        def then(request, handler):
            handler.server.meddler.ended.wait(pause_s)
            handler.write_body(true.body[length:], handler.seen)
            handler.wfile.flush()
            handler.close_connection = False

        return acts.cut_after(length, then)(request, handler)

    return act


def ended_early(generator):
    """The connection ends or is reset within the body, or before its first byte."""
    share, with_reset = generator.random(), generator.random() < 0.5

    def act(request, handler):
        length = int(len(handler.forward(request).body) * share)
        return acts.cut_after(length, acts.reset if with_reset else ended)(request, handler)

    return act


def ended(request, handler):
    handler.close_connection = True


def flipped(generator):
    return acts.flipped(generator.randrange(1 << 40))


def replaced(generator):
    """As many bytes of another file under the same name."""
    mask = generator.randrange(1, 256)
    table = bytes(value ^ mask for value in range(256))
    return acts.changed(lambda true: replace(true, body=true.body.translate(table)))


def wrong_length(generator):
    length = generator.randint(1, 5000)
    return generator.choice([acts.shorter_answer, acts.longer_answer, acts.short_body])(length)


def wrong_head(generator):
    return generator.choice(
        [
            acts.with_fields(Content_Range="bytes 0-99/100"),
            acts.with_fields(Content_Range=None),
            acts.with_fields(Content_Length="7", Transfer_Encoding="chunked"),
            acts.with_fields(Content_Encoding="gzip"),
        ]
    )


def refused(generator):
    """With a wait that is over soon, if it says one."""
    status = generator.choice([429, 500, 502, 503, 504])
    fields = {"Retry-After": str(generator.choice([0, 1]))} if status in (429, 503) and generator.random() < 0.7 else {}
    return lambda request, handler: Reply(status, {"Content-Type": "text/plain", **fields}, b"of the injector")


def another_page(generator):
    return generator.choice(
        [
            acts.reply(200, b"<html>log in</html>" * generator.randint(1, 500), Content_Type="text/html"),
            acts.reply(204),
            acts.reply(304),
            acts.reply(200, b"", Content_Type="application/json"),
        ]
    )


def reset(generator):
    return acts.reset


# Kinds that any answer may suffer, and such as only bytes of files may: a list has no digest that would show them.
ANYWHERE = [delayed, paused, ended_early, refused, reset, another_page]
OF_BYTES = [*ANYWHERE, flipped, flipped, replaced, wrong_length, wrong_head]


class Injector:
    """Does something to a share of the requests to each of the meddlers until it is stopped. has_bytes: whether a request is for
    bytes of a file."""

    def __init__(self, seed, *meddlers, share=0.3, has_bytes=lambda request: request.kind == "read"):
        self.seed, self.share, self.has_bytes, self.log = seed, share, has_bytes, []
        self.counts, self.lock = Counter(), threading.Lock()
        self.rules = [(one, one.meddle(self.act)) for one in meddlers]

    def act(self, request, handler):
        key = f"{request.method} {request.path} {request.range}"
        with self.lock:
            self.counts[key] += 1
            number = self.counts[key]
        generator = random.Random(f"{self.seed} {key} {number}")
        if generator.random() >= self.share:
            return handler.forward(request)
        kind = generator.choice(OF_BYTES if self.has_bytes(request) else ANYWHERE)
        self.log.append(f"{kind.__name__}: {key}, time {number}")
        return kind(generator)(request, handler)

    def stop(self):
        for meddler, rule in self.rules:
            meddler.stop(rule)
