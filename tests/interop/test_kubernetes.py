"""deploy/kubernetes: what would be applied has the types of the API, fits together, and starts a ztserve with settings it knows."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import time

import pytest
import requests
import yaml

import kustomize
from environments import run_client
from object_api import ObjectApi
from server_process import PROGRAM, TOP
from wire import eventually

FOLDER = TOP / "deploy" / "kubernetes"
# Defined by operators that a cluster may have, not by Kubernetes.
CUSTOM = {"Certificate": "cert-manager.io/v1", "PodMonitor": "monitoring.coreos.com/v1"}
# Made by the person who applies these, or by an operator.
EXPECTED = {"ztserve-tokens", "ztserve-tls", "ztserve-jwks"}
BUILDS = {
    "default": (".", []),
    "base": ("base", []),
    "replicas": ("overlays/replicas", []),
    "replicas, watched": ("overlays/replicas", ["components/monitoring"]),
    "writable": ("overlays/writable", []),
    "writable, watched": ("overlays/writable", ["components/monitoring"]),
    "bucket": ("overlays/bucket", []),
    "mirror": ("overlays/mirror", []),
    "tokens": ("base", ["components/tokens"]),
    "tls": ("base", ["components/tls"]),
    "service accounts": ("base", ["components/tokens", "components/service-accounts"]),
    "sidecar": ("sidecar", []),
}
# It runs once, and serves nothing.
JOB = {"pull": ("pull", [])}
FOLDERS = sorted({folder for folder, _ in [*BUILDS.values(), *JOB.values()]})
VERSION = re.search(r"project\(ztserve VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text())[1]
SUBJECT = "system:serviceaccount:training:trainer"
TOKENS = f"""
trainer  write  {hashlib.sha256(b"secret").hexdigest()}
pods     read   jwt:system:serviceaccount:training:*
""".encode()


def build(folder, components):
    return kustomize.build(FOLDER / folder, [FOLDER / component for component in components])


@pytest.fixture(params=BUILDS)
def built(request):
    return build(*BUILDS[request.param])


@pytest.fixture(params=BUILDS | JOB)
def applied(request):
    return build(*(BUILDS | JOB)[request.param])


def one(objects, kind):
    found = [made for made in objects if made["kind"] == kind]
    return found[0] if found else None


def pod_of(objects):
    return (one(objects, "Deployment") or one(objects, "Job"))["spec"]["template"]["spec"]


def containers_of(pod):
    return pod.get("initContainers", []) + pod["containers"]


def ztserve_of(objects):
    return next(container for container in containers_of(pod_of(objects)) if container["name"] == "ztserve")


def settings_of(objects):
    container = ztserve_of(objects)
    settings = {variable["name"]: variable["value"] for variable in container.get("env", [])}
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            settings |= kustomize.find(objects, "ConfigMap", source["configMapRef"]["name"])["data"]
    return settings


def used_by(folder):
    """The kustomizations that one leads to, and their files."""
    stated = yaml.safe_load((folder / "kustomization.yaml").read_text())
    yield folder / "kustomization.yaml"
    for path in [(folder / name).resolve() for name in stated.get("resources", []) + stated.get("components", [])]:
        yield from used_by(path) if path.is_dir() else [path]


def test_every_file_is_used():
    tried = {name for folder, components in [*BUILDS.values(), *JOB.values()] for name in [folder, *components]}
    used = {path for name in tried for path in used_by((FOLDER / name).resolve())}
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == used | {FOLDER / "claim.yaml"}


def wrong_types(objects, folder):
    (folder / "objects").write_text(json.dumps(objects))
    return json.loads(run_client("kubernetes", folder / "objects"))


def test_objects_have_the_types_of_the_api(applied, tmp_path):
    assert all(made["apiVersion"] == CUSTOM[made["kind"]] for made in applied if made["kind"] in CUSTOM)
    assert wrong_types([made for made in applied if made["kind"] not in CUSTOM], tmp_path) == []


def test_deleting_a_folder_keeps_the_models(applied):
    """`kubectl delete -k` deletes the objects of a folder, which must not include the claim or its namespace."""
    assert {made["kind"] for made in applied} & {"PersistentVolumeClaim", "PersistentVolume", "Namespace"} == set()


def test_the_claim_is_the_volume_that_everything_mounts(tmp_path):
    claim = yaml.safe_load((FOLDER / "claim.yaml").read_text())
    assert (claim["kind"], wrong_types([claim], tmp_path)) == ("PersistentVolumeClaim", [])
    mounted = [volume for folder in FOLDERS for volume in pod_of(build(folder, []))["volumes"]]
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in mounted if "persistentVolumeClaim" in volume]
    assert set(names) == {claim["metadata"]["name"]}
    # Where such a claim cannot be on two nodes, a new pod would wait for the old one, which would wait for the new one.
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    for folder in (".", "overlays/writable", "overlays/mirror"):
        assert one(build(folder, []), "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def images_in(folder):
    pods = [pod_of(kustomize.build(folder / name)) for name in FOLDERS]
    return {container["image"] for pod in pods for container in containers_of(pod) if container["name"] == "ztserve"}


def test_one_line_sets_the_image_of_servers_and_jobs(tmp_path):
    assert images_in(FOLDER) == {f"localhost/ztserve:{VERSION}"}
    # The image that `make image` builds.
    assert "image=${ZT_IMAGE:-localhost/ztserve:$version}\n" in (TOP / "deploy" / "image.sh").read_text()
    changed = shutil.copytree(FOLDER, tmp_path / "kubernetes")
    line = changed / "components" / "image" / "kustomization.yaml"
    line.write_text(line.read_text().replace("newName: localhost/ztserve", "newName: registry.example.org:5000/team/ztserve"))
    assert images_in(changed) == {f"registry.example.org:5000/team/ztserve:{VERSION}"}


def admitted(objects):
    return [peer for rule in one(objects, "NetworkPolicy")["spec"]["ingress"] for peer in rule["from"]]


@pytest.mark.parametrize("folder", sorted({folder for folder, components in BUILDS.values() if components}))
def test_monitoring_admits_prometheus_from_its_namespace(folder):
    assert admitted(build(folder, [])) == [{"podSelector": {}}]
    watched = build(folder, ["components/monitoring"])
    prometheus = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
    }
    assert admitted(watched) == [{"podSelector": {}}, prometheus]
    ports = [port["port"] for rule in one(watched, "NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
    assert ports == ["http", "http"]
    assert one(watched, "PodMonitor")["spec"]["podMetricsEndpoints"][0]["port"] == "http"


needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@needs_kubectl
@pytest.mark.parametrize("folder", FOLDERS)
def test_kubectl_makes_the_same_of_it(folder):
    command = ["kubectl", "kustomize", FOLDER / folder]
    made = subprocess.run(command, capture_output=True, text=True)
    if "unknown field" in made.stderr or "unknown command" in made.stderr:
        pytest.skip("skipped: this kubectl is too old for components")
    assert made.returncode == 0, made.stderr
    without_hash = re.sub(r"\bztserve-[a-z0-9]{10}\b", "ztserve", made.stdout)
    assert kustomize.as_text(yaml.safe_load_all(without_hash)) == kustomize.as_text(kustomize.build(FOLDER / folder))


@pytest.fixture
def api():
    with ObjectApi() as api:
        yield api
        api.shutdown()


def kubectl(api, *arguments):
    command = ["kubectl", "--server", api.url, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"KUBECONFIG": os.devnull}, timeout=120)
    assert result.returncode == 0, result.stderr


@needs_kubectl
@pytest.mark.parametrize("folder", FOLDERS)
def test_kubectl_deletes_everything_except_the_claim(folder, api):
    kubectl(api, "apply", "--validate=false", "-f", FOLDER / "claim.yaml")
    kubectl(api, "apply", "--validate=false", "-k", FOLDER / folder)
    assert len(api.names()) > 1
    kubectl(api, "delete", "-k", FOLDER / folder)
    assert api.names() == ["persistentvolumeclaims/models"]


@needs_kubectl
def test_the_job_can_be_replaced_whether_it_exists_or_not(api):
    for _ in range(2):
        kubectl(api, "replace", "--force", "--validate=false", "-k", FOLDER / "pull")
        assert api.names() == ["jobs/ztserve-pull"]


def test_names_lead_to_what_is_there(built):
    pod = pod_of(built)
    labels = one(built, "Deployment")["spec"]["template"]["metadata"]["labels"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounted = {mount["name"] for container in containers_of(pod) for mount in container["volumeMounts"]}
    assert mounted == set(volumes)
    secrets = {volume["secret"]["secretName"] for volume in volumes.values() if "secret" in volume}
    maps = {volume["configMap"]["name"] for volume in volumes.values() if "configMap" in volume}
    assert secrets | maps <= EXPECTED
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes.values() if "persistentVolumeClaim" in volume]
    assert claims == ([] if settings_of(built)["ZTSERVE_ROOT"].startswith("s3://") else ["models"])
    assert one(built, "Certificate") is None or one(built, "Certificate")["spec"]["secretName"] in secrets
    for selector in selectors_of(built):
        assert selector.items() <= labels.items()


def selectors_of(objects):
    deployment = one(objects, "Deployment")
    yield deployment["spec"]["selector"]["matchLabels"]
    for spread in deployment["spec"]["template"]["spec"].get("topologySpreadConstraints", []):
        yield spread["labelSelector"]["matchLabels"]
    for kind, key in [("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector"), ("PodMonitor", "selector")]:
        if one(objects, kind):
            yield one(objects, kind)["spec"][key]["matchLabels"]
    if one(objects, "Service"):
        yield one(objects, "Service")["spec"]["selector"]
    if scaler := one(objects, "HorizontalPodAutoscaler"):
        reference = scaler["spec"]["scaleTargetRef"]
        assert (reference["kind"], reference["name"]) == ("Deployment", deployment["metadata"]["name"])
        # Otherwise each apply would set the number back.
        assert "replicas" not in deployment["spec"]


def test_ports_are_those_that_the_server_listens_on(built):
    container, settings = ztserve_of(built), settings_of(built)
    host, port = settings["ZTSERVE_LISTEN"].rsplit(":", 1)
    ports = {entry["name"]: entry["containerPort"] for entry in container.get("ports", [])}
    assert ports == ({} if host == "127.0.0.1" else {"http": int(port)})
    named = []
    if service := one(built, "Service"):
        named += [entry["targetPort"] for entry in service["spec"]["ports"]]
        named += [entry["port"] for entry in one(built, "NetworkPolicy")["spec"]["ingress"][0]["ports"]]
    if monitor := one(built, "PodMonitor"):
        named += [entry["port"] for entry in monitor["spec"]["podMetricsEndpoints"]]
    assert set(named) <= set(ports)
    annotations = one(built, "Deployment")["spec"]["template"]["metadata"].get("annotations", {})
    assert annotations.get("prometheus.io/port", port) == port


def test_probes_reach_the_server(built):
    container, settings = ztserve_of(built), settings_of(built)
    probes = {name: container[name] for name in ("startupProbe", "readinessProbe", "livenessProbe") if name in container}
    if settings["ZTSERVE_LISTEN"].startswith("127."):
        # The program of the image, as the entry point names it.
        program = json.loads(re.search(r"^ENTRYPOINT (.*)$", (TOP / "Dockerfile").read_text(), re.MULTILINE)[1])
        assert {name: probe["exec"]["command"] for name, probe in probes.items()} == {
            "startupProbe": [*program, "healthcheck", "--ready"],
            "livenessProbe": [*program, "healthcheck"],
        }
        return
    paths = {name: probe["httpGet"]["path"] for name, probe in probes.items()}
    assert paths == {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    scheme = "HTTPS" if "ZTSERVE_TLS_CERT" in settings else "HTTP"
    assert {probe["httpGet"].get("scheme", "HTTP") for probe in probes.values()} == {scheme}


def test_pods_have_time_to_drain(built):
    settings = settings_of(built)
    delay, drain = int(settings.get("ZTSERVE_DRAIN_DELAY_S", 0)), int(settings["ZTSERVE_DRAIN_S"])
    assert pod_of(built)["terminationGracePeriodSeconds"] >= delay + drain + 5
    # Who comes through a service still finds a pod that has had its signal.
    assert (delay >= 5) == (one(built, "Service") is not None)


def test_pods_are_restricted(applied):
    """The profile "restricted" of the Pod Security Standards, and no writable root file system."""
    pod = pod_of(applied)
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert pod["securityContext"].items() >= {"runAsNonRoot": True, "runAsUser": 65532}.items()
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    for container in containers_of(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
    allowed = {"persistentVolumeClaim", "emptyDir", "secret", "configMap"}
    assert all(set(volume) - {"name"} <= allowed for volume in pod["volumes"])


def test_only_a_server_that_may_be_written_can_write(built):
    settings, container = settings_of(built), ztserve_of(built)
    writable = settings.get("ZTSERVE_WRITABLE") == "true"
    mirrors = "ZTSERVE_UPSTREAMS" in settings
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    if settings["ZTSERVE_ROOT"].startswith("s3://"):
        assert mounts.pop(settings["ZTSERVE_CACHE_DIR"]) is False
    else:
        assert mounts.pop(settings["ZTSERVE_ROOT"]) is not (writable or mirrors)
    assert [path for path, read_only in mounts.items() if not read_only] == ["/var/lib/ztserve"]
    assert not writable or {"ZTSERVE_AUTH_TOKENS", "ZTSERVE_TLS_CERT"} <= set(settings)
    assert not writable or one(built, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    state = settings["ZTSERVE_STATE_DIR"]
    assert state in mounts or ((writable or mirrors) and state.startswith(settings["ZTSERVE_ROOT"]))


def test_settings_are_known_and_their_files_are_mounted(built, tmp_path):
    settings, container = settings_of(built), ztserve_of(built)
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    files = {name: value for name, value in settings.items() if value.startswith("/")}
    assert all(any(value == mount or value.startswith(f"{mount}/") for mount in mounts) for value in files.values())
    # Files that exist here in place of those in the pod.
    (tmp_path / "empty.json").write_text("{}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ZTSERVE_")}
    command = [PROGRAM, "check-config", tmp_path / "empty.json"]
    checked = subprocess.run(command, capture_output=True, text=True, env=environment | settings)
    # The files of the container are not here.
    said = [line for line in checked.stderr.splitlines() if not line.endswith("it is not checked")]
    assert (checked.returncode, said) == (0, [])
    assert json.loads(checked.stdout)["listen"] == settings["ZTSERVE_LISTEN"]


def mount_files(folder, files):
    """As the kubelet does it: files are links into a folder that is exchanged as a whole."""
    (folder / "..1").mkdir(parents=True)
    (folder / "..data").symlink_to("..1")
    for name, content in files.items():
        (folder / "..1" / name).write_bytes(content)
        (folder / name).symlink_to(f"..data/{name}")


def make_certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=ztserve", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", folder / "key", "-out", folder / "certificate"]
    subprocess.run(command, check=True, capture_output=True)
    return {"tls.crt": (folder / "certificate").read_bytes(), "tls.key": (folder / "key").read_bytes()}


def base64url(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def make_keys(folder):
    """The key of a cluster, as it publishes it."""
    subprocess.run(["openssl", "genrsa", "-out", folder / "cluster", "2048"], check=True, capture_output=True)
    command = ["openssl", "rsa", "-in", folder / "cluster", "-noout", "-modulus"]
    modulus = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().split("=")[1]
    key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": base64url(bytes.fromhex(modulus)), "e": "AQAB"}
    return {"jwks.json": json.dumps({"keys": [key]}).encode()}


def token_of_service_account(folder, settings):
    claims = {"iss": settings["ZTSERVE_AUTH_ISSUER"], "aud": [settings["ZTSERVE_AUTH_AUDIENCE"]], "sub": SUBJECT}
    claims |= {"iat": int(time.time()), "nbf": int(time.time()), "exp": int(time.time()) + 3600}
    text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "1"}, claims))
    command = ["openssl", "dgst", "-sha256", "-sign", folder / "cluster"]
    return f"{text}.{base64url(subprocess.run(command, check=True, capture_output=True, input=text.encode()).stdout)}"


def test_the_settings_start_a_server_that_answers_its_probes(built, tmp_path, start_server):
    settings, container = settings_of(built), ztserve_of(built)
    makers = {
        "ztserve-tls": lambda: make_certificate(tmp_path),
        "ztserve-tokens": lambda: {"tokens": TOKENS},
        "ztserve-jwks": lambda: make_keys(tmp_path),
    }
    volumes = {volume["name"]: volume for volume in pod_of(built)["volumes"]}
    for mount in container["volumeMounts"]:
        folder = tmp_path / mount["mountPath"].removeprefix("/")
        volume = volumes[mount["name"]]
        if "secret" in volume:
            mount_files(folder, makers[volume["secret"]["secretName"]]())
        elif "configMap" in volume:
            mount_files(folder, makers[volume["configMap"]["name"]]())
        else:
            folder.mkdir(parents=True)
    # Nothing connects to this server while it stops.
    settings = settings | {"ZTSERVE_DRAIN_DELAY_S": "0"}
    here = {name: f"{tmp_path}{value}" if value.startswith("/") else value for name, value in settings.items()}
    root = here.pop("ZTSERVE_ROOT")
    address = here.pop("ZTSERVE_LISTEN").rsplit(":", 1)[0]
    server = start_server(root, "--listen", f"{address}:0", environment=here)
    base = f"{'https' if 'ZTSERVE_TLS_CERT' in settings else 'http'}://127.0.0.1:{server.port}"
    client = requests.Session()
    # Variables may name other authorities.
    client.trust_env = False
    client.verify = str(tmp_path / "certificate")
    if root.startswith("s3://"):
        # There is no such store: the server is alive, and not ready.
        assert [client.get(f"{base}{path}").status_code for path in ("/healthz", "/readyz", "/v1/models")] == [200, 503, 503]
        return
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if "httpGet" in container.get(probe, {}):
            probed = f"{base}{container[probe]['httpGet']['path']}"
            eventually(lambda probed=probed: client.get(probed).status_code == 200)
        elif probe in container:
            command = [PROGRAM, *container[probe]["exec"]["command"][1:]]
            environment = os.environ | here | {"ZTSERVE_LISTEN": f"{address}:{server.port}"}
            eventually(lambda run=(command, environment): subprocess.run(run[0], env=run[1]).returncode == 0)
    has_tokens, is_watched = "ZTSERVE_AUTH_TOKENS" in settings, "ZTSERVE_METRICS_PUBLIC" in settings
    assert client.get(f"{base}/v1/models").status_code == (401 if has_tokens else 200)
    assert client.get(f"{base}/metrics").status_code == (401 if has_tokens and not is_watched else 200)
    client.headers["Authorization"] = "Bearer secret"
    assert client.get(f"{base}/v1/models").status_code == 200
    begun = client.post(f"{base}/v1/models/m/uploads", json={})
    assert begun.status_code == (201 if "ZTSERVE_WRITABLE" in settings else 403)
    if "ZTSERVE_AUTH_JWKS" in settings:
        client.headers["Authorization"] = f"Bearer {token_of_service_account(tmp_path, settings)}"
        assert client.get(f"{base}/v1/models").status_code == 200


def command_of_job(server, claim):
    """What the Job's container runs, and its environment: the kubelet expands $(NAME); the claim is a folder here."""
    container = ztserve_of(build("pull", []))
    environment = {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}
    environment["SERVER"] = server.url
    expanded = [re.sub(r"\$\((\w+)\)", lambda name: environment[name[1]], argument) for argument in container["args"]]
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert mounted == ["/models"] and "ZTSERVE_TOKEN" in [variable["name"] for variable in container["env"]]
    return [PROGRAM, *[re.sub(r"^/models/", f"{claim}/", argument) for argument in expanded]], environment


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_job_fills_the_claim(tmp_path, start_server):
    source, claim = tmp_path / "source", tmp_path / "claim"
    repository = source / "acme" / "tiny"
    repository.mkdir(parents=True)
    claim.mkdir()
    subprocess.run([PROGRAM.parent / "ztserve-example", "--repository", repository], check=True)
    (tmp_path / "tokens").write_bytes(TOKENS)
    command, environment = command_of_job(start_server(source, "--tokens", tmp_path / "tokens"), claim)
    refused = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True)
    assert refused.returncode != 0 and files_in(claim) == {}, refused.stderr
    # The second run is a Job that was replaced.
    for _ in range(2):
        filled = subprocess.run(command, env=environment | {"ZTSERVE_TOKEN": "secret"}, cwd="/", capture_output=True, text=True)
        assert filled.returncode == 0, filled.stderr
        assert files_in(claim) == {f"acme/tiny/{name}": content for name, content in files_in(repository).items()}
    listing = requests.get(f"{start_server(claim).url}/v1/models").json()
    assert [model["name"] for model in listing["models"]] == ["acme/tiny/model"]
