#!/usr/bin/env bash
# Fuzzes every target with libFuzzer (clang), two at a time, and prints a line for each. The exit status is 1 if a target
# failed. Arguments are the targets to run (default: all); --list prints all of them instead.
#
#   FUZZ_SECONDS=60      how long each target runs
#   FUZZ_BUILD_DIR=DIR   where to build (default: build-fuzz); inputs found are kept in DIR/fuzz/found/TARGET
#   ZT_CORPUS=DIR        more initial inputs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

mapfile -t targets < <(basename -s .c tests/fuzz/target_*.c | sed 's/^target_//')
if [ "${1:-}" = --list ]; then
    printf '%s\n' "${targets[@]}"
    exit 0
fi
[ $# -eq 0 ] || targets=("$@")
build=${FUZZ_BUILD_DIR:-build-fuzz}
seconds=${FUZZ_SECONDS:-60}
# The most that a reader may hold at once: a zstd window of 128 MiB, a block of an array of 64 MiB, and the sanitizer's own
# memory.
memory=(-rss_limit_mb=512 -malloc_limit_mb=160)
length=(-max_len=16384 -timeout=20)

build_targets()
{
    prefer_ninja
    cmake -S . -B "$build" -DCMAKE_C_COMPILER=clang -DZT_FUZZ=ON -DZT_SANITIZE=fuzzer-no-link,address,undefined \
        >/dev/null
    cmake --build "$build" --parallel "$(nproc)" --target fuzz-targets >"$build/build.log" || {
        tail -n 30 "$build/build.log" >&2
        return 1
    }
    "$build/fuzz-seeds" "$build/fuzz/seeds"
}

# figure PATTERN FILE: the last value that libFuzzer printed for it, or ?.
figure()
{
    { grep -oE "$1" "$2" || echo '?'; } | tail -n 1 | grep -oE '[0-9?]+$'
}

# run_target NAME: the initial inputs are the seeds, the kept inputs, those of earlier runs, and the corpus. libFuzzer does
# not run with a folder that does not exist.
run_target()
{
    local name=$1 found="$build/fuzz/found/$1" log="$build/fuzz/$1.log" folder folders verdict=ok
    mkdir -p "$found" "$build/fuzz/findings"
    folders=("$found")
    for folder in "$build/fuzz/seeds/$name" "tests/fuzz/corpus/$name"; do
        [ ! -d "$folder" ] || folders+=("$folder")
    done
    [ -z "${ZT_CORPUS:-}" ] || folders+=("$ZT_CORPUS")
    # PyTorch's two targets share one dictionary.
    case $name in pickle | pytorch) folders+=("-dict=tests/fuzz/pickle.dict") ;; esac
    "$build/fuzz/fuzz_$name" "${memory[@]}" "${length[@]}" -max_total_time="$seconds" -print_final_stats=1 \
        -use_value_profile=1 -artifact_prefix="$build/fuzz/findings/$name-" "${folders[@]}" >"$log" 2>&1 ||
        verdict="FINDING, see $log"
    printf '%-14s %10s runs  %6s edges  %4s s  %s\n' "$name" "$(figure 'number_of_executed_units: [0-9]+' "$log")" \
        "$(figure 'cov: [0-9]+' "$log")" "$seconds" "$verdict"
    [ "$verdict" = ok ]
}

packages_install build test clang
build_targets
# Otherwise the quarantine counts as memory of the target.
export ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=64 UBSAN_OPTIONS=print_stacktrace=1
failed=0
running=0
for name in "${targets[@]}"; do
    if [ "$running" = 2 ]; then
        wait -n || failed=1
        running=1
    fi
    run_target "$name" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
