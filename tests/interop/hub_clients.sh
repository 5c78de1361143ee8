#!/usr/bin/env bash
# Every client of the Hub against a build: those in Python and JavaScript as in any run of tests, with a larger upload, and
# those in Rust, which take minutes to build. It needs Cargo 1.85 or newer, Node.js 18 with npm, and the packages that these
# fetch. Arguments are passed on to pytest.
#
#   ZTSERVE=PROGRAM      the program to test (default: build/ztserve)
#   ZT_HUB_LARGE=MIB     size of the large upload in JavaScript (default: 1024)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/environment.sh
. tests/environment.sh

programs=${ZT_INTEROP_VENVS:-build/interop}/hub-rust
mkdir -p "$programs"
programs=$(realpath "$programs")
for version in 0_4 1_0; do
    # Built beside a copy: Cargo writes what it resolved into the folder.
    mkdir -p "$programs/$version"
    cp -r "tests/interop/hub_rust_$version/." "$programs/$version"
    CARGO_TARGET_DIR=$programs/target nice cargo build --manifest-path "$programs/$version/Cargo.toml"
done

make_venv
ZT_HUB_RUST=$programs/target/debug ZT_HUB_LARGE=${ZT_HUB_LARGE:-1024} \
    ZTSERVE=$(realpath "${ZTSERVE:-build/ztserve}") \
    "$venv/bin/python" -m pytest --timeout 600 -p no:cacheprovider -rs tests/interop/test_hub_*.py "$@"
