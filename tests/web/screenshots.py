#!/usr/bin/env python3
"""Makes the pictures of docs/screenshots: a server with a small model, and each page of the viewer at two widths.

ZTSERVE=build/ztserve .venv/bin/python tests/web/screenshots.py [FOLDER [light|dark]]
"""

import base64
import json
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests" / "http")]

import numpy  # noqa: E402
import requests  # noqa: E402

import models  # noqa: E402
from browser import Browser  # noqa: E402
from containers import dense, zt1  # noqa: E402
from models import bfloat16, waves  # noqa: E402
from server_process import ServerProcess  # noqa: E402

LAYERS = 6
WIDTH = 96
# So high that a page's main part is seen.
SIZES = {
    "1280": {"catalog": 420, "model": 800, "tensor": 800, "upload": 720},
    "380": {"catalog": 420, "model": 800, "tensor": 720, "upload": 900},
}
PAGES = {
    "catalog": "",
    "model": "models/acme%2Ftiny%2Fmodel",
    "tensor": "models/acme%2Ftiny%2Fmodel/objects/model.layers.0.self_attn.q_proj.weight/data",
    "upload": "uploads",
}
README = """# Tiny

A Llama of six layers with random weights, for **trying things out**.

- `config.json` and the tokenizer are those of its architecture
- nothing was trained

```sh
ztserve verify model.zt
```
"""
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "torch_dtype": "bfloat16"}
UNFINISHED = {"acme/small/model": (96 << 20, 61 << 20), "notes/embeddings-2026": (12 << 20, 3 << 20)}


def matrix(random, rows, columns):
    values = random.normal(scale=0.02, size=(rows, columns)) * (1 + waves(rows, columns))
    return dense(bfloat16(values).tobytes(), "bf16", [rows, columns])


def vector(length):
    return dense(bfloat16(numpy.ones(length)).tobytes(), "bf16", [length])


def llama(random):
    objects = {"model.embed_tokens.weight": matrix(random, 2000, WIDTH)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        for part in "qkvo":
            objects[f"{name}.self_attn.{part}_proj.weight"] = matrix(random, WIDTH, WIDTH)
        for part in ("gate", "up"):
            objects[f"{name}.mlp.{part}_proj.weight"] = matrix(random, 3 * WIDTH, WIDTH)
        objects[f"{name}.mlp.down_proj.weight"] = matrix(random, WIDTH, 3 * WIDTH)
        objects[f"{name}.input_layernorm.weight"] = vector(WIDTH)
    objects["model.norm.weight"] = vector(WIDTH)
    return objects


def fill(root):
    random = numpy.random.default_rng(1)
    for folder in ("acme/tiny", "vision"):
        (root / folder).mkdir(parents=True)
    (root / "acme/tiny/model.zt").write_bytes(zt1(llama(random), attributes={"framework": "PyTorch", "license": "apache-2.0"}))
    (root / "acme/tiny/README.md").write_text(README)
    (root / "acme/tiny/config.json").write_text(json.dumps(CONFIG))
    (root / "acme/tiny/tokenizer.json").write_text("{}")
    (root / "vision/quantized-Q4_0.gguf").write_bytes(models.blocks())
    (root / "vision" / "patches.zt").write_bytes(zt1({"patches": matrix(random, 768, 300)}))
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
