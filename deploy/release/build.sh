#!/usr/bin/env bash
# deploy/release/build.sh ARCHITECTURE COMMIT [bundle]: runs inside the Debian that deploy/release.sh makes. Builds the Debian package
# and its SBOM, with `bundle` also the tarball and the image, tries each, and writes them to /build/dist; and to
# /build/dist/materials the Debian packages installed here: name, version, architecture, SHA-256.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
architecture=$1 revision=$2
output=/build/program
dist=/build/dist
version=$(sed -n 's/^project(ztserve VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

# pack FILE OPTION...: a tar whose bytes depend on names, contents, modes and owners alone.
pack()
{
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner --format=gnu -cf "$@"
}

# try ROOT COMMAND...: the program that COMMAND starts serves a model from a folder in ROOT, which it sees as /, and reads it
# back over HTTP.
try()
{
    local folder address='' server status=0
    folder=$1/models
    shift
    mkdir "$folder"
    "${emulator[@]}" "$output/ztserve-example" "$folder/model.zt"
    "$@" --version
    "$@" serve --root /models --listen 127.0.0.1:0 >"$folder/out" 2>"$folder/log" &
    server=$!
    while [ -z "$address" ] && kill -0 "$server"; do
        sleep 0.1
        address=$(sed -n 's,.*\(http://[0-9.:]*\).*,\1,p' "$folder/out" | head -n 1)
    done
    "$@" ls /models/model.zt >"$folder/wanted"
    "$@" ls "$address/v1/models/model" >"$folder/got" || status=1
    kill "$server"
    wait "$server" || status=1
    if [ "$status" != 0 ] || ! cmp "$folder/wanted" "$folder/got"; then
        cat "$folder/log" >&2
        echo "release: $* does not work" >&2
        exit 1
    fi
    rm -r "$folder"
}

# The names of the packages that a package depends on.
dependencies_of()
{
    dpkg-deb -f "$1" Depends | tr ',' '\n' | sed -E 's/^ *([^ (|]+).*/\1/'
}

# write_sbom PACKAGE FILE: what the package depends on, in the versions that it was built with.
write_sbom()
{
    local root name installed
    root=$(mktemp -d)
    mkdir -p "$root/var/lib/dpkg/status.d"
    install -D -m 644 /etc/os-release "$root/etc/os-release"
    for name in $(dependencies_of "$1"); do
        # A package of all architectures counts as one of this machine's.
        installed=$name:$architecture
        dpkg-query -W "$installed" >/dev/null 2>&1 || installed=$name
        dpkg-query -s "$installed" >"$root/var/lib/dpkg/status.d/$name"
        install -D -m 644 "/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/copyright"
    done
    deploy/image/sbom.py "$root" "$version" >"$2"
    rm -r "$root"
}

# make_tarball ROOT NAME: the image's libraries with the dynamic linker, and a program that starts ztserve with them.
make_tarball()
{
    local root=$1 name=$2 tree=/build/tarball library path
    cmake --build "$output" --target ztserve-launcher
    DESTDIR=$tree cmake --install "$output" --prefix "/$name" >/dev/null
    rm -r "${tree:?}/$name"/{bin,include,lib}
    install -D -s -m 755 "$output/ztserve-launcher" "$tree/$name/bin/ztserve"
    install -D -m 755 "$root/usr/bin/ztserve" "$tree/$name/lib/ztserve/ztserve"
    # Of the packages' libraries those that the program loads; libgcc's is loaded when a thread is cancelled.
    { ldd "$output/ztserve" | grep -oE '/[^ ]+' && find "$root/usr/lib" -name 'libgcc_s.so.1'; } | while read -r path; do
        library=$(basename "$path")
        # The path of the dynamic linker, by which it is found, ends in its name.
        [[ $library != ld-linux* ]] || library=ld.so
        install -m 755 "$path" "$tree/$name/lib/ztserve/$library"
    done
    cp -r "$root/usr/share/doc" "$tree/$name/share/"
    cp README.md CHANGELOG.md "$tree/$name/share/doc/ztserve/"
    chmod -R u=rwX,go=rX "$tree"
    pack - -C "$tree" --owner=0 --group=0 "$name" | gzip -9n >"$dist/$name-linux-$architecture.tar.gz"
    # In a folder with nothing else, not even /proc.
    try "$tree" chroot "$tree" "/$name/bin/ztserve"
}

materials()
{
    # shellcheck disable=SC2016 # dpkg's variables
    dpkg-query -W -f '${Package}:${Architecture}=${Version}\n' | sort | xargs apt-cache show --no-all-versions 2>/dev/null |
        awk '/^Package: /{p=$2} /^Version: /{v=$2} /^Architecture: /{a=$2} /^SHA256: /{print p, v, a, $2}' | sort -u
}

umask 022
emulator=()
[ "$architecture" = "$(dpkg --print-architecture)" ] || emulator=(qemu-aarch64)
package=$(ZT_ARCHITECTURE=$architecture ZT_BUILD_DIR=$output deploy/package.sh | tee /dev/stderr | tail -n 1)
try "" "${emulator[@]}" "$output/ztserve"
cp "$package" "$dist/"
write_sbom "$package" "$dist/$(basename "$package" .deb).spdx.json"
if [ "${3:-}" = bundle ]; then
    root=/build/root
    deploy/image/root.sh "$output/ztserve" "$root"
    cp "$root/usr/share/doc/ztserve/sbom.spdx.json" "$dist/ztserve-$version-linux-$architecture.spdx.json"
    make_tarball "$root" "ztserve-$version"
    pack /build/layer.tar -C "$root" .
    REVISION=$revision deploy/release/image.py Dockerfile "$version" "$architecture" /build/layer.tar | gzip -9n >"$dist/ztserve-$version-image-$architecture.tar.gz"
fi
materials >"$dist/materials"
