"""Uploads beside nginx's dav PUT, and the streaming writer beside itself: alternating runs; prints tables of ratios.

nginx neither hashes nor validates nor syncs: its time until the file is on the disk is given too ("synced": its answer,
then fsync of the file, as a client would have to). A figure is the median over the rounds of ztserve / nginx taken in
the same round; above 1 is ahead of nginx. "processor" is bytes a second of the server's own processor time.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from bench import HERE, NGINX, Ztserve, children_of, processor_seconds

WHOLE_BYTES = 1 << 30
COMPONENTS = 8
COMPONENT_BYTES = 128 << 20
SEND_BYTES = 1 << 20
NGINX_UPLOADS = """
daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
events {{ worker_connections 4096; }}
http {{
    access_log off; client_max_body_size 0;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port} reuseport; root {folder}; dav_methods PUT; }}
    server {{ listen 127.0.0.1:{tuned} reuseport; root {folder}; dav_methods PUT; client_body_buffer_size 1m; }}
}}
"""


class Nginx:
    def __init__(self, folder, port):
        self.folder, self.ports = folder, {"as installed": port, "1 MiB buffer": port + 1}
        configuration = folder / "nginx.conf"
        configuration.write_text(
            NGINX_UPLOADS.format(workers=os.cpu_count(), folder=folder, port=port, tuned=port + 1)
        )
        self.process = subprocess.Popen([NGINX, "-c", configuration], stderr=subprocess.DEVNULL)
        time.sleep(1)

    def pids(self):
        return [self.process.pid, *children_of(self.process.pid)]

    def stop(self):
        self.process.terminate()
        self.process.wait()


# --- a client ---


def exchange(port, method, target, send_body, length):
    """One request on a connection of its own; the answer's status and body."""
    head = f"{method} {target} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode())
        send_body(connection)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


def ask(port, method, target, body=b"", expect=(200, 201, 204)):
    status, answer = exchange(port, method, target, lambda connection: connection.sendall(body), len(body))
    if status not in expect:
        raise SystemExit(f"{method} {target}: {status} {answer.decode(errors='replace')}")
    return answer


def put_file(port, target, path):
    """Sent from the page cache, so that the client takes little processor time."""

    def send_body(connection):
        with open(path, "rb") as file:
            connection.sendfile(file)

    status, answer = exchange(port, "PUT", target, send_body, path.stat().st_size)
    if status not in (201, 204):
        raise SystemExit(f"PUT {target}: {status} {answer.decode(errors='replace')}")


class Pattern:
    """A component's bytes, generated while they are sent; no piece occurs twice."""

    block = bytearray(os.urandom(SEND_BYTES))

    def __init__(self, component, length):
        self.component, self.length = component, length

    def send(self, connection):
        piece = bytearray(Pattern.block)
        for at in range(0, self.length, SEND_BYTES):
            piece[:16] = self.component.to_bytes(8, "little") + at.to_bytes(8, "little")
            connection.sendall(memoryview(piece)[: self.length - at])


def put_component(port, upload, number, length):
    target = f"{upload}/objects/weight{number}/data?dtype=u8&shape={length}"
    status, answer = exchange(port, "PUT", target, Pattern(number, length).send, length)
    if status != 201:
        raise SystemExit(f"PUT {target}: {status} {answer.decode(errors='replace')}")


def put_components(port, upload, length, at_once):
    if not at_once:
        for number in range(COMPONENTS):
            put_component(port, upload, number, length)
        return
    threads = [threading.Thread(target=put_component, args=(port, upload, i, length)) for i in range(COMPONENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def begin_upload(port):
    return "/v1/uploads/" + json.loads(ask(port, "POST", "/v1/models/streamed/uploads", b"{}"))["id"]


# --- what is measured ---


def timed(pids, action):
    """Elapsed seconds, and processor seconds of the server; dirty pages of earlier runs are written out first."""
    os.sync()
    before, begun = processor_seconds(pids), time.monotonic()
    action()
    taken = time.monotonic() - begun
    return taken, processor_seconds(pids) - before


def sync_file(path):
    begun = time.monotonic()
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    return time.monotonic() - begun


def measure_whole(ztserve, nginx, source, rounds):
    rows = []
    for _ in range(rounds):
        row = {"ztserve": timed(ztserve.pids(), lambda: put_file(ztserve.port, "/v1/models/whole", source))}
        ask(ztserve.port, "DELETE", "/v1/models/whole")
        for name, port in nginx.ports.items():
            taken, used = timed(nginx.pids(), lambda port=port: put_file(port, "/whole.zt", source))
            row[name] = (taken, used)
            row[name + ", synced"] = (taken + sync_file(nginx.folder / "whole.zt"), used)
            (nginx.folder / "whole.zt").unlink()
        rows.append(row)
    return rows


def report_whole(rows):
    own = statistics.median(row["ztserve"][0] for row in rows)
    print("| PUT of 1 GiB | seconds | ztserve's throughput / its | processor |\n| --- | --- | --- | --- |")
    print(f"| ztserve (hashed, validated, synced) | {own:.2f} | | |")
    for name in list(rows[0])[1:]:
        seconds = statistics.median(row[name][0] for row in rows)
        ratios = [
            statistics.median(row[name][i] / max(row["ztserve"][i], 0.01) for row in rows) for i in (0, 1)
        ]
        print(f"| nginx, {name} | {seconds:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)


def run_components(ztserve, at_once):
    upload = begin_upload(ztserve.port)
    result = timed(ztserve.pids(), lambda: put_components(ztserve.port, upload, COMPONENT_BYTES, at_once))
    ask(ztserve.port, "DELETE", upload)
    return result


def hashing_speed():
    """SHA-256 in bytes per second on all processors, with nothing else running."""
    command = ["openssl", "speed", "-multi", str(os.cpu_count()), "-seconds", "1", "-bytes", "262144", "-evp", "sha256"]
    last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
    return float(last.rstrip("k")) * 1000


def report_components(ztserve, rounds):
    rows = [(run_components(ztserve, False), run_components(ztserve, True), hashing_speed()) for _ in range(rounds)]
    size = COMPONENTS * COMPONENT_BYTES
    ratio = statistics.median(serial[0] / parallel[0] for serial, parallel, _ in rows)
    beside = statistics.median(size / parallel[0] / speed for _, parallel, speed in rows)
    print(f"\n| {COMPONENTS} components of {COMPONENT_BYTES >> 20} MiB | seconds | processor seconds |")
    print("| --- | --- | --- |")
    for i, name in enumerate(("one after another", "at once")):
        seconds, used = (statistics.median(row[i][j] for row in rows) for j in (0, 1))
        print(f"| {name} | {seconds:.2f} | {used:.2f} |")
    print(f"\nAt once / one after another: {ratio:.2f}; at once / `openssl speed -multi`: {beside:.2f}", flush=True)


# --- memory ---


def memory_of(pid):
    """KiB: resident in total, and of that the program's own memory (without pages of files, which the kernel can drop)."""
    values = dict(line.split()[:2] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return int(values["Rss:"]), int(values["Anonymous:"])


def report_memory(ztserve):
    pid = ztserve.pids()[0]
    put_components_and_forget(ztserve, 1 << 20)
    idle = memory_of(pid)
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    peak, done = [0, 0], threading.Event()

    def watch():
        while not done.wait(0.05):
            peak[:] = map(max, peak, memory_of(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    put_components_and_forget(ztserve, 1 << 30)
    done.set()
    watcher.join()
    status = Path(f"/proc/{pid}/status").read_text()
    high = int(status.split("VmHWM:")[1].split()[0])
    print(f"\n{COMPONENTS} components of 1 GiB at once, MiB above idle: VmHWM {(high - idle[0]) / 1024:.1f}, ", end="")
    print(f"sampled RSS {(peak[0] - idle[0]) / 1024:.1f}, of that not files {(peak[1] - idle[1]) / 1024:.1f}")


def put_components_and_forget(ztserve, length):
    upload = begin_upload(ztserve.port)
    put_components(ztserve.port, upload, length, True)
    ask(ztserve.port, "DELETE", upload)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", type=Path, default=HERE.parent.parent / "build")
    parser.add_argument("--only", choices=["whole", "components", "memory"], action="append")
    arguments = parser.parse_args()
    only = arguments.only or ["whole", "components", "memory"]
    folder = Path(tempfile.mkdtemp(prefix="bench-uploads."))
    folder.chmod(0o755)
    (folder / "models").mkdir()
    source = folder / "source.zt"
    ztserve = Ztserve(folder / "models", "--writable")
    nginx = Nginx(folder, 18082)
    try:
        if "whole" in only:
            subprocess.run([arguments.build / "bench-model", source, str(WHOLE_BYTES)], check=True)
            report_whole(measure_whole(ztserve, nginx, source, arguments.rounds))
            source.unlink()
        if "components" in only:
            report_components(ztserve, arguments.rounds)
        if "memory" in only:
            report_memory(ztserve)
    finally:
        ztserve.stop()
        nginx.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
