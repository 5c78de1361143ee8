"""An upstream, or what is around it, that is hostile or odd: the mirror neither follows it nor gives way."""

from pull_through import MIB, REPO, eventually_downloaded, safetensors

FILE = safetensors(3 * MIB, seed=11)


def test_a_proxy_of_the_environment_is_not_used(upstream, start_server, tmp_path):
    """Nor is its address taken for the one to which the upstream redirects."""
    upstream.add(REPO, {"model.safetensors": FILE, "config.json": b"{}\n"})
    environment = {"http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9", "no_proxy": ""}
    server = start_server(tmp_path, "--upstream", upstream.endpoint, environment=environment)
    eventually_downloaded(server, REPO, "config.json", b"{}\n")
    eventually_downloaded(server, REPO, "model.safetensors", FILE)
