# shellcheck shell=bash
# Which Debian packages building, testing and linting need, and how to install those that are missing.
# Sourced by deploy/quickstart.sh, tests/run.sh and tests/lint/run.sh; Debian 12 and later have them under these names.

# package_names GROUP: the packages of build, try, test, bench, clang or lint, one a line.
package_names()
{
    case $1 in
    build)
        printf '%s\n' gcc libc6-dev cmake ninja-build pkgconf \
            libmicrohttpd-dev libzstd-dev libcbor-dev libjansson-dev libssl-dev libxxhash-dev zlib1g-dev \
            libisal-dev libutf8proc-dev
        ;;
    # To try the README's lines with.
    try) printf '%s\n' curl ;;
    bench) printf '%s\n' curl python3 nginx-light ;;
    test) printf '%s\n' libcmocka-dev python3 python3-venv ca-certificates curl aria2 nginx-light ;;
    clang) printf '%s\n' clang libclang-rt-dev ;;
    lint) printf '%s\n' g++ clang-format clang-tidy python3 shellcheck ;;
    *)
        echo "packages.sh: no group of packages is called $1" >&2
        return 2
        ;;
    esac
}

# Those of the packages given that are not installed, one a line.
packages_missing()
{
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
    done
}

# as_root COMMAND...: runs it as root, through sudo where we are not.
as_root()
{
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# packages_install GROUP...: installs what is missing of these groups; asks for nothing when all is there.
packages_install()
{
    local group names=() missing=()
    for group in "$@"; do
        mapfile -t -O "${#names[@]}" names < <(package_names "$group")
    done
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        echo "error: this is not a Debian system (no apt-get); install what these packages hold: ${names[*]}" >&2
        return 1
    fi
    mapfile -t missing < <(packages_missing "${names[@]}")
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "error: neither root nor sudo; as root, run: apt-get install ${missing[*]}" >&2
        return 1
    fi
    echo "==> installing ${missing[*]}"
    # Another apt may be at work on a fresh machine: wait for its lock.
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
    if ! as_root "${apt[@]}" update || ! as_root "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
        echo "error: apt could not install ${missing[*]} (its own words are above)" >&2
        return 1
    fi
}

# Has cmake make build folders for ninja where there is one (make need not be there); folders that exist keep what they
# were made for.
prefer_ninja()
{
    if command -v ninja >/dev/null; then
        export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    fi
}
