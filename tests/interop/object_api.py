"""As much of the API of Kubernetes as `kubectl apply` and `kubectl delete` need: it stores objects, and runs none."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# By version: the kinds, and their names in addresses.
KINDS = {
    "v1": {"ConfigMap": "configmaps", "PersistentVolumeClaim": "persistentvolumeclaims", "Service": "services"},
    "apps/v1": {"Deployment": "deployments"},
    "autoscaling/v2": {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
    "batch/v1": {"Job": "jobs"},
    "cert-manager.io/v1": {"Certificate": "certificates"},
    "monitoring.coreos.com/v1": {"PodMonitor": "podmonitors"},
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
}
VERBS = ["create", "delete", "get", "list", "patch"]


def group_list():
    groups = [tuple(version.split("/")) for version in KINDS if "/" in version]
    stated = [(name, {"groupVersion": f"{name}/{version}", "version": version}) for name, version in groups]
    listed = [{"name": name, "versions": [version], "preferredVersion": version} for name, version in stated]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def resource_list(version):
    kinds = [
        {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": VERBS}
        for kind, name in KINDS[version].items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": kinds}


DISCOVERY = {"/api": {"kind": "APIVersions", "versions": ["v1"]}, "/apis": group_list()}
DISCOVERY |= {f"/apis/{version}" if "/" in version else f"/api/{version}": resource_list(version) for version in KINDS}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?")[0]
        self.answer(DISCOVERY.get(path) or self.server.objects.get(path))

    def do_POST(self):
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.objects[f"{self.path.split('?')[0]}/{made['metadata']['name']}"] = made
        self.answer(made)

    def do_DELETE(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(self.server.objects.pop(self.path.split("?")[0], None))

    def answer(self, found):
        status = 404 if found is None else 200
        text = json.dumps(found or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class ObjectApi(ThreadingHTTPServer):
    """Its objects by their addresses, such as /api/v1/namespaces/default/persistentvolumeclaims/models."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def names(self):
        return sorted("/".join(path.split("/")[-2:]) for path in self.objects)
