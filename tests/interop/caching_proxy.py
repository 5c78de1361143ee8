"""nginx as a caching proxy in front of a server."""

import proxies

# Cached answers are revalidated after this time.
FRESH_S = 1

CACHING_SERVER = """
  proxy_cache_path {folder}/cache keys_zone=models:1m;
  server {{
    listen 80;
    location / {{
      proxy_pass http://{address};
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


def start_caching_proxy(folder, server):
    text = CACHING_SERVER.format(folder=folder, address=f"{server.host}:{server.port}", fresh_s=FRESH_S)
    return proxies.start_nginx(folder, text)
