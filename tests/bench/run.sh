#!/usr/bin/env bash
# Measures ztserve beside nginx and prints a table of ratios (docs in bench.py). Needs a few GiB of memory and disk.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
packages_install "${PACKAGES_BUILD[@]}" "${PACKAGES_TEST[@]}" nginx-light curl
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DZT_TESTS=ON >/dev/null
cmake --build build -j "$(nproc)" >/dev/null
exec python3 tests/bench/bench.py --build build "$@"
