#!/usr/bin/env bash
# check_targets.sh BUILD_DIR SEEDS CTEST: checks that every fuzz target has seeds, is run by run.sh, and is replayed by ctest;
# and that every folder of kept inputs belongs to a target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
build=$1 seeds=$2 ctest=$3
failed=0

complain()
{
    echo "$1" >&2
    failed=1
}

mapfile -t targets < <(grep -l LLVMFuzzerTestOneInput ./*.c | sed -n 's|^\./target_\(.*\)\.c$|\1|p')
[ "${#targets[@]}" -gt 0 ] || complain "there are no targets"
fuzzed=$(./run.sh --list)
replayed=$("$ctest" --test-dir "$build" -N -R '^fuzz/')
for name in "${targets[@]}"; do
    grep -qx "$name" <<<"$fuzzed" || complain "$name: run.sh does not run it"
    grep -qE "fuzz/$name\$" <<<"$replayed" || complain "$name: ctest does not replay it"
    [ -n "$(find "$seeds/$name" -type f -print -quit 2>/dev/null)" ] || complain "$name: it has no seeds"
done
for folder in corpus/*/; do
    [ -f "target_$(basename "$folder").c" ] || complain "$folder: it belongs to no target"
done
exit "$failed"
