"""The alerts of deploy/prometheus: each fires in its case, at its time, and is silent in the others (promtool test rules)."""

import json
import re
import shutil
import subprocess

import pytest

from server_process import TOP

RULES = TOP / "deploy" / "prometheus" / "ztserve.rules.yaml"
ALERTS = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), re.MULTILINE)
LABELS = 'job="team/ztserve", instance="a:8080"'

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="skipped: promtool (Debian package prometheus) is not installed"
)


def series(name, values, **labels):
    """One series; "0+5x30" begins at 0 and grows by 5 a minute for 30 minutes."""
    shown = "".join(f', {label}="{value}"' for label, value in labels.items())
    return {"series": f"{name}{{{LABELS}{shown}}}", "values": values}


def requests(values, status="200", route="/v1/models", method="GET"):
    return series("ztserve_http_requests_total", values, route=route, method=method, status=status)


def latencies(fast, slow, route="/v1/models/{model}"):
    """So many requests a minute that take less than 5 ms, and so many that take 2.5 to 10 s."""
    counts = {"0.0002": 0, "0.005": fast, "2.5": fast, "10": fast + slow, "+Inf": fast + slow}
    name = "ztserve_http_response_start_seconds_bucket"
    return [series(name, f"0+{count}x60", route=route, le=le) for le, count in counts.items()]


# Fires: (alert, series, minute); the alert must not fire a minute before its time has come, where that is given.
FIRES = [
    ("ZtserveDown", [series("up", "1 1 0x30")], 5),
    ("ZtserveServerErrors", [requests("0+100x30"), requests("0+2x30", "500")], 12),
    ("ZtserveServerErrors", [requests("0+100x30"), requests("0+1x30", "503"), requests("0+1x30", "507")], 12),
    ("ZtserveCorruptComponents", [series("ztserve_components", "0 0 1x30", state="failed")], 3),
    ("ZtserveVerificationFailing", [series("ztserve_verification_components_total", "0x5 1x30", result="failed")], 8),
    ("ZtserveVerificationFailing", [series("ztserve_verification_components_total", "0x5 1x30", result="unreadable")], 8),
    ("ZtserveSlow", latencies(98, 2), 20),
    ("ZtserveConnectionsNearLimit", [series("ztserve_connections", "850x30"), series("ztserve_connections_limit", "1000x30")], 7),
    ("ZtserveConnectionsRefused", [series("ztserve_connections_refused_total", "0+1x30", reason="limit")], 8),
    ("ZtserveConnectionsRefused", [series("ztserve_connections_refused_total", "0+1x30", reason="address")], 8),
    ("ZtserveUploadsFailing",
     [series("ztserve_uploads_failed_total", "0+1x60", kind="file"), series("ztserve_uploads_published_total", "0x60", kind="file")], 25),
    ("ZtserveNoSpace", [series("ztserve_http_problems_total", "0 0 1x30", code="insufficient-storage", status="507")], 4),
    ("ZtserveSpaceEnds",
     [series("ztserve_upload_available_bytes", "100000000000-100000000x500"), series("ztserve_uploads_published_total", "0+1x500", kind="file")], 420),
    ("ZtserveWorkersBehind",
     [series("ztserve_worker_jobs_queued", "0+5x60", kind="ordinary"), series("ztserve_worker_jobs_queued", "0+5x60", kind="long"),
      series("ztserve_workers", "4x60")], 25),
    ("ZtserveCertificateExpires", [series("ztserve_tls_certificate_expiry_timestamp_seconds", "1200000x30")], 1),
    ("ZtserveReloadFailed", [series("ztserve_config_last_reload_successful", "1 0x30")], 8),
    ("ZtserveUnreadableModels", [series("ztserve_models_unreadable", "2x30")], 16),
    ("ZtserveLoading", [series("ztserve_catalog_loaded", "0x30")], 16),
    ("ZtserveDescriptorsNearLimit", [series("process_open_fds", "950x30"), series("process_max_fds", "1000x30")], 6),
    ("ZtserveClientsRefused", [series("ztserve_auth_failures_total", "0+120x60", reason="unknown_token")], 15),
]  # fmt: skip

# Nothing fires: (the alert that might, series, minute).
SILENT = [
    ("ZtserveDown", [series("up", "1 1 0 1x30")], 20),
    ("ZtserveServerErrors", [requests("0+1000x30"), requests("0+2x30", "500")], 20),
    ("ZtserveServerErrors", [requests("0+100x30"), requests("0+50x30", "501"), requests("0+50x30", "404")], 20),
    ("ZtserveServerErrors", [requests("0x30"), requests("0x30", "500")], 20),
    ("ZtserveCorruptComponents", [series("ztserve_components", "0x30", state="failed"), series("ztserve_components", "9x30", state="unsupported")], 20),
    ("ZtserveVerificationFailing", [series("ztserve_verification_components_total", "0+9x30", result="verified"), series("ztserve_verification_components_total", "3x30", result="failed")], 20),
    ("ZtserveSlow", latencies(1000, 2), 30),
    ("ZtserveSlow", latencies(1, 99, "/v1/uploads/{id}/commit"), 30),
    ("ZtserveConnectionsNearLimit", [series("ztserve_connections", "790x30"), series("ztserve_connections_limit", "1000x30")], 20),
    ("ZtserveConnectionsRefused", [series("ztserve_connections_refused_total", "7x30", reason="limit")], 20),
    ("ZtserveUploadsFailing",
     [series("ztserve_uploads_failed_total", "0+1x60", kind="file"), series("ztserve_uploads_published_total", "0+2x60", kind="file")], 40),
    ("ZtserveNoSpace", [series("ztserve_http_problems_total", "5x30", code="insufficient-storage", status="507")], 20),
    ("ZtserveSpaceEnds", [series("ztserve_upload_available_bytes", "100000000000-100000000x500"), series("ztserve_uploads_published_total", "7x500", kind="file")], 420),
    ("ZtserveSpaceEnds", [series("ztserve_upload_available_bytes", "100000000000-1000000x500"), series("ztserve_uploads_published_total", "0+1x500", kind="file")], 420),
    ("ZtserveWorkersBehind", [series("ztserve_worker_jobs_queued", "0+500x60", kind="idle"), series("ztserve_worker_jobs_queued", "39x60", kind="long"), series("ztserve_workers", "4x60")], 40),
    ("ZtserveCertificateExpires", [series("ztserve_tls_certificate_expiry_timestamp_seconds", "9000000x30")], 20),
    ("ZtserveReloadFailed", [series("ztserve_config_last_reload_successful", "1 0 1x30")], 20),
    ("ZtserveUnreadableModels", [series("ztserve_models_unreadable", "0x30")], 20),
    ("ZtserveLoading", [series("ztserve_catalog_loaded", "0 0 1x30")], 20),
    ("ZtserveDescriptorsNearLimit", [series("process_open_fds", "500x30"), series("process_max_fds", "1000x30")], 20),
    ("ZtserveClientsRefused", [series("ztserve_auth_failures_total", "0+30x60", reason="unknown_token")], 20),
]  # fmt: skip


def run(tests, folder):
    """Runs promtool on cases, as one file."""
    file = folder / "cases.yaml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    return subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False)


def case(name, given, minute, fires):
    """These alerts fire at that minute, and no other."""
    expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in fires]
    asked = {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{minute}m", "exp_samples": expected}
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": [asked]}


def test_every_alert_fires_in_its_case_and_is_silent_in_another(tmp_path):
    assert {alert for alert, _, _ in FIRES} == {alert for alert, _, _ in SILENT} == set(ALERTS)
    cases = [case(f"{alert} fires", given, minute, [alert]) for alert, given, minute in FIRES]
    cases += [case(f"{alert} is silent", given, minute, []) for alert, given, minute in SILENT]
    result = run(cases, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_alerts_wait_for_their_time(tmp_path):
    cases = [
        case("", [series("up", "0x30")], 1, []),
        case("", [series("ztserve_models_unreadable", "2x30")], 14, []),
        case("", [series("ztserve_config_last_reload_successful", "0x30")], 4, []),
    ]
    result = run(cases, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_an_alert_says(tmp_path):
    given = [requests("0+100x30"), requests("0+25x30", "500")]
    expected = {
        "exp_labels": {"job": "team/ztserve", "instance": "a:8080", "severity": "critical"},
        "exp_annotations": {
            "summary": "20% of the requests to a:8080 fail",
            "description": "ztserve_http_problems_total shows the error codes; the log has a line for each request.",
        },
    }
    asked = {"eval_time": "12m", "alertname": "ZtserveServerErrors", "exp_alerts": [expected]}
    result = run([{"interval": "1m", "input_series": given, "alert_rule_test": [asked]}], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_page_says_what_to_do_about_each():
    page = (TOP / "docs" / "operations.md").read_text()
    assert sorted(re.findall(r"`(Ztserve\w+)`", page)) == sorted(ALERTS)


def test_the_files_are_valid():
    for command in (["rules", RULES], ["config", RULES.with_name("scrape.yaml")]):
        result = subprocess.run(["promtool", "check", *command], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
