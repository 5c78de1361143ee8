#!/usr/bin/env bash
# tests/lint/run.sh [--all]: layout (clang-format), dialect, layers and rooms, pauses of tests, English, scripts (shellcheck),
# each public header alone, figures of style, how much of the code each kind of request enters, likely bugs (clang-tidy;
# with --all it looks further, in three times the time). Installs missing tools. Every check runs; the exit status is 1 if
# one of them failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
# shellcheck source=tests/environment.sh
. tests/environment.sh
build="build-lint"
failures=()
# How many states of a function clang's analyzer follows, which takes nine tenths of clang-tidy's time. Its own limit is
# 225,000.
states_max=40000
[ "${1:-}" != --all ] || states_max=225000

check()
{
    local name=$1
    shift
    echo "==> $name"
    "$@" || failures+=("$name")
}

check_layout()
{
    find core config server tests deploy docs -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
}

check_scripts()
{
    local scripts
    mapfile -t scripts < <(find deploy tests -name '*.sh' -o -name postinst -o -name prerm -o -name postrm | sort)
    shellcheck -x "${scripts[@]}" .ci/run
}

check_trips()
{
    make_venv && "$venv/bin/python" tests/figures/path.py --build "$build/trips"
}

# The checks are listed in .clang-tidy. One process per file: with several files, version 14 takes every va_list after the
# first file for uninitialized. status.c defines what analyzer.h explains, so it is checked without that header.
check_bugs()
{
    prefer_ninja
    cmake -S . -B "$build" -DZT_TESTS=OFF >/dev/null || return
    local tidy=(clang-tidy -p "$build" --quiet "--warnings-as-errors=*")
    local explain=(--extra-arg=-include "--extra-arg=$PWD/tests/lint/analyzer.h" "--extra-arg=-I$PWD/core/include")
    local option
    for option in -Xclang -analyzer-config -Xclang "max-nodes=$states_max"; do
        tidy+=("--extra-arg=$option")
    done
    {
        find core config server deploy -name '*.c' -not -path core/src/base/status.c -print0 |
            xargs -0 -n 1 -P "$(nproc)" "${tidy[@]}" "${explain[@]}" && "${tidy[@]}" core/src/base/status.c
    } 2>&1 | { grep -vE '^[0-9]+ warnings? (generated|treated as)' || true; }
}

packages_install build lint
check layout check_layout
check dialect tests/lint/dialect.py
check layers tests/lint/layers.sh
check rooms tests/lint/rooms.py
check pauses tests/lint/pauses.py
check english tests/lint/english.py
check scripts check_scripts
check headers tests/lint/headers.sh
check figures tests/figures/style.py
check trips check_trips
check bugs check_bugs
if [ "${#failures[@]}" -gt 0 ]; then
    echo "lint: failed: ${failures[*]}"
    exit 1
fi
echo "lint: all checks passed"
