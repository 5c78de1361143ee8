#!/usr/bin/env bash
# Builds and installs the program and the library (headers, pkg-config file, CMake package).
#
#   PREFIX=/usr/local   where they are to be used
#   DESTDIR=            put before PREFIX when copying, for packagers
#   ZT_BUILD_DIR=DIR    where to build (default: build-install)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${ZT_BUILD_DIR:-build-install}
prefix=${PREFIX:-/usr/local}
deploy/build.sh "$build" -DZT_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$prefix"
DESTDIR=${DESTDIR:-} cmake --install "$build"
# So that the new library is found at once; packagers and others without the right leave it to whoever installs.
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then
    ldconfig
fi
