#!/usr/bin/env bash
# Measures ztserve beside nginx and other yardsticks (bench.py says how), and writes docs/benchmarks.md if all workloads ran.
# Arguments are passed on: --workload NAME runs one, --workload list lists them. Needs two processors, 8 GiB of memory and
# 8 GiB of disk in TMPDIR; the workload with network namespaces needs root. The exit status is 0 if every threshold is met,
# 1 if something is missed, 2 if not everything could be judged.
#
#   ZTSERVE=FILE   another ztserve to measure (default: that of build-bench, which is built)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

# A list, and names that do not exist, need nothing that has to be installed or built.
if command -v python3 >/dev/null; then
    status=0
    python3 tests/bench/bench.py --check-names "$@" || status=$?
    case $status in
        0) ;;
        3) exit 0 ;; # a list was wanted
        *) exit "$status" ;;
    esac
fi
packages_install build bench
deploy/build.sh build-bench -DCMAKE_BUILD_TYPE=Release -DZT_SANITIZE= -DZT_TESTS=ON >&2
exec python3 tests/bench/bench.py --build build-bench "$@"
