#!/usr/bin/env bash
# tests/install/run.sh BUILD COMPILER [FLAG...]: installs the build into a folder of its own, then builds and runs the
# documentation's example against it alone: with pkg-config and with CMake, shared and static. Then checks what the shared
# library exports, and that DESTDIR is honoured.
set -euo pipefail
build=$(realpath "$1") compiler=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
example=$here/../../docs/example.c
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
libraries=$(dirname "$(find "$prefix" -name libzt.a)")
"$build/ztserve-example" "$prefix/model.zt"
"$prefix/bin/ztserve" ls "$prefix/model.zt" >/dev/null
"$prefix/bin/ztserve" --version
# A sanitized library needs sanitized programs, which are checked as strictly.
strict=(-std=c17 -Wall -Wextra -Werror)

# zt_flags [--static]: the flags from pkg-config. Its file states the configured prefix; the library is in another.
zt_flags()
{
    PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --define-prefix --cflags --libs "$@" zt
}

# run_example PROGRAM: it must list the objects, map one, and reject another kind of file.
run_example()
{
    local program=$1
    LD_LIBRARY_PATH=$libraries "$program" "$prefix/model.zt" >"$prefix/listing"
    grep -q '\[' "$prefix/listing"
    grep -q '^first value: ' "$prefix/listing"
    if LD_LIBRARY_PATH=$libraries "$program" "$program" 2>"$prefix/message"; then
        echo "$program opened itself" >&2
        exit 1
    fi
    grep -q 'no known format' "$prefix/message"
}

# by_pkg_config NAME LINE SOURCE [FLAG...]
by_pkg_config()
{
    local name=$1 line=$2 source=$3
    shift 3
    # shellcheck disable=SC2086 # one word per flag
    "$compiler" "${strict[@]}" "$@" "$source" $line -o "$prefix/$name"
}

shared=$(zt_flags)
static=$(zt_flags --static)
by_pkg_config example-shared "$shared" "$example" "$@"
by_pkg_config example-static "${static/-lzt /-l:libzt.a }" "$example" "$@"
by_pkg_config uses_library "$shared" "$here/uses_library.c" "$@"
LD_LIBRARY_PATH=$libraries "$prefix/uses_library"
# Not a pipe into grep -q: it exits before ldd has written everything, and ldd then fails.
LD_LIBRARY_PATH=$libraries ldd "$prefix/example-shared" >"$prefix/shared-needs"
grep -q 'libzt\.so\.' "$prefix/shared-needs"
ldd "$prefix/example-static" >"$prefix/static-needs"
if grep -q 'libzt\.so' "$prefix/static-needs"; then
    echo 'the static library was not used' >&2
    exit 1
fi

cmake -S "$here/consumer" -B "$prefix/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$example" \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="$*" >/dev/null
cmake --build "$prefix/consumer" >/dev/null
for program in "$prefix"/example-* "$prefix"/consumer/example-zt "$prefix"/consumer/example-zt_static; do
    run_example "$program"
done

# Only what the headers declare is exported (and what a sanitizer adds).
nm -D --defined-only "$libraries/libzt.so" |
    awk '$3 !~ /^_/ {print $3}' | sort >"$prefix/exported"
grep -ohE '\bzt_[a-z0-9_]+\(' "$prefix"/include/zt/*.h | tr -d '(' | sort -u >"$prefix/declared"
if hidden=$(comm -23 "$prefix/exported" "$prefix/declared") && [ -n "$hidden" ]; then
    echo "exported, but in no header: $hidden" >&2
    exit 1
fi
grep -q '^zt_model_open$' "$prefix/exported"

DESTDIR=$prefix/staged cmake --install "$build" --prefix /opt/zt >/dev/null
[ -x "$prefix/staged/opt/zt/bin/ztserve" ]
[ -f "$prefix/staged/opt/zt/include/zt/model.h" ]
