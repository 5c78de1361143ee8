#!/usr/bin/env bash
# deploy/image/root.sh PROGRAM ROOT: makes the folder that becomes the image: the program, the Debian packages that hold its
# shared libraries, without what only people and converters of character sets read, users, the folders of models and
# state, and the SBOM. Copies what is installed here, so it runs in the build stage of the Dockerfile, on Debian.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$1 root=$2
user=65532
# os-release, by which scanners know the distribution; libgcc's library is loaded by libc when a thread is cancelled.
always=(base-files libgcc-s1)
# Authorities that certify object stores; the package's files are their sources.
authorities=/etc/ssl/certs/ca-certificates.crt
left_out='^/usr/share/(doc|man|info|locale|lintian|bug)/|/gconv(/|$)|^/usr/lib/locale'

# The package that holds a file, which may be listed below /lib or below /usr/lib.
package_of()
{
    { dpkg-query -S "$1" "/usr${1#/usr}" "${1#/usr}" 2>/dev/null || true; } |
        sed -n '/^diversion/!s/[:,].*//p' | grep -m 1 .
}

needed_packages()
{
    local library
    printf '%s\n' "${always[@]}"
    ldd "$program" | grep -oE '/[^ ]+' | while read -r library; do
        package_of "$library" || package_of "$(realpath "$library")" || {
            echo "error: no package holds $library" >&2
            exit 1
        }
    done
}

# The file with the licences of a package. Packages of one source may share it through a link, which slim images leave out.
copyright_of()
{
    local source sibling
    source=$(dpkg-query -W -f '${source:Package}' "$1")
    for sibling in "$1" $(dpkg-query -W -f '${source:Package} ${Package}\n' | sed -n "s/^$source //p"); do
        if [ -f "/usr/share/doc/$sibling/copyright" ]; then
            echo "/usr/share/doc/$sibling/copyright"
            return
        fi
    done
    echo "error: there is no copyright file of $1" >&2
    return 1
}

copy_package()
{
    local path copyright
    copyright=$(copyright_of "$1")
    dpkg-query -L "$1" | grep -vE "$left_out" | while read -r path; do
        # Its folder may be a link (/lib); the copy is at the real place.
        path=$(realpath "$(dirname "$path")")/$(basename "$path")
        [ ! -L "$path" ] && [ ! -f "$path" ] || echo "$path"
    done | sed 's,^/*,,' | tar -C / --no-recursion -cf - -T - | tar -C "$root" -xf -
    install -D -m 644 "$copyright" "$root/usr/share/doc/$1/copyright"
    # Scanners of images read this folder where there is no dpkg.
    dpkg-query -s "$1" >"$root/var/lib/dpkg/status.d/$1"
}

mkdir -p "$root"/{usr/bin,usr/lib,usr/share/doc/ztserve,etc,tmp,var/tmp,models,var/lib/ztserve,var/lib/dpkg/status.d}
for link in /bin /sbin /lib /lib32 /lib64 /libx32; do
    [ ! -L "$link" ] || cp -P "$link" "$root/"
done
needed=$(needed_packages | sort -u)
mapfile -t packages <<<"$needed"
for package in "${packages[@]}"; do
    copy_package "$package"
done
install -D -m 644 "$authorities" "$root$authorities"
install -m 755 -s "$program" "$root/usr/bin/ztserve"
install -m 644 "$here/../../LICENSE" "$root/usr/share/doc/ztserve/copyright"
printf 'root:x:0:0:root:/:/sbin/nologin\nztserve:x:%s:%s::/var/lib/ztserve:/sbin/nologin\n' "$user" "$user" >"$root/etc/passwd"
printf 'root:x:0:\nztserve:x:%s:\n' "$user" >"$root/etc/group"
chmod 1777 "$root/tmp" "$root/var/tmp"
chown "$user:$user" "$root/models" "$root/var/lib/ztserve"
"$here/sbom.py" "$root" "$("$program" --version)" >"$root/usr/share/doc/ztserve/sbom.spdx.json"
# Every library that the program loads is there.
chroot "$root" /usr/bin/ztserve --version >/dev/null
