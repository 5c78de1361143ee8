"""nginx in front of a server, with a folder and a port of its own; and as a caching proxy."""

import shutil
import socket
import subprocess
import time

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
START_TIMEOUT_S = 10
# Cached answers are revalidated after this time.
FRESH_S = 1

FRAME = """
daemon off; master_process off; worker_processes 1; error_log stderr; pid {folder}/pid;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  proxy_cache_path {folder}/cache keys_zone=models:1m;
{server}
}}
"""

CACHING_SERVER = """
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {upstream};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache models;
      proxy_cache_revalidate on;
      # The server asks for revalidation on every use; this proxy accepts answers that are a second old.
      proxy_ignore_headers Cache-Control;
      proxy_cache_valid 200 {fresh_s}s;
      add_header X-Cache $upstream_cache_status always;
    }}
  }}
"""


class Nginx:
    """Runs nginx with one server block: `server_of(port)` is its text."""

    def __init__(self, folder, server_of):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        configuration = folder / "nginx.conf"
        configuration.write_text(FRAME.format(folder=folder, server=server_of(port)))
        self.process = subprocess.Popen(
            [NGINX, "-p", folder, "-c", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._await(port)

    def _await(self, port):
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("nginx did not start") from None
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait(START_TIMEOUT_S)


class CachingProxy(Nginx):
    def __init__(self, folder, upstream):
        super().__init__(
            folder, lambda port: CACHING_SERVER.format(port=port, upstream=upstream, fresh_s=FRESH_S)
        )
