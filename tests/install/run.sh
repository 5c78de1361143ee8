#!/usr/bin/env bash
# tests/install/run.sh BUILD COMPILER [FLAG...]: installs the build into a folder of its own, then compiles, links and
# runs a program with nothing but what pkg-config says there.
set -euo pipefail
build=$1 compiler=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
pkgconfig=$(dirname "$(find "$prefix" -name zt.pc)")
# The file states the prefix that was configured; this installation stands elsewhere.
flags=$(PKG_CONFIG_PATH=$pkgconfig pkg-config --define-prefix --cflags --libs zt)
# shellcheck disable=SC2086 # one word a flag
"$compiler" -std=c17 -Wall -Wextra -Werror "$@" "$here/uses_library.c" $flags -o "$prefix/uses_library"
"$prefix/uses_library"
"$prefix/bin/ztserve" --version
