#!/usr/bin/env bash
# Builds the container image with docker, podman or buildah, whichever works here, writes its SBOM (SPDX 2.3), and prints the
# image's name. Arguments are passed on to the engine's build command.
#
#   ZT_IMAGE=NAME                        name of the image (default: localhost/ztserve:VERSION, and :latest)
#   ZT_IMAGE_ENGINE=docker|podman|buildah
#   ZT_BUILD_DIR=DIR                     where the SBOM is written, as ztserve-image.spdx.json (default: build-image)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${ZT_BUILD_DIR:-build-image}
version=$(sed -n 's/^project(ztserve VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
image=${ZT_IMAGE:-localhost/ztserve:$version}
# The newest is also latest, unless it has a name of its own.
names=(-t "$image")
[ -n "${ZT_IMAGE:-}" ] || names+=(-t localhost/ztserve:latest)
sbom_in_image=/usr/share/doc/ztserve/sbom.spdx.json

# Docker's program is of no use without its daemon.
works()
{
    command -v "$1" >/dev/null && { [ "$1" != docker ] || docker info >/dev/null 2>&1; }
}

choose_engine()
{
    local engine
    for engine in ${ZT_IMAGE_ENGINE:-docker podman buildah}; do
        if works "$engine"; then
            echo "$engine"
            return 0
        fi
    done
    echo "make image: needs docker (with its daemon running), podman or buildah; here is none: apt-get install buildah" >&2
    return 1
}

# build COMMAND...: the engine's build command and what only it needs.
build()
{
    "$@" --build-arg VERSION="$version" --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || true)" "${names[@]}" "${options[@]}" .
}

copy_from_image()
{
    local container
    if [ "$engine" = buildah ]; then
        container=$(buildah from --pull-never "$image")
        # Mounting as another user than root needs its name space.
        # shellcheck disable=SC2016 # for the inner shell
        local copy='cp "$(buildah mount "$1")$2" "$3"'
        if [ "$(id -u)" = 0 ]; then
            sh -euc "$copy" copy "$container" "$1" "$2"
        else
            buildah unshare sh -euc "$copy" copy "$container" "$1" "$2"
        fi
    else
        container=$("$engine" create "$image")
        "$engine" cp "$container:$1" "$2"
    fi
    "$engine" rm "$container" >/dev/null
}

options=("$@")
engine=$(choose_engine)
# Only Docker's image format has HEALTHCHECK.
case $engine in
docker) build docker build ;;
podman) build podman build --format docker ;;
buildah) build buildah build --format docker ;;
*)
    echo "make image: ZT_IMAGE_ENGINE must be docker, podman or buildah, not $engine" >&2
    exit 2
    ;;
esac
mkdir -p "$folder"
copy_from_image "$sbom_in_image" "$folder/ztserve-image.spdx.json"
echo "SBOM: $folder/ztserve-image.spdx.json"
echo "$image"
