#!/usr/bin/env bash
# Builds and installs the program and the library (headers, pkg-config file, CMake package).
#
#   PREFIX=/usr/local   where they will be used
#   DESTDIR=            prepended to PREFIX when files are copied, for packagers
#   ZT_BUILD_DIR=DIR    where to build (default: build-install)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${ZT_BUILD_DIR:-build-install}
prefix=${PREFIX:-/usr/local}
deploy/build.sh "$build" -DZT_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$prefix"
DESTDIR=${DESTDIR:-} cmake --install "$build"
# The loader then finds the new library. Packages do this when they are installed.
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then
    ldconfig
fi
