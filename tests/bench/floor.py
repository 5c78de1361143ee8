"""How much of the distance to nginx is the library's and the kernel's: the same answers from libmicrohttpd alone."""

import urllib.request

import reading
from context import Target
from figures import Figure
from servers import Yardstick
from workload import workload

CONNECTIONS = 64
RANGE_BYTES = 4096
# The library adds these itself.
OWN_FIELDS = ("date", "content-length", "connection")
HOW = {"shared": "libmicrohttpd, one response", "each": "libmicrohttpd, a response each", "bare": "a loop without HTTP"}


def answering_alike(context, how, target):
    """bench-floor, giving the answer that ztserve gives: the same fields, the same body."""
    url = f"http://{target.server.address}:{target.server.port}{target.path}"
    request = urllib.request.Request(url, headers=dict(field.split(": ", 1) for field in target.headers))
    with urllib.request.urlopen(request, timeout=60) as answer:
        status, fields, body = answer.status, answer.headers.items(), answer.read()
    folder = context.sub_folder(f"floor-{how}")
    (folder / "body").write_bytes(body)
    lines = (f"{name}: {value}\r\n" for name, value in fields if name.lower() not in OWN_FIELDS)
    (folder / "fields").write_text("".join(lines))
    command = [context.build / "bench-floor", how, str(status), folder / "fields", folder / "body"]
    return Yardstick(context.processor, *command)


def floors(context, what, sides, kinds):
    """ztserve beside nginx and these kinds of floor, with as many connections as keep the server busy."""
    running = [context.start(lambda how=how: answering_alike(context, how, sides.ztserve)) for how in kinds]
    targets = [sides.ztserve, sides.nginx, *(Target(server, "/") for server in running)]
    with context.watch() as others:
        results = context.alternate([lambda target=target: context.load(target, CONNECTIONS) for target in targets])
    context.stop(*running)
    rates = [reading.rates(side, "requests")[1] for side in results]
    for name, theirs in zip(("nginx", *(HOW[how] for how in kinds)), rates[1:]):
        row = f"{what}, {CONNECTIONS} connections, beside {name}"
        yield Figure(
            "floor", row, "per processor second", "/cpu s", rates[0], theirs, beside=name, others=others[0]
        )


@workload("floor", "what libmicrohttpd and the kernel need for the same answers")
def floor(context):
    yield from floors(context, "manifest of 1 KiB", reading.manifest_sides(context), ("shared", "bare"))
    yield from floors(context, "range of 4 KiB", reading.range_sides(context, RANGE_BYTES), tuple(HOW))
