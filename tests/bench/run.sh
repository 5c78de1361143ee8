#!/usr/bin/env bash
# Measures ztserve beside nginx and prints tables of ratios (bench.py and upload.py say what is measured); arguments are
# passed on. Needs 3 GiB of memory, 10 GiB of disk, and the ports 18080, 18082 and 18083.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

packages_install build test bench
deploy/build.sh build-bench -DCMAKE_BUILD_TYPE=Release -DZT_SANITIZE= -DZT_TESTS=ON >&2
ZTSERVE=$(realpath build-bench/ztserve)
export ZTSERVE
python3 tests/bench/bench.py --build build-bench "$@"
python3 tests/bench/upload.py --build build-bench
