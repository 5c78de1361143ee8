"""Which tests of this folder depend on other people's releases, and what several of its files need of the Hub's clients."""

from pathlib import Path

import pytest

from environments import TORCH_OF
from hub_clients import RELEASES, HubClient
from hub_repositories import write_files
from s3_round_trip import LARGE, SMALL

HERE = Path(__file__).resolve().parent
# A new release of somebody else's program breaks these more often than a change of ours, and they take most of this
# folder's time: environments, images, packages. Only `tests/run.sh --all` runs them.
OTHERS = {
    "test_compose",
    "test_debian_package",
    "test_folder_indices",
    "test_http_clients",
    "test_hub_javascript",
    "test_hub_llama",
    "test_hub_rust",
    "test_hub_transformers",
    "test_image",
    "test_kubernetes",
    "test_proxies",
    "test_release",
    "test_replicas",
    "test_s3_other_clients",
    "test_save_pretrained",
    "test_tus_js",
    "test_zarr",
}
# Likewise, earlier releases of clients whose current release is always tested; ztensor 1.2.3 is the current one of its format.
EARLIER = {
    *RELEASES[1:], *TORCH_OF, "0.1.4", "1.0.1", "1.1.1", "torch-1.6.0", "torch-2.1.2",
    "magnetron-0.1.2", "magnetron-0.1.6", "magnetron-0.1.7", "magnetron-0.1.9",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        is_earlier = any(isinstance(value, str) and value in EARLIER for value in values)
        if item.path.parent == HERE and (item.path.stem in OTHERS or is_earlier):
            item.add_marker(pytest.mark.others)


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


@pytest.fixture
def new_client(release, tmp_path):
    """Makes clients of one release, each with an empty cache."""
    made = []

    def make(url, **options):
        made.append(HubClient(release, tmp_path / f"home{len(made)}", url, **options))
        return made[-1]

    return make


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def hub(request, root, start_server):
    """Serves root for writing, with the module's SETTINGS; other servers of a test may write there too."""
    return start_server(root, "--writable", "--shared", environment=getattr(request.module, "SETTINGS", {}))


@pytest.fixture
def source(request, tmp_path):
    """A folder with the module's FILES, to be uploaded."""
    write_files(tmp_path / "source", request.module.FILES)
    return tmp_path / "source"


@pytest.fixture
def sent(tmp_path):
    """A folder with the files that clients of S3 send."""
    write_files(tmp_path / "sent", {"small": SMALL, "large": LARGE})
    return tmp_path / "sent"
