#!/usr/bin/env bash
# deploy/release.sh [TARGET...]: builds the files of a release from the last commit into dist/, which it empties first:
# Debian packages, a tarball for other distributions, a container image, SBOMs, checksums and provenance. Each target is
# built in a fresh Debian, made by mmdebstrap and removed afterwards. The same commit and the same versions of Debian's
# packages give the same bytes. Needs root, for mmdebstrap.
#
# Targets (default: all): debian-12-amd64 debian-12-arm64 debian-13-amd64 debian-13-arm64
# Tarball and image are built by debian-13-amd64; packages for arm64 are cross-built.
#
#   ZT_RELEASE_KEY=FILE     private key (PEM; Ed25519 or ECDSA) that signs checksums and provenance
#   ZT_RELEASE_MIRROR=URL   mirror of Debian, ending in /debian (default: this machine's); from a snapshot of the archive, a
#                           later build gives the same bytes
#   ZT_RELEASE_BUILDER=URI  who builds, as stated in the provenance (default: https://ztserve.example/builders/unknown)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
dist=dist
# shellcheck disable=SC2016 # apt expands it
mirror=${ZT_RELEASE_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 -E '/debian/?$' || true)}
mirror=${mirror%/}
all=(debian-12-amd64 debian-12-arm64 debian-13-amd64 debian-13-arm64)
bundled=debian-13-amd64

die()
{
    echo "make release: $*" >&2
    exit 1
}

[ -n "$mirror" ] || die 'apt names no mirror of Debian here: set ZT_RELEASE_MIRROR'

suite_of()
{
    case $1 in
    debian-12-*) echo bookworm ;;
    debian-13-*) echo trixie ;;
    esac
}

# sources SUITE: the lines of apt's list.
sources()
{
    printf 'deb %s %s main\n' "$mirror" "$1" "$mirror" "$1-updates"
    printf 'deb %s %s-security main\n' "$(sed -E 's,/debian(/|$),/debian-security\1,' <<<"$mirror")" "$1"
}

# How this machine's apt fetches packages: proxies, certificates, and whether old lists are accepted.
apt_settings()
{
    apt-config dump | grep -E '^Acquire::(https?|Check-|Max-FutureTime|Retries)' | grep -v '""' || true
    # The lists of a snapshot have expired.
    [[ $mirror != *snapshot* ]] || echo 'Acquire::Check-Valid-Until "false";'
}

# build TARGET: makes a Debian, builds in it, and puts the results into the work folder.
build()
{
    local target=$1 suite names=() machine=amd64 architecture=${1##*-}
    suite=$(suite_of "$target")
    mapfile -t names < <(
        package_names "build$([ "$architecture" = amd64 ] || echo "-$architecture")"
        package_names package
        package_names image
        echo adduser
    )
    [ "$architecture" = amd64 ] || machine+=,$architecture
    sources "$suite" >"$work/sources.list"
    # shellcheck disable=SC2016 # mmdebstrap passes the folder as $1
    # With usr-is-merged and its hook, Debian 12 needs no program that merges /usr.
    mmdebstrap --quiet --variant=minbase --architectures="$machine" --aptopt="$work/apt.conf" --skip=cleanup/apt/lists \
        --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="usr-is-merged,$(IFS=, && echo "${names[*]}")" \
        --customize-hook='mkdir -p "$1/build/source" "$1/build/dist"' \
        --customize-hook="tar-in $work/source.tar /build/source" \
        --customize-hook="chroot \"\$1\" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TZ=UTC \
            SOURCE_DATE_EPOCH=$epoch /build/source/deploy/release/build.sh $architecture $commit \
            $([ "$target" != "$bundled" ] || echo bundle)" \
        --customize-hook="sync-out /build/dist $work/$target" \
        "$suite" /dev/null "$work/sources.list"
}

targets=("$@")
[ $# -gt 0 ] || targets=("${all[@]}")
for target in "${targets[@]}"; do
    [[ " ${all[*]} " = *" $target "* ]] || die "no target is called $target; they are ${all[*]}"
done
[ "$(id -u)" = 0 ] || die "needs root"
packages_install release
[ "$(dpkg --print-architecture)" = amd64 ] || die "needs a machine with amd64"
commit=$(git rev-parse HEAD) || die "needs a checkout of git"
[ -z "$(git status --porcelain --untracked-files=no)" ] || die "commit the changes first; only what is committed is built"
epoch=$(git log -1 --format=%ct)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/ztserve-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
git archive -o "$work/source.tar" HEAD
apt_settings >"$work/apt.conf"

rm -rf "$dist"
mkdir -p "$dist"
for target in "${targets[@]}"; do
    echo "==> $target"
    build "$target"
    mv "$work/$target/materials" "$work/$target.materials"
    mv "$work/$target"/* "$dist"
done
provenance=$(deploy/release/provenance.py --commit "$commit" --mirror "$mirror" \
    --builder "${ZT_RELEASE_BUILDER:-https://ztserve.example/builders/unknown}" "$dist" "$work"/*.materials)
(cd "$dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
if [ -n "${ZT_RELEASE_KEY:-}" ]; then
    deploy/release/sign.py "$ZT_RELEASE_KEY" "$provenance" "$dist/SHA256SUMS"
fi
ls -l "$dist"
