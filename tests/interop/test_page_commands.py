"""Every fenced block of the README and of docs/ works as it stands: in the order of its page, from what deploy/quickstart.sh
leaves, with the output that the page shows. Blocks of a new page, of a new language and new commands are run too.

What cannot run here is in UNRUN, with the reason, and checked as far as that goes."""

import json
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml

import kustomize
from environments import CLIENTS, is_available, python_of
from page_blocks import PAGES, blocks_of, commands_of, matches, shown_by
from server_process import PROGRAM, TOP

COMMAND_S = 180
# Which environment has what a block uses; the first that matches. All other blocks run with the Python of the tests.
ENVIRONMENTS = {
    r"\b(import|from) [\w., ]*\b(transformers|torch)\b": "transformers-5.23.0",
    r"\b(import|from) [\w., ]*\b(zarr|xarray)\b": "zarr",
    # Before boto3 and aws, which are in these environments too.
    r"\bdvc \w|\bimport s3fs\b": "s3-dvc",
    r"\bfrom mlflow\b": "s3-mlflow",
    r"\bfrom runai_model_streamer\b": "runai_model_streamer-0.17.1",
    r"^(aws|s5cmd|rclone) \w|^(import|from) (boto3|obstore|pyarrow)\b": "s3",
    r"(^|\s)hf \w|\b(import|from) huggingface_hub\b": "hub-2.4.0",
}
COMMANDS = ("sh", "bash", "python")
# As in conftest.py: other people's releases break these more often than a change of ours.
OTHERS = {"transformers-5.23.0", "zarr", "s3-dvc", "s3-mlflow", "runai_model_streamer-0.17.1"}


# --- what is not run, and how it is checked ---


def check_script(text):
    program = TOP / shlex.split(text, comments=True)[0]
    assert os.access(program, os.X_OK)
    subprocess.run(["bash", "-n", program], check=True)


def check_kubectl(text):
    """What it would apply can be made, from a clone or from the folder next to it."""
    if text.startswith("kubectl logs -f "):
        return
    for kind, name in re.findall(r" -([kf]) (?:ztserve/)?(\S+)", text):
        assert kustomize.build(TOP / name) if kind == "k" else list(yaml.safe_load_all((TOP / name).read_text()))


def check_edited(text):
    """The file has what the comment says that the reader sets."""
    name = re.search(r" (deploy/\S+)", text)[1]
    words = re.findall(r"newName|SERVER|MODEL", text.split("#")[1])
    assert words and all(word in (TOP / name).read_text() for word in words)


def check_container(text):
    version = re.search(r"project\(ztserve.*?VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text(), re.DOTALL)[1]
    for image in re.findall(r"localhost/ztserve:(\S+)", text):
        assert image == version
    for name in re.findall(r"deploy/\S+", text):
        assert (TOP / name).exists()


def check_options(text):
    """Of a command of ours: it has the options."""
    words = shlex.split(text, comments=True)
    words = words[words.index("ztserve") + 1 :]
    described = subprocess.run([PROGRAM, words[0], "--help"], capture_output=True, text=True, check=True).stdout
    for option in [word for word in words if word.startswith("--")]:
        assert option in described


def check_packages(text):
    """Of pip: an environment has these, so that the blocks below run with them."""
    wanted = set(shlex.split(text, comments=True)[2:])
    assert any(wanted <= {one.split("==")[0] for one in (packages or "").split()} for packages, _ in CLIENTS.values())


def check_syntax(text):
    """bash has read it already, to find its end."""


UNRUN = [
    # page (None: every page), beginning of the command, reason, check
    ("README.md", "deploy/quickstart.sh", "builds for minutes; the fixture `here` runs its lines about models/", check_script),
    ("README.md", "tests/run.sh", "runs this test, among others", check_script),
    ("docs/benchmarks.md", "tests/bench/run.sh", "measures for minutes", check_script),
    ("docs/benchmarks.md", "build/interop/gguf/bin/python tests/bench/widening.py", "measures for minutes", check_syntax),
    (None, "kubectl ", "needs a cluster", check_kubectl),
    ("docs/deployment.md", "$EDITOR ", "needs a reader", check_edited),
    ("docs/hub.md", "env -u HF_ENDPOINT hf ", "needs the Hub; the page downloads from its cache below", check_syntax),
    ("docs/mirror.md", "hf ", "needs the Hub; tests/interop/test_mirror_clients.py has one", check_syntax),
    ("docs/mirror.md", "ztserve ", "needs the Hub", check_options),
    ("docs/mirror.md", "curl ", "needs the Hub", check_syntax),
    ("docs/mirror.md", "tar ", "needs what the Hub would have sent", check_syntax),
    ("docs/api.md", "curl --fail-with-body -X POST 'http://127.0.0.1:8080/v1/upstreams/", "needs the Hub", check_syntax),
    ("docs/api.md", "curl --fail-with-body -X DELETE 'http://127.0.0.1:8080/v1/upstreams/", "needs the Hub", check_syntax),
    ("docs/api.md", "curl --fail-with-body http://127.0.0.1:8080/v1/upstreams/", "needs the Hub", check_syntax),
    ("docs/api.md", "curl --fail-with-body 'http://127.0.0.1:8080/v1/upstreams/", "needs the Hub", check_syntax),
    (None, "docker ", "needs an image, built for minutes (test_image.py)", check_container),
    (None, "apt-get ", "changes the machine; test_debian_package.py installs a package", check_syntax),
    (None, "pip install ", "changes the environment", check_packages),
    ("docs/object-store.md", "AWS_", "needs a bucket; tests/http/test_bucket*.py have one", check_options),
    ("deploy/package/README.Debian", "systemctl ", "needs systemd", check_syntax),
    ("deploy/package/README.Debian", "chown ", "needs root and the package's user", check_syntax),
]


def mark_of(page, text):
    return next((mark for mark in UNRUN if mark[0] in (None, page) and text.startswith(mark[1])), None)


# --- blocks that are no commands ---


def check_json(text, folder):
    """Settings."""
    (folder / "settings.json").write_text(json.dumps({"root": "models"} | json.loads(text)))
    done = subprocess.run([PROGRAM, "check-config", folder / "settings.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check_yaml(text, folder):
    stated = yaml.safe_load(text)
    if stated.get("kind") == "Kustomization":
        resources, components = ([TOP / name.removeprefix("ztserve/") for name in stated[kind]] for kind in ("resources", "components"))
        assert all(kustomize.build(resource, components) for resource in resources)


def check_nginx(text, folder):
    """test_replicas.py runs it."""


def check_sql(text, folder):
    """test_s3_other_clients.py has DuckDB do the same."""


def check_tokens(text, folder):
    (folder / "shown-tokens").write_text(text)
    (folder / "shown.json").write_text('{"root": "models", "auth": {"tokens": "shown-tokens"}}')
    done = subprocess.run([PROGRAM, "check-config", "shown.json"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check_keys(text, folder):
    (folder / "shown-keys").touch(mode=0o600)
    (folder / "shown-keys").write_text(text)
    (folder / "shown.json").write_text('{"root": "models", "s3": {"keys": "shown-keys"}}')
    done = subprocess.run([PROGRAM, "check-config", "shown.json"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def is_shown(text, folder):
    """Output of a program of another day."""


LANGUAGES = {"json": check_json, "yaml": check_yaml, "nginx": check_nginx, "sql": check_sql}
# Blocks without a language, by how they begin.
TEXTS = {
    r"# access key +secret": check_keys,
    r"# name +scope|\w+ +(read|write|admin) +\S": check_tokens,
    r"\d{4}-\d\d-\d\dT|info |Server-Timing: |server/transfers ": is_shown,
}


def check_text(block, folder):
    check = LANGUAGES.get(block.language)
    if block.language == "":
        check = next((check for pattern, check in TEXTS.items() if re.match(pattern, block.text)), None)
    assert check, f"{block}: no test knows what this block is"
    check(block.text, folder)


# --- running ---


class Shell:
    """One bash for all blocks of a page, as a reader has one terminal."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.statuses, self.theirs = os.pipe()
        self.bash = subprocess.Popen(
            ["bash", "--norc"], stdin=subprocess.PIPE, cwd=folder, env=environment, pass_fds=[self.theirs], text=True
        )
        self.servers = []
        self.run("set -o pipefail")

    def ask(self, line):
        """Has bash run a line that writes a number to the pipe, and gives the number."""
        self.bash.stdin.write(line + "\n")
        self.bash.stdin.flush()
        assert select.select([self.statuses], [], [], COMMAND_S)[0], f"this does not end: {line}"
        return int(os.read(self.statuses, 64))

    def run(self, command):
        """Exit status, standard output and standard error."""
        with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
            status = self.ask(f"{{ {command}\n}} </dev/null >{output.name} 2>{errors.name}; echo $? >&{self.theirs}")
            return status, output.read().decode(), errors.read().decode()

    def serve(self, command):
        """Starts a server in another terminal, and waits until it is ready."""
        log = self.folder / f".server-{len(self.servers)}.log"
        log.touch()
        self.servers.append(self.ask(f"{command} >{log} 2>&1 & echo $! >&{self.theirs}"))
        end = time.monotonic() + COMMAND_S
        while "ztserve: serving" not in log.read_text():
            assert time.monotonic() < end and self.run(f"kill -0 {self.servers[-1]}")[0] == 0, log.read_text()
            time.sleep(0.02)

    def close(self):
        ended = [self.run(f"kill {server}; wait {server}")[0] for server in self.servers]
        self.bash.stdin.close()
        self.bash.wait(COMMAND_S)
        os.close(self.statuses)
        os.close(self.theirs)
        assert ended == [0] * len(self.servers)


@pytest.fixture
def here(tmp_path):
    """A checkout with the models that the quickstart has written, and a reader's own model."""
    folder = tmp_path / "here"
    (folder / "build").mkdir(parents=True)
    for program in ("ztserve", "ztserve-example"):
        (folder / "build" / program).symlink_to(PROGRAM.parent / program)
    (folder / "deploy").symlink_to(TOP / "deploy")
    examples = re.search(r"^mkdir -p models$.*?^fi$", (TOP / "deploy" / "quickstart.sh").read_text(), re.DOTALL | re.MULTILINE)[0]
    subprocess.run(["bash", "-euo", "pipefail", "-c", examples], cwd=folder, check=True)
    shutil.copy(folder / "models" / "acme" / "tiny" / "model.safetensors", folder)
    return folder


@pytest.fixture
def shell(here):
    home = here.parent / "home"
    home.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "ZT", "PYTHON", "AWS_"))}
    quiet = {"HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_COLOR": "1", "COLUMNS": "200"}
    made = Shell(here, {**inherited, **quiet, "HOME": str(home), "LC_ALL": "C.UTF-8"})
    yield made
    made.close()


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


class Places:
    """What pages call the quickstart's server, other servers and the folders of an installation; here they are others."""

    FOLDERS = {"/srv/models": "models", "/var/lib/ztserve/models": "models", "/etc/ztserve/ztserve.json": "deploy/package/ztserve.json", "/etc/ztserve/": ""}

    def __init__(self, server):
        self.ports = {"8080": server.port}

    def __call__(self, text):
        for name, instead in self.FOLDERS.items():
            text = text.replace(name, instead)
        text = re.sub(r"https?://models\.example\.org/", "http://127.0.0.1:8080/", text)
        text = text.replace("0.0.0.0:", "127.0.0.1:")
        return re.sub(r"\b(127\.0\.0\.1|localhost):(\d+)", self.address, text)

    def address(self, match):
        return f"{match[1]}:{self.ports.setdefault(match[2], free_port())}"


def environment_of(block):
    if block.language not in COMMANDS:
        return None
    return next((name for pattern, name in ENVIRONMENTS.items() if re.search(pattern, block.text, re.MULTILINE)), None)


def run_command(shell, command, places):
    is_server = re.match(r"([A-Z0-9_]+=\S* )*(build/)?ztserve serve ", command.text)
    # The quickstart's server would have to stop first.
    text = places(command.text.replace(":8080", ":8079") if is_server else command.text)
    assert len(re.findall(r"\bcurl ", text)) <= text.count("--fail-with-body"), f"{command.where} does not fail loudly: {command.text}"
    if is_server:
        shell.serve(text)
        return
    status, output, errors = shell.run(text)
    said = f"{command.where}: {command.text}\n{output}{errors}"
    if command.refused_with:
        assert status == 22 and f"error: {command.refused_with}" in errors, said
    else:
        assert status == 0, said
    shown = [places(line) for line in command.shown]
    assert not shown or matches(shown, output) or matches(shown, errors), said


def run_program(shell, block, places):
    program = shell.folder / ".block.py"
    program.write_text(places(block.text))
    status, output, errors = shell.run(f"python {program}")
    assert status == 0, f"{block}: {errors}"
    assert not shown_by(block.text) or matches(shown_by(places(block.text)), output), f"{block}: {output}"


def run_block(shell, block, places):
    if block.language == "python":
        run_program(shell, block, places)
    elif block.language in ("sh", "bash"):
        for command in commands_of(block):
            mark = mark_of(block.page, command.text)
            if mark:
                mark[3](command.text)
            else:
                run_command(shell, command, places)
    else:
        check_text(block, shell.folder)


def cases():
    """A page that has blocks of OTHERS is a case twice: without these, and whole."""
    for page in PAGES:
        needed = {environment_of(block) for block in blocks_of(page)}
        if needed:
            yield pytest.param(page, False, id=page)
        if needed & OTHERS:
            yield pytest.param(page, True, id=f"{page}, whole", marks=pytest.mark.others)


@pytest.mark.parametrize("page, is_whole", cases())
def test_every_block_works(page, is_whole, here, shell, start_server):
    places = Places(start_server(here / "models", "--writable", "--keep-versions", "100"))
    for block in blocks_of(page):
        environment = environment_of(block)
        if environment in OTHERS and not is_whole:
            continue
        if environment and not is_available(environment):
            pytest.skip(f"skipped: {environment} cannot be installed here")
        python = python_of(environment) if environment else Path(sys.executable)
        shell.run(f"PATH={python.parent}:{here}/build:/usr/local/bin:/usr/bin:/bin")
        run_block(shell, block, places)


def test_every_mark_is_needed():
    commands = [(page, command.text) for page in PAGES for block in blocks_of(page) if block.language == "sh" for command in commands_of(block)]
    assert [mark for mark in UNRUN if not any(mark_of(*command) is mark for command in commands)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith(".md")])
def test_every_block_is_fenced(page):
    assert re.findall(r"^(?![ *-]|\d+\.).+\n\n    \S.*", (TOP / page).read_text(), re.MULTILINE) == []
