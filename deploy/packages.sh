# shellcheck shell=bash
# The Debian packages that building, testing and linting need, and how to install missing ones. Sourced by the scripts
# that need them. Debian 12 and later have them under these names.

# package_names GROUP: the packages of build, build-arm64, image, package, release, try, test, others, web, store, bench, clang
# or lint, one per line.
package_names()
{
    local libraries=(libmicrohttpd-dev libgnutls28-dev libzstd-dev libcbor-dev libjansson-dev libssl-dev libxxhash-dev zlib1g-dev
        libisal-dev libutf8proc-dev libseccomp-dev libcurl4-openssl-dev libexpat1-dev liblz4-dev)
    case $1 in
    build) printf '%s\n' gcc libc6-dev cmake ninja-build pkgconf "${libraries[@]}" ;;
    # For building for arm64 on another architecture. The build runs the program, which writes its manual pages.
    build-arm64) printf '%s\n' gcc-aarch64-linux-gnu cmake ninja-build pkgconf qemu-user "${libraries[@]/%/:arm64}" ;;
    # For the SBOM of the image, and its certificates.
    image) printf '%s\n' python3 ca-certificates ;;
    # For the libraries that the package depends on.
    package) printf '%s\n' dpkg-dev file gzip ;;
    # For deploy/release.sh. It makes the folders that it builds in.
    release) printf '%s\n' git mmdebstrap debian-archive-keyring openssl python3 ;;
    # For the lines of the README.
    try) printf '%s\n' curl ;;
    bench) printf '%s\n' libcmocka-dev python3 python3-venv python3-numpy nginx-light curl openssl zstd iproute2 util-linux ;;
    test)
        printf '%s\n' libcmocka-dev python3 python3-venv ca-certificates openssl curl nginx-light prometheus slowhttptest \
            groff-base systemd zsh fish valgrind strace jq
        ;;
    # For tests/run.sh --all: clients, proxies, and what packages and images are built and checked with.
    others)
        printf '%s\n' aria2 wget rclone lftp haproxy caddy apache2-bin mmdebstrap dpkg-dev file lintian buildah
        ;;
    # A browser for the tests of the viewer.
    web) printf '%s\n' chromium chromium-driver fonts-dejavu-core ;;
    # A real object store for the tests of buckets.
    store) printf '%s\n' ceph-mon ceph-osd radosgw ceph-common curl uuid-runtime openssl ;;
    clang) printf '%s\n' clang libclang-rt-dev ;;
    lint) printf '%s\n' g++ clang-format clang-tidy python3 python3-venv shellcheck universal-ctags ;;
    *)
        echo "packages.sh: no group of packages is called $1" >&2
        return 2
        ;;
    esac
}

# packages_missing PACKAGE...: those that are not installed, one per line.
packages_missing()
{
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
    done
}

# as_root COMMAND...: runs it as root, with sudo if necessary.
as_root()
{
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# packages_install GROUP...: installs the missing packages of these groups. Needs no root if there are none.
packages_install()
{
    local group names=() missing=()
    for group in "$@"; do
        mapfile -t -O "${#names[@]}" names < <(package_names "$group")
    done
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        echo "error: this is not a Debian system (no apt-get); install the equivalents of these packages: ${names[*]}" >&2
        return 1
    fi
    mapfile -t missing < <(packages_missing "${names[@]}")
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "error: neither root nor sudo; as root, run: apt-get install ${missing[*]}" >&2
        return 1
    fi
    echo "==> installing ${missing[*]}"
    # On a fresh machine another apt may be running: wait for its lock.
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
    if ! as_root "${apt[@]}" update || ! as_root "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
        echo "error: apt could not install ${missing[*]} (see its message above)" >&2
        return 1
    fi
}

# Makes cmake use ninja for new build folders if it is installed, since make may not be. Existing folders keep their
# generator.
prefer_ninja()
{
    if command -v ninja >/dev/null; then
        export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    fi
}
