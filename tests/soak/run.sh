#!/usr/bin/env bash
# Keeps two servers under mixed traffic side by side, one as it is released and one with address and undefined-behaviour
# sanitizers, and checks every answer (soak.py says what and how). The exit status is 1 if one of them failed.
#
#   SOAK_SECONDS=3600          how long
#   SOAK_BUILD=DIR             an existing release build to use (default: builds build)
#   SOAK_SANITIZED_BUILD=DIR   an existing build with sanitizers to use (default: builds build-soak)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
# shellcheck source=tests/environment.sh
. tests/environment.sh

seconds=${SOAK_SECONDS:-3600}
plain=${SOAK_BUILD:-}
sanitized=${SOAK_SANITIZED_BUILD:-}

packages_install build test clang
make_venv
if [ -z "$plain" ]; then
    plain=build
    deploy/build.sh "$plain" >&2
fi
if [ -z "$sanitized" ]; then
    sanitized=build-soak
    deploy/build.sh "$sanitized" -DCMAKE_C_COMPILER=clang -DZT_SANITIZE=address,undefined >&2
fi

"$venv/bin/python" tests/soak/soak.py --program "$sanitized/ztserve" --sanitized --seconds "$seconds" &
beside=$!
failed=0
"$venv/bin/python" tests/soak/soak.py --program "$plain/ztserve" --seconds "$seconds" || failed=1
wait "$beside" || failed=1
exit "$failed"
