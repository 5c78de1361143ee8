"""What a request costs on the hottest paths, compared with the figures in hot_paths.json. Counts, not times: they are the
same on a busy machine, and one more allocation, system call or formatted field shows."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "http")]
import hot_paths  # noqa: E402
import s3_engines  # noqa: E402
from server_process import PROGRAM, is_sanitized  # noqa: E402

# Repeated runs differ by less than 0.3 % and 30 instructions. How long libc looks for memory also depends on what else the
# program has allocated: up to 2 %.
INSTRUCTIONS = 0.03
INSTRUCTIONS_LIBC = 0.05
INSTRUCTIONS_LEAST = 150
# Of a build without figures of its own, in all: another compiler, another libmicrohttpd. clang 14, and gcc 14 with
# libmicrohttpd 1.0.1 of Debian 13, need up to 10 % less than gcc 12.
INSTRUCTIONS_ELSEWHERE = 0.15
ALLOCATIONS_ELSEWHERE = 1
# A request. What is done now and then (a look at a clock, a timer) stays below.
CALLS = 0.1
# What a cached range of a bucket may cost more than one of a folder: it is pinned while it is sent.
BUCKET_INSTRUCTIONS = 0.04
UPDATE = "If it should cost more, or has become cheaper: ZTSERVE=build/ztserve tests/costs/hot_paths.py --update"


def build_type():
    cache = Path(os.environ.get("ZT_BUILD_DIR", PROGRAM.parent)) / "CMakeCache.txt"
    found = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w*)", cache.read_text(), re.MULTILINE) if cache.exists() else None
    return found[1] if found else "unknown"


@pytest.fixture(scope="module")
def measured():
    if is_sanitized() or build_type() != "Release":
        pytest.skip(f"skipped: only a release build without sanitizers has figures, and this is {build_type()}")
    if platform.machine() != "x86_64":
        pytest.skip(f"skipped: there are no figures for {platform.machine()}")
    missing = [tool for tool in ("valgrind", "strace") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"skipped: not installed: {', '.join(missing)}")
    figures, counts = hot_paths.measure()
    return figures, counts


def beyond(now, figure, fraction, least):
    """Also if it is less: figures that are too high would let the next change spend the difference."""
    return abs(now - figure) > max(figure * fraction, least)


def differences(now, figure):
    """Lines for what is not as the figures say; both are of one build."""
    for kind, fraction, least in (("instructions", INSTRUCTIONS, INSTRUCTIONS_LEAST), ("system calls", 0, CALLS)):
        for name in sorted({*now[kind], *figure[kind]}):
            pair = now[kind].get(name, 0), figure[kind].get(name, 0)
            if beyond(*pair, INSTRUCTIONS_LIBC if name == "libc" else fraction, least):
                yield f"{kind}, {name}: {pair[0]:g} a request, not {pair[1]:g}"
    if beyond(now["allocations"], figure["allocations"], 0, CALLS):
        yield f"allocations: {now['allocations']:g} a request, not {figure['allocations']:g}"


def differences_elsewhere(now, figure):
    """The same for a build without figures, beside those of another one: only what is clearly more."""
    here, there = sum(now["instructions"].values()), sum(figure["instructions"].values())
    if here > there * (1 + INSTRUCTIONS_ELSEWHERE):
        yield f"instructions: {here} a request, beside {there}"
    if now["allocations"] > figure["allocations"] + ALLOCATIONS_ELSEWHERE:
        yield f"allocations: {now['allocations']:g} a request, beside {figure['allocations']:g}"
    here, there = sum(now["system calls"].values()), sum(figure["system calls"].values())
    if here > there + CALLS:
        yield f"system calls: {now['system calls']}, beside {figure['system calls']}"


@pytest.mark.parametrize("path", hot_paths.PATHS)
def test_a_request_costs_what_the_figures_say(measured, path, capsys):
    figures, counts = measured
    build, known = hot_paths.build_name(), hot_paths.recorded()
    if build in known:
        found = list(differences(figures[path], known[build][path]))
    else:
        found = list(differences_elsewhere(figures[path], next(iter(known.values()))[path]))
    if not found:
        return
    hot_paths.print_functions(counts[path])
    functions = capsys.readouterr().out
    pytest.fail(
        f"{path} ({build}):\n  " + "\n  ".join(found) + f"\nmost instructions a request:\n{functions}{UPDATE}",
        pytrace=False,
    )


@pytest.fixture(scope="module")
def moto():
    yield from s3_engines.moto()


def test_a_range_from_the_cache_of_a_bucket_costs_little_more_than_one_of_a_folder(measured, moto):
    path = "range of 4 KiB"
    folder, bucket = measured[0][path], hot_paths.measure_bucket(moto.bucket(), [path])[path]
    here, there = sum(bucket["instructions"].values()), sum(folder["instructions"].values())
    assert here <= there * (1 + BUCKET_INSTRUCTIONS)
    assert bucket["allocations"] <= folder["allocations"] + CALLS
    assert sum(bucket["system calls"].values()) <= sum(folder["system calls"].values()) + CALLS
