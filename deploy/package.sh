#!/usr/bin/env bash
# Builds the Debian package for the release of Debian that this machine runs, installs what that needs, and prints the
# package's path. Its version ends in the release of Debian, so that a newer one replaces it.
#
#   ZT_BUILD_DIR=DIR        where to build (default: build-package)
#   ZT_ARCHITECTURE=arm64   cross-build for arm64; apt must know packages of that architecture (dpkg --add-architecture arm64)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
build=${ZT_BUILD_DIR:-build-package}
options=()
cpack_options=()

case ${ZT_ARCHITECTURE:-} in
"" | "$(dpkg --print-architecture)") packages_install build package ;;
arm64)
    packages_install build-arm64 package
    # Packages of other architectures are searched for libraries, too.
    export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
    # For dpkg-shlibdeps, which finds out what the package depends on.
    export DEB_HOST_ARCH=arm64
    options+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc
        -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64)
    cpack_options+=(-D CPACK_DEBIAN_PACKAGE_ARCHITECTURE=arm64)
    ;;
*)
    echo "make package: ZT_ARCHITECTURE must be arm64 or this machine's own, not $ZT_ARCHITECTURE" >&2
    exit 2
    ;;
esac
release=$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release)
umask 022
deploy/build.sh "$build" -DCMAKE_BUILD_TYPE=Release -DZT_SANITIZE= -DZT_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    -DZT_DEBIAN_RELEASE="1${release:++deb$release}" "${options[@]}"
cmake --build "$build" --target debian-files
rm -f "$build"/*.deb
(cd "$build" && cpack --config CPackConfig.cmake "${cpack_options[@]}")
realpath "$build"/*.deb
