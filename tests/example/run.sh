#!/usr/bin/env bash
# tests/example/run.sh BUILD: the example model is the same each time, leaves nothing half-written, and is valid.
set -euo pipefail
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$build/ztserve-example" "$folder/first.zt"
"$build/ztserve-example" "$folder/second.zt"
cmp "$folder/first.zt" "$folder/second.zt"
[ "$(find "$folder" -type f | wc -l)" = 2 ]
if "$build/ztserve-example" "$folder/missing/x.zt" 2>"$folder/message"; then
    echo "writing into a folder that is not there succeeded" >&2
    exit 1
fi
grep -q 'No such file or directory' "$folder/message"
"$build/ztserve" verify "$folder/first.zt"
