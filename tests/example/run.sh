#!/usr/bin/env bash
# tests/example/run.sh BUILD: the examples are the same each time, leave nothing half-written, and are valid.
set -euo pipefail
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for number in 1 2; do
    mkdir -p "$folder/$number/acme/tiny"
    "$build/ztserve-example" "$folder/$number/example.zt"
    "$build/ztserve-example" --repository "$folder/$number/acme/tiny"
done
diff -r "$folder/1" "$folder/2"
[ "$(cd "$folder/1" && find . -type f | sort | tr '\n' ' ')" = "./acme/tiny/README.md ./acme/tiny/config.json ./acme/tiny/generation_config.json ./acme/tiny/model.safetensors ./acme/tiny/tokenizer.json ./acme/tiny/tokenizer_config.json ./example.zt " ]
for arguments in "missing/x.zt" "--repository missing"; do
    # shellcheck disable=SC2086 # several arguments
    if (cd "$folder" && "$build/ztserve-example" $arguments) 2>"$folder/message"; then
        echo "writing into a folder that is not there succeeded" >&2
        exit 1
    fi
    grep -q 'No such file or directory' "$folder/message"
done
"$build/ztserve" verify "$folder/1"
