"""What the shells complete, asked from the shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from server_process import PROGRAM, TOP

WAIT_S = 180
COMMANDS = {"serve", "ls", "verify", "diff", "convert", "pull", "push", "token", "check-config", "healthcheck", "completion", "help"}
# Stands for the program's own offers, in a script that bash runs as it would for the line.
BASH = """
compopt() { :; }
source "$1"
read -ra COMP_WORDS <<<"$2"
[[ $2 != *' ' ]] || COMP_WORDS+=('')
words=()
for word in "${COMP_WORDS[@]}"; do
    case $word in
    --*=*) words+=("${word%%=*}" = ${word#*=}) ;;
    *) words+=("$word") ;;
    esac
done
COMP_WORDS=("${words[@]}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_ztserve
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    def write(shell):
        path = tmp_path_factory.mktemp("completion") / f"ztserve.{shell}"
        path.write_bytes(subprocess.run([PROGRAM, "completion", shell], check=True, capture_output=True).stdout)
        return path

    return write


@pytest.fixture(scope="module", params=["bash", "fish"])
def offers(request, script):
    """Returns what the shell offers for a line, as a set of words."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"skipped: no {shell}")
    path = script(shell)

    def ask(line, folder=None):
        if shell == "bash":
            command = ["bash", "-c", BASH, "bash", path, line]
        else:
            command = ["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, cwd=folder)
        assert result.stderr == ""
        words = {row.split("\t")[0] for row in result.stdout.splitlines() if row}
        # fish repeats the option in front of a value.
        return {re.sub("^--[a-z0-9-]+=", "", word) for word in words}

    return ask


def options_of_help(command):
    """From the program's own help."""
    text = subprocess.run([PROGRAM, "help", command], capture_output=True, text=True, check=True).stdout
    listed = text.split("\nOptions:")[1].split("\nExamples:")[0]
    return set(re.findall(r"^  (?:-[a-z], )?(--[a-z0-9-]+)", listed, re.MULTILINE))


def test_commands(offers):
    assert offers("ztserve ") >= COMMANDS
    assert offers("ztserve ver") == {"verify"}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_options(offers, command):
    assert offers(f"ztserve {command} --") >= options_of_help(command)
    assert "--help" in options_of_help(command)


@pytest.mark.parametrize(
    "line, words",
    [
        ("ztserve serve --verify ", {"lazy", "eager", "off"}),
        ("ztserve serve --verify=", {"lazy", "eager", "off"}),
        ("ztserve serve --verify=e", {"eager"}),
        ("ztserve serve --root x --log-level ", {"error", "warn", "info", "debug"}),
        ("ztserve convert a b --to s", {"safetensors"}),
        ("ztserve completion ", {"bash", "zsh", "fish"}),
        ("ztserve help chec", {"check-config"}),
        ("ztserve convert a b --progress j", {"json"}),
    ],
)
def test_values(offers, line, words):
    assert offers(line) == words


def test_files_and_folders(offers, tmp_path):
    (tmp_path / "model.zt").touch()
    (tmp_path / "models").mkdir()
    found = {word.rstrip("/") for word in offers("ztserve ls mod", tmp_path)}
    assert found == {"model.zt", "models"}
    assert {word.rstrip("/") for word in offers("ztserve serve --root mod", tmp_path)} == {"models"}
    assert "model.zt" in offers("ztserve serve --config mod", tmp_path)


def test_every_argument_of_a_key_is_an_option_of_serve():
    arguments = set(re.findall(r'\.argument = "(--[a-z0-9-]+)"', (TOP / "config" / "schema.c").read_text()))
    assert len(arguments) > 5
    assert options_of_help("serve") == arguments | {"--config", "--help"}


class Zsh:
    """An interactive zsh with the completion loaded."""

    def __init__(self, path):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ.update(TERM="dumb", PS1="", HOME=str(path.parent))
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.type(f"autoload -Uz compinit; compinit -D; source {path}; print rea''dy\n")
        self.read_until("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, words):
        shown = ""
        end = time.monotonic() + WAIT_S
        while words not in shown:
            assert select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0], shown
            shown += os.read(self.terminal, 4096).decode(errors="replace")

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)


@pytest.fixture
def zsh(script):
    if shutil.which("zsh") is None:
        pytest.skip("skipped: no zsh")
    shell = Zsh(script("zsh"))
    yield shell
    shell.close()


@pytest.mark.parametrize(
    "begun, completed",
    [
        ("ztserve verif", "ztserve verify"),
        ("ztserve serve --wri", "ztserve serve --writable"),
        ("ztserve serve --verify=ea", "ztserve serve --verify=eager"),
        ("ztserve serve --root x --log-format j", "ztserve serve --root x --log-format json"),
        ("ztserve completion fi", "ztserve completion fish"),
    ],
)
def test_zsh_completes(zsh, begun, completed):
    """A tab ends the word; what the line has become is printed by zsh itself."""
    zsh.type(f"{begun}\t")
    # To the beginning of the line, and back to its end.
    zsh.type("\x01print -r '<' \x05\n")
    zsh.read_until(f"\n< {completed}")


def test_an_unknown_shell_is_refused(refused):
    assert "tcsh" in refused("completion", "tcsh")
    refused("completion")
    refused("completion", "bash", "zsh")
