"""ztserve beside nginx: the same bytes, the same machine, alternating runs; prints one table of ratios.

A figure is the median over the rounds of ztserve / nginx taken in the same round. "throughput" is requests (or bytes) a
second, "processor" is requests a second of the server's own processor time. Above 1 is ahead of nginx.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from server_process import ServerProcess  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
NGINX_CONFIGURATION = """
daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; default_type application/octet-stream;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port} reuseport; root {root}; }}
}}
"""


def processor_seconds(pids):
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Nginx:
    def __init__(self, root, port):
        self.folder = tempfile.mkdtemp(prefix="bench-nginx.")
        configuration = Path(self.folder) / "nginx.conf"
        configuration.write_text(
            NGINX_CONFIGURATION.format(workers=os.cpu_count(), folder=self.folder, port=port, root=root)
        )
        self.process = subprocess.Popen([NGINX, "-c", configuration], stderr=subprocess.DEVNULL)
        self.port = port
        time.sleep(1)

    def pids(self):
        return [self.process.pid, *children_of(self.process.pid)]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


class Ztserve:
    def __init__(self, root, *arguments):
        self.server = ServerProcess(root, "--log-level", "warn", *arguments)
        self.port = self.server.port

    def pids(self):
        return [self.server.process.pid]

    def stop(self):
        self.server.stop()


def measure(load, target, path, header, connections, seconds):
    """Requests per second, and requests per second of processor time."""
    before = processor_seconds(target.pids())
    command = [load, str(target.port), str(connections), str(seconds), path, *([header] if header else [])]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    used = processor_seconds(target.pids()) - before
    requests, errors, elapsed = int(output[0]), int(output[3]), float(output[2])
    if errors:
        raise SystemExit(f"{path}: {errors} errors")
    # With large answers a request may be unfinished at the end, so bytes are counted.
    return (int(output[1]) / elapsed, int(output[1]) / max(used, 1 / TICKS), requests / elapsed)


def make_files(program_folder, root, large_bytes):
    """A model whose manifest is about 1 KiB of JSON, with one large raw component, and the same bytes for nginx."""
    small, large = root / "small.zt", root / "large.zt"
    subprocess.run([program_folder / "bench-model", small, "1024"], check=True)
    subprocess.run([program_folder / "bench-model", large, str(large_bytes)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--build", type=Path, default=HERE.parent.parent / "build")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="bench-root."))
    root.chmod(0o755)
    make_files(arguments.build, root, 1 << 30)
    ztserve = Ztserve(root)
    nginx = Nginx(root, 18080)
    try:
        report(arguments, root, ztserve, nginx)
    finally:
        ztserve.stop()
        nginx.stop()
        shutil.rmtree(root)


def report(arguments, root, ztserve, nginx):
    load = arguments.build / "bench-load"
    fetch = subprocess.run(
        ["curl", "-s", f"http://127.0.0.1:{ztserve.port}/v1/models/small"], capture_output=True, check=True
    ).stdout
    (root / "small.json").write_bytes(fetch)
    component = json.loads(fetch)["objects"]["weight"]["components"]["data"]
    offset = component["offset"]
    data = "/v1/models/large/objects/weight/data"
    workloads = [
        ("JSON of %d bytes" % len(fetch), "/v1/models/small", "/small.json", None, None),
        ("4 KiB range", data, "/large.zt", 4096, offset),
        ("64 MiB range", data, "/large.zt", 64 << 20, offset),
    ]
    # The first request verifies the component, which is not to be measured.
    subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{ztserve.port}{data}"], check=True)
    subprocess.run(["cat", root / "large.zt"], stdout=subprocess.DEVNULL, check=True)
    print("| workload | connections | ztserve | nginx | throughput | processor |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, ours, theirs, length, base in workloads:
        for connections in (1, 64):
            rows = []
            for _ in range(arguments.rounds):
                header = f"Range: bytes=0-{length - 1}" if length else None
                their_header = f"Range: bytes={base}-{base + length - 1}" if length else None
                rows.append(
                    (
                        measure(load, ztserve, ours, header, connections, arguments.seconds),
                        measure(load, nginx, theirs, their_header, connections, arguments.seconds),
                    )
                )
            print(row_of(name, connections, rows, length), flush=True)


def row_of(name, connections, rows, length):
    throughput = statistics.median(a[0] / b[0] for a, b in rows)
    processor = statistics.median(a[1] / b[1] for a, b in rows)
    if length and length > 1 << 20:
        absolute = [f"{statistics.median(row[i][0] for row in rows) / 1e9:.2f} GB/s" for i in (0, 1)]
    else:
        absolute = [f"{statistics.median(row[i][2] for row in rows):,.0f} /s" for i in (0, 1)]
    return f"| {name} | {connections} | {absolute[0]} | {absolute[1]} | {throughput:.2f} | {processor:.2f} |"


if __name__ == "__main__":
    main()
