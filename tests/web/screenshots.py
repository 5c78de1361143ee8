#!/usr/bin/env python3
"""Makes the pictures of docs/screenshots: a server with the examples of the quickstart, and each page of the viewer at two widths.

ZTSERVE=build/ztserve .venv/bin/python tests/web/screenshots.py [FOLDER [light|dark]]
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests" / "http")]

import numpy  # noqa: E402
import requests  # noqa: E402

import models  # noqa: E402
from browser import Browser  # noqa: E402
from containers import zt1  # noqa: E402
from server_process import PROGRAM, ServerProcess  # noqa: E402

# So high that a page's main part is seen.
SIZES = {
    "1280": {"catalog": 450, "model": 800, "tensor": 800, "upload": 720},
    "380": {"catalog": 450, "model": 800, "tensor": 720, "upload": 900},
}
PAGES = {
    "catalog": "",
    "model": "models/acme%2Ftiny%2Fmodel",
    "tensor": "models/vision%2Fpatches/objects/patches.weight/data",
    "upload": "uploads",
}
UNFINISHED = {"acme/small/model": (96 << 20, 61 << 20), "notes/embeddings-2026": (12 << 20, 3 << 20)}


def fill(root):
    random = numpy.random.default_rng(1)
    for folder in ("acme/tiny", "vision"):
        (root / folder).mkdir(parents=True)
    example = PROGRAM.parent / "ztserve-example"
    subprocess.run([example, "--repository", root / "acme/tiny"], check=True)
    subprocess.run([example, root / "example.zt"], check=True)
    (root / "vision/patches.zt").write_bytes(zt1({"patches.weight": models.array(models.waves(768, 300))}))
    (root / "vision/quantized-Q4_0.gguf").write_bytes(models.blocks())
    numpy.save(root / "embeddings.npy", random.normal(size=(4000, 64)).astype("<f4"))
    (root / "vision" / "damaged.safetensors").write_bytes(bytes(500))


def begin_uploads(site):
    """Uploads that are under way, as the page shows them."""
    for model, (length, sent) in UNFINISHED.items():
        fields = {"Tus-Resumable": "1.0.0", "Upload-Length": str(length)}
        fields["Upload-Metadata"] = f"model {base64.b64encode(model.encode()).decode()}"
        address = requests.post(f"{site.url}/v1/resumable", headers=fields).headers["Location"]
        fields = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        requests.patch(requests.compat.urljoin(site.url, address), data=bytes(sent), headers=fields).raise_for_status()


def take(browser, site, folder, scheme):
    browser.prefer(scheme)
    for width, heights in SIZES.items():
        for page, path in PAGES.items():
            browser.resize(int(width), heights[page])
            browser.open(f"{site.url}/ui/{path}")
            if page == "upload":
                browser.wait("document.querySelector('.upload progress') !== null")
            if page == "tensor":
                browser.point("#heatmap", 0.3, 0.4)
                browser.run("scrollTo(0, 0);")
            (folder / f"{page}-{width}.png").write_bytes(browser.screenshot())


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP / "docs" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "models"
        root.mkdir()
        fill(root)
        site = ServerProcess(root, "--writable")
        browser = Browser(Path(temporary))
        try:
            begin_uploads(site)
            take(browser, site, folder, sys.argv[2] if len(sys.argv) > 2 else "light")
        finally:
            browser.close()
            site.stop()


if __name__ == "__main__":
    main()
