#!/usr/bin/env bash
# Every client of the Hub against a build: those in Python and JavaScript as in any run of tests, with a larger upload, and
# those in Rust and C++, which take minutes to fetch and build. It needs Cargo 1.85 or newer, g++, Node.js 18 with npm, and
# the packages that these fetch. Arguments are passed on to pytest.
#
#   ZTSERVE=PROGRAM      the program to test (default: build/ztserve)
#   ZT_HUB_LARGE=MIB     size of the large upload in JavaScript (default: 1024)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/environment.sh
. tests/environment.sh

environments=${ZT_INTEROP_VENVS:-build/interop}
mkdir -p "$environments"
environments=$(realpath "$environments")
rust=$environments/hub-rust
llama=$environments/hub-llama
# What has llama.cpp's sources; of these only the downloader is built.
llama_name='llama-cpp-python' llama_version='0.3.36'

build_rust()
{
    local version
    for version in 0_4 1_0; do
        # A copy: Cargo writes what it resolved beside the sources.
        mkdir -p "$rust/$version"
        cp -r "tests/interop/hub_rust_$version/." "$rust/$version"
        CARGO_TARGET_DIR=$rust/target nice cargo build --manifest-path "$rust/$version/Cargo.toml"
    done
}

build_llama()
{
    local sources=$llama/sources/vendor/llama.cpp file wanted
    wanted="$llama_name $llama_version $(cksum <tests/interop/hub_llama/main.cpp)"
    [ "$(cat "$llama/complete" 2>/dev/null)" != "$wanted" ] || return 0
    rm -rf "$llama"
    mkdir -p "$llama/sources"
    "$venv/bin/python" -m pip download --quiet --no-deps --no-binary "$llama_name" --dest "$llama" "$llama_name==$llama_version"
    tar -xzf "$llama"/llama_cpp_python-*.tar.gz -C "$llama/sources" --strip-components=1
    local compile=(nice g++ -std=c++17 -O1 -ffunction-sections -fdata-sections -I"$sources/common" -I"$sources/include"
        -I"$sources/ggml/include" -I"$sources/vendor")
    for file in common/download common/hf-cache common/log common/json common/common vendor/cpp-httplib/httplib; do
        "${compile[@]}" -c "$sources/$file.cpp" -o "$llama/$(basename "$file").o"
    done
    "${compile[@]}" tests/interop/hub_llama/main.cpp "$llama"/*.o -Wl,--gc-sections -pthread -o "$llama/download"
    rm -rf "$llama/sources" "$llama"/*.tar.gz "$llama"/*.o
    echo "$wanted" >"$llama/complete"
}

make_venv
build_rust
build_llama
ZT_HUB_RUST=$rust/target/debug ZT_HUB_LLAMA=$llama/download ZT_HUB_LARGE=${ZT_HUB_LARGE:-1024} \
    ZTSERVE=$(realpath "${ZTSERVE:-build/ztserve}") \
    "$venv/bin/python" -m pytest --timeout 600 -p no:cacheprovider -rs tests/interop/test_hub_*.py tests/interop/test_mirror_*.py "$@"
