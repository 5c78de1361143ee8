"""deploy/grafana/ztserve.json and the alerts: every expression is PromQL, and asks for metrics and labels that the server has."""

import json
import re
import shutil
import subprocess

import pytest

from containers import dense, zt1
from server_process import TOP, ServerProcess
from wire import component_path, get

DASHBOARD = json.loads((TOP / "deploy" / "grafana" / "ztserve.json").read_text())
RULES = TOP / "deploy" / "prometheus" / "ztserve.rules.yaml"
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
# Only with TLS.
ABSENT = {"ztserve_tls_certificate_expiry_timestamp_seconds"}
# Prometheus adds these to what it scrapes.
ADDED = {"job", "instance"}


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """{name: labels} of all that a server shows after a few requests."""
    root = tmp_path_factory.mktemp("root")
    (root / "m.zt").write_bytes(zt1({"w": dense(b"12")}))
    # Nobody asks it for anything.
    server = ServerProcess(root, "--upstream", "http://127.0.0.1:9")
    get(server, component_path("m", "w"))
    get(server, "/nowhere")
    get(server, "/metrics")
    text = get(server, "/metrics").body.decode()
    assert server.stop() == 0
    shown = {}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        shown.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return shown


def names_in(expression):
    return set(re.findall(r"\b((?:ztserve|process)_[a-z_]+)\b", re.sub(r'"[^"]*"', '""', expression)))


def selectors_in(expression):
    """(metric, labels in its braces), braces in quotes aside."""
    plain = re.sub(r'"[^"]*"', '""', expression)
    return [(name, set(re.findall(r"(\w+) ?[=!]", labels))) for name, labels in re.findall(r"\b([a-z_]+)\{([^}]*)\}", plain)]


def check(expressions, metrics):
    for expression in expressions:
        names = names_in(expression)
        assert names <= set(metrics) | ABSENT, expression
        for name, labels in selectors_in(expression):
            assert labels - ADDED <= metrics.get(name, set()), expression
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            known = set().union(*(metrics.get(name, set()) for name in names)) | ADDED
            assert {label.strip() for label in grouped.split(",")} <= known, expression


def test_panels_ask_for_metrics_that_exist(metrics):
    assert len(EXPRESSIONS) > 40
    check(EXPRESSIONS, metrics)


def test_alerts_ask_for_metrics_that_exist(metrics):
    text = RULES.read_text()
    expressions = re.findall(r"expr: (?:\|\n((?: {10,}.*\n)+)|(.*))", text)
    assert len(expressions) == text.count("- alert:")
    check([(block or line).replace("up{", "ztserve_build_info{") for block, line in expressions], metrics)


def test_the_dashboard_shows_every_metric(metrics):
    shown = {re.sub("_(bucket|sum|count)$", "", name) for expression in EXPRESSIONS for name in names_in(expression)}
    served = {re.sub("_(bucket|sum|count)$", "", name) for name in metrics}
    unseen = {"ztserve_config_reloads_total", "ztserve_config_last_reload_success_timestamp_seconds"}
    assert served - shown == unseen | {"process_virtual_memory_bytes", "process_threads"}


def test_expressions_are_promql(tmp_path):
    if shutil.which("promtool") is None:
        pytest.skip("skipped: promtool (Debian package prometheus) is not installed")
    # What Grafana puts in before it asks.
    plain = [one.replace("$__rate_interval", "5m").replace("$job", "x").replace("$instance", "y") for one in EXPRESSIONS]
    assert not any("$" in one for one in plain)
    rules = [{"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(plain)]
    file = tmp_path / "panels.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    result = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_panels_do_not_overlap_and_have_ids_of_their_own():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
