"""Proxies in front of a server, each with a folder and a port of its own, started from a configuration's text."""

import os
import random
import re
import shutil
import socket
import subprocess
import time

START_TIMEOUT_S = 120
# Debian keeps servers out of the path of those who are not root.
SEARCH_PATH = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
HERE = "127.0.0.1:8080"


def program(name):
    return shutil.which(name, path=SEARCH_PATH)


def own_address():
    """An address and a port that no other test can take before the proxy does: all of 127.0.0.0/8 is this machine."""
    host = ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))])
    with socket.create_server((host, 0)) as free:
        return f"{host}:{free.getsockname()[1]}"


class Proxy:
    """A proxy that runs in the foreground; `url` is its address."""

    # No TLS.
    context = None

    def __init__(self, folder, own, command):
        self.host, port = own.split(":")
        self.port = int(port)
        self.url = f"http://{own}"
        self.output = folder / "output"
        # Caddy keeps files below these.
        places = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=output, stderr=output, env={**os.environ, **places}
            )
        self._await()

    def _await(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection((self.host, self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.process.kill()
                    self.process.wait()
                    raise RuntimeError(f"the proxy did not start: {self.output.read_text()}") from None
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


NGINX_FRAME = """
daemon off; master_process off; worker_processes 1; error_log stderr; pid {folder}/pid;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{text}
}}
"""


def start_nginx(folder, text, address=HERE):
    """`text` is what stands inside http {}; it listens on port 80 and passes requests on to HERE."""
    own = own_address()
    text = re.sub(r"listen (80|443)\b", f"listen {own}", text).replace(HERE, address)
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX_FRAME.format(folder=folder, text=text))
    return Proxy(folder, own, [program("nginx"), "-p", folder, "-c", configuration])


def start_caddy(folder, text, address=HERE):
    own = own_address()
    site = f"http://{own} {{\n\tbind {own.split(':')[0]}"
    text = re.sub(r"^\S+ \{", site, text, count=1, flags=re.MULTILINE).replace(HERE, address)
    configuration = folder / "Caddyfile"
    configuration.write_text("{\n\tadmin off\n}\n" + text)
    return Proxy(folder, own, [program("caddy"), "run", "--adapter", "caddyfile", "--config", configuration])


def start_haproxy(folder, text, address=HERE):
    own = own_address()
    configuration = folder / "haproxy.cfg"
    configuration.write_text(re.sub(r"bind :(80|443)\b", f"bind {own}", text).replace(HERE, address))
    return Proxy(folder, own, [program("haproxy"), "-db", "-f", configuration])


APACHE_MODULES = ["mpm_event", "authz_core", "headers", "proxy", "proxy_http", "reqtimeout"]
APACHE_FRAME = """
ServerName localhost
User www-data
Group www-data
Listen {own}
PidFile {folder}/pid
DefaultRuntimeDir {folder}
ErrorLog {folder}/errors
{modules}
"""


def start_apache(folder, text, address=HERE):
    own = own_address()
    modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in APACHE_MODULES)
    frame = APACHE_FRAME.format(own=own, folder=folder, modules=modules)
    configuration = folder / "apache.conf"
    configuration.write_text(frame + text.replace("*:80>", f"{own}>").replace(HERE, address))
    return Proxy(folder, own, [program("apache2"), "-d", folder, "-f", configuration, "-D", "FOREGROUND"])
