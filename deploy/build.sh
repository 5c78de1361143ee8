#!/usr/bin/env bash
# deploy/build.sh DIR [CMAKE-OPTION...]: configures and builds into DIR, with ninja where there is one. Needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || {
    sed -n 2p "${BASH_SOURCE[0]}" >&2
    exit 2
}
folder=$1
shift
generator=()
# An existing build folder keeps the generator it was made with.
if [ ! -f "$folder/CMakeCache.txt" ] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
cmake -S . -B "$folder" "${generator[@]}" "$@"
cmake --build "$folder" --parallel "$(nproc)"
