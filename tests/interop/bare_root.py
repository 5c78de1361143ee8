"""A minimal Debian in a folder, made by mmdebstrap from the repositories that this machine's apt uses."""

import os
import shutil
import subprocess
from pathlib import Path

import requests

# What decides how packages are fetched: proxies, certificates, and the dates of a mirror that stands still.
FETCHING = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Max-FutureTime", "Acquire::Retries")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def missing_for_roots():
    """Why no such folder can be made here, or None."""
    if os.geteuid() != 0:
        return "a bare root can be made by root only"
    for tool in ("mmdebstrap", "unshare", "chroot"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    return None if own_mounts() else "no mount name space can be made here"


def own_mounts():
    """The command that runs another one with mounts that nobody else sees; None if that cannot be."""
    private = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*private, "true"], capture_output=True).returncode == 0:
        return private
    # Where the root is no mount point, as in a chroot; then nothing may be shared already.
    unchanged = ["unshare", "--mount", "--propagation", "unchanged"]
    is_shared = " shared:" in Path("/proc/self/mountinfo").read_text()
    return unchanged if not is_shared and subprocess.run([*unchanged, "true"], capture_output=True).returncode == 0 else None


def os_release():
    lines = Path("/etc/os-release").read_text().splitlines()
    return {name: value.strip('"') for name, value in (line.split("=", 1) for line in lines if "=" in line)}


def run_checked(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    assert result.returncode == 0, f"{command}: {result.stdout[-4000:]}{result.stderr[-4000:]}"
    return result.stdout


def source_lines(suite):
    """Lines of a sources.list for a release, from the repositories of the release that runs here."""
    here = os_release()["VERSION_CODENAME"]
    fields = "$(REPO_URI) $(RELEASE) $(CODENAME) $(COMPONENT)"
    shown = run_checked(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    lines = set()
    for line in shown.splitlines():
        uri, *names, component = line.split()
        for name in names:
            if name == here or name.startswith(f"{here}-"):
                lines.add(f"deb {uri} {suite}{name[len(here):]} {component}")
    assert lines, f"apt knows no repository of {here} here: apt-get update"
    return sorted(lines)


def has_suite(suite):
    """Whether the repository of this machine's apt also has another release."""
    uri = next(uri for _, uri, name, _ in (line.split() for line in source_lines(suite)) if name == suite)
    try:
        return requests.head(f"{uri.rstrip('/')}/dists/{suite}/Release", timeout=20, allow_redirects=True).ok
    except requests.RequestException:
        return False


def make_root(target, suite, work):
    """Makes the root, a folder or a .tar, with the sources and settings that apt needs in it."""
    sources = work / f"{suite}.list"
    sources.write_text("\n".join(source_lines(suite)) + "\n")
    settings = run_checked(["apt-config", "dump"]).splitlines()
    fetching = work / "fetching.conf"
    fetching.write_text("\n".join(line for line in settings if line.startswith(FETCHING) and '""' not in line) + "\n")
    merged = "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", merged, f"--aptopt={fetching}"]
    run_checked([*command, "--include=usr-is-merged,ca-certificates", suite, str(target), str(sources)])


class BareRoot:
    """Commands run in mount and process name spaces of their own, with /proc."""

    def __init__(self, folder, suite, work):
        self.path = folder
        make_root(folder, suite, work)
        # apt in it reads the network's settings as this machine does.
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(f"/etc/{name}", folder / "etc" / name)
        certificates = Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.is_file():
            shutil.copyfile(certificates, folder / "etc/ssl/certs/ca-certificates.crt")

    def command(self, *words, user="root"):
        """The command line that runs `words` in the root; the process that it becomes takes signals."""
        script = 'mount -t proc proc "$0/proc" && exec chroot --userspec="$1" "$0" /usr/bin/env -i "${@:2}"'
        environment = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        inside = ["bash", "-c", script, str(self.path), user, *environment, *map(str, words)]
        return [*own_mounts(), *inside]

    def run(self, *words, user="root"):
        return run_checked(self.command(*words, user=user))

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends", *words)

    def files(self, leave_out):
        """Every path of the root, without what is below the folders of `leave_out`."""
        paths = set()
        for folder, folders, files in os.walk(self.path):
            inside = "/" + os.path.relpath(folder, self.path)
            folders[:] = [name for name in folders if os.path.normpath(f"{inside}/{name}") not in leave_out]
            paths.update(os.path.normpath(f"{inside}/{name}") for name in [*folders, *files])
        return paths
