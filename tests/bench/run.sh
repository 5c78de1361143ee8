#!/usr/bin/env bash
# Measures ztserve beside nginx and prints a table of ratios (bench.py says what is measured); arguments are passed on.
# Needs 3 GiB of memory and disk, and port 18080.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

packages_install build test bench
deploy/build.sh build-bench -DCMAKE_BUILD_TYPE=Release -DZT_SANITIZE= -DZT_TESTS=ON >&2
ZTSERVE=$(realpath build-bench/ztserve) exec python3 tests/bench/bench.py --build build-bench "$@"
