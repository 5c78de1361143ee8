"""The machine: which processors to use, what it is, and how much of it other programs take."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


# --- processors ---


def parse_list(text):
    """Processors as the kernel lists them: 0-3,8."""
    found = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def siblings(processor):
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    return parse_list(path.read_text()) if path.exists() else [processor]


def choose_processors():
    """One for the servers, one for the client, not two threads of one core if it can be had; None if there is only one."""
    available = sorted(os.sched_getaffinity(0))
    server = available[0]
    others = [processor for processor in available if processor != server]
    apart = [processor for processor in others if processor not in siblings(server)]
    return (server, (apart or others)[0]) if others else None


def process_seconds(pid):
    """Processor time of a process with all its threads, exact to the scheduler's clock."""
    return time.clock_gettime((~pid << 3) | 2)


def softirq_threads(processors):
    """The kernel's threads that send and receive when there is too much of it for the time of others."""
    wanted = {f"ksoftirqd/{processor}" for processor in processors}
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().strip() in wanted:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


# --- what it is ---

VENDORS = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}
BRANDS = ("EPYC", "Xeon", "Ryzen", "Threadripper", "Core", "Celeron", "Pentium", "Atom")
# Instructions that hashing, encryption and copies use, by the kernel's names.
INSTRUCTIONS = ("sha_ni", "sha2", "sha512", "aes", "vaes", "pmull", "avx2", "avx512f", "avx512bw", "avx512vl", "asimd", "sve")


def cpu_fields(text):
    """What the kernel says of the first processor, name and value."""
    lines = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def family_of(cpu, architecture):
    """The family of processors whose section of the page a run writes: AMD EPYC, Intel Xeon, or what comes nearest."""
    vendor = VENDORS.get(cpu.get("vendor_id"), cpu.get("vendor_id"))
    if vendor is None:
        return architecture
    words = re.findall(r"\w+", cpu.get("model name", ""))
    return f"{vendor} {next((brand for brand in BRANDS if brand in words), 'family ' + cpu.get('cpu family', '?'))}"


def slug(name):
    """A family's name in names of files."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def processor_of(cpu, architecture):
    numbers = [f"{name.removeprefix('cpu ')} {cpu[name]}" for name in ("cpu family", "model") if name in cpu]
    return ", ".join([cpu.get("model name", architecture), *([" ".join(numbers)] if numbers else [])])


def second_cache():
    """The size of a core's second cache, as the kernel says it."""
    path = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    return path.read_text().strip().replace("K", " KiB") + " a core" if path.exists() else ""


def output_of(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (result.stdout or result.stderr).strip()


def describe(top, program):
    """Name and value of what a reader has to know about the machine and the programs."""
    cpu = cpu_fields(Path("/proc/cpuinfo").read_text())
    flags = cpu.get("flags", cpu.get("Features", "")).split()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    release = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    commit = output_of("git", "-C", str(top), "rev-parse", "--short=10", "HEAD")
    changed = output_of("git", "-C", str(top), "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return {
        "family": family_of(cpu, platform.machine()),
        "processor": processor_of(cpu, platform.machine()),
        "instructions": " ".join(name for name in INSTRUCTIONS if name in flags),
        "second cache": second_cache(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "congestion control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "system": release.group(1) if release else "",
        "nginx": output_of(NGINX, "-v").rpartition("/")[2],
        "libmicrohttpd": output_of("pkg-config", "--modversion", "libmicrohttpd"),
        "ztserve": output_of(program, "--version").rpartition(" ")[2],
        "commit": (commit or "unknown") + (" with changes" if changed else ""),
    }


# --- other programs ---

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """From now on what a child leaves behind (an object store's daemons) is a child of this process: not one of the others."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass
class Sample:
    at: float
    busy: float  # seconds, of all processors: user, nice, system, stolen by the hypervisor
    own: float
    kernel: float  # threads of the kernel, which also work for us
    others: float


def parse_stat(text):
    """Process, parent, and seconds of processor time: its own, and those of children that it has waited for."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(") ")[2].split()
    times = [int(value) for value in fields[11:15]]
    return int(pid), int(fields[1]), sum(times) / TICKS


def family(parents, pid):
    """A process and all that descend from it."""
    children = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    found, next_ones = set(), [pid] if pid in parents else []
    while next_ones:
        one = next_ones.pop()
        found.add(one)
        next_ones += children.get(one, [])
    return found


def busy_seconds(text):
    """From /proc/stat. Interrupts are left out: the kernel may have counted them for the processes already."""
    user, nice, system, _, _, _, _, steal = (int(value) for value in text.split("\n", 1)[0].split()[1:9])
    return (user + nice + system + steal) / TICKS


def take_sample():
    seconds, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, parents_pid, used = parse_stat(path.read_text(errors="replace"))
        except (OSError, ValueError):
            continue
        seconds[pid], parents[pid] = used, parents_pid
    own = family(parents, os.getpid())
    kernel = family(parents, 2)
    return Sample(
        time.monotonic(),
        busy_seconds(Path("/proc/stat").read_text()),
        sum(seconds[pid] for pid in own),
        sum(seconds[pid] for pid in kernel),
        sum(used for pid, used in seconds.items() if pid not in own and pid not in kernel),
    )


def others_between(first, last):
    """Cores that others took: by their own account (with children that have ended), or by what is missing in the
    account of the machine (other containers, the hypervisor), whichever is more."""
    elapsed = max(last.at - first.at, 1e-9)
    missing = (last.busy - first.busy) - (last.own - first.own) - (last.kernel - first.kernel)
    return max(last.others - first.others, missing, 0.0) / elapsed
