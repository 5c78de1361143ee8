#!/usr/bin/env bash
# Builds the Debian package for the release of Debian that this machine runs, installs what that needs, and prints the
# package's path. Its version ends in the release of Debian, so that a newer one replaces it.
#
#   ZT_BUILD_DIR=DIR   where to build (default: build-package)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
build=${ZT_BUILD_DIR:-build-package}

packages_install build package
release=$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release)
umask 022
deploy/build.sh "$build" -DCMAKE_BUILD_TYPE=Release -DZT_SANITIZE= -DZT_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    -DZT_DEBIAN_RELEASE="1${release:++deb$release}"
cmake --build "$build" --target debian-files
rm -f "$build"/*.deb
(cd "$build" && cpack --config CPackConfig.cmake)
realpath "$build"/*.deb
