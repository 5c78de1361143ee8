"""Reads configurations of Envoy into its own message types, which refuse unknown fields and wrong types.

Prints one line of JSON for each: where it listens, the clusters that its routes name, and those that it has.
"""

import json
import sys
from pathlib import Path

import yaml
from envoy.config.bootstrap.v3 import bootstrap_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401 (registers the type)
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2  # noqa: F401
from google.protobuf import json_format


def routes_of(bootstrap):
    for listener in bootstrap.static_resources.listeners:
        manager = http_connection_manager_pb2.HttpConnectionManager()
        listener.filter_chains[0].filters[0].typed_config.Unpack(manager)
        for host in manager.route_config.virtual_hosts:
            yield from host.routes


for path in map(Path, sys.argv[1:]):
    read = json_format.ParseDict(yaml.safe_load(path.read_text()), bootstrap_pb2.Bootstrap())
    resources = read.static_resources
    found = {
        "ports": [listener.address.socket_address.port_value for listener in resources.listeners],
        "clusters": [cluster.name for cluster in resources.clusters],
        "routed": [route.route.cluster for route in routes_of(read)],
        "timeouts": [route.route.timeout.ToJsonString() for route in routes_of(read)],
    }
    print(json.dumps(found))
