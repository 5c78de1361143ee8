#!/usr/bin/env bash
# deploy/build.sh DIR [CMAKE-OPTION...]: configures and builds into DIR, with ninja if it is installed. Needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || {
    sed -n 2p "${BASH_SOURCE[0]}" >&2
    exit 2
}
folder=$1
shift
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
prefer_ninja
cmake -S . -B "$folder" "$@"
cmake --build "$folder" --parallel "$(nproc)"
