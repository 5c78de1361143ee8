#!/usr/bin/env bash
# tests/run.sh [--all | --build] [PYTEST-ARGUMENT...]: installs what the tests need, builds, runs the unit tests (ctest) and the
# tests from outside (pytest), and prints the summary line of each. Without sanitizers, the tests of the store run again
# over a bucket in place of a folder (tests/http/mirror.py). With --all, tests that other people's releases can break run
# too (packages, images, proxies, earlier releases of clients), and nearly all HTTP tests run again over a bucket. With
# --build, it stops before the first test.
#
#   CC=clang                          another compiler
#   ZT_SANITIZE=address,undefined     sanitizers to build with
#   ZT_WERROR=ON                      warnings are errors
#   ZT_SUITES="http cli"              which folders of tests/ pytest runs (default: interop http cli costs web)
#   ZT_LEAVE_OUT=waits                leave out the tests with these markers (tests/conftest.py)
#   ZT_HTTP="plain waits"             of the HTTP tests only those with one of these markers
#   ZT_ONLY=thread                    of the HTTP tests only thread_files (tests/selections.sh), of the unit tests the server's
#   ZT_CORPUS=DIR                     files with known outcomes; without it, tests that need them are skipped
#   ZT_S3_ENGINE=SCRIPT               starts a real object store; without it, tests that need one are skipped
#   ZT_S3_ROUNDS=N ZT_S3_READS=N ZT_S3_STOP_S=S
#                                     how long the races of writers, the reads beside kills and the outage of a store are
#   ZT_JOBS=N                         how many test files pytest runs at a time (default: three for each processor, with
#                                     sanitizers two; at most 8)
#   ZT_BUILD_DIR=DIR                  where to build (default: build, or a folder named after the options above)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh
# shellcheck source=tests/environment.sh
. tests/environment.sh
# shellcheck source=tests/selections.sh
. tests/selections.sh

all=
build_only=
[ "${1:-}" != --all ] || { all=1 && shift; }
[ "${1:-}" != --build ] || { build_only=1 && shift; }
compiler=${CC:-}
sanitize=${ZT_SANITIZE:-}
suffix=${compiler:+-$(basename "$compiler")}${sanitize:+-${sanitize//,/-}}
build=${ZT_BUILD_DIR:-build$suffix}
# A test that hangs is a failure, not an endless run. No test comes near this, not even with sanitizers on busy processors.
test_timeout_s=900
# Tests wait more than they compute, but with sanitizers. Each file has servers of its own on free ports, in folders of its
# own; the order of the files is kept (tests/conftest.py), since the longest are not those with most tests.
jobs_each=$((${#sanitize} > 0 ? 2 : 3))
jobs=${ZT_JOBS:-$((jobs_each * $(nproc) < 8 ? jobs_each * $(nproc) : 8))}
side_by_side=(-n "$jobs" --dist loadfile --no-loadscope-reorder)
# The files of passed tests are removed at once: together they would be gigabytes, and /tmp may be in memory.
keep_failed=(-o tmp_path_retention_policy=failed -o tmp_path_retention_count=1)

install_tools()
{
    local groups=(build test)
    [[ $compiler != *clang* ]] || groups+=(clang)
    [ -z "${ZT_S3_ENGINE:-}" ] || groups+=(store)
    ! outside_suites | grep -qx tests/web || groups+=(web)
    [ -z "$all" ] || groups+=(others)
    packages_install "${groups[@]}"
}

run_unit_tests()
{
    echo "==> unit tests"
    # Of the core, little is for several threads at once.
    local selected=()
    [ "${ZT_ONLY:-}" != thread ] || selected=(--tests-regex '^server/|^core/test_(source|frames_source)$')
    ctest --test-dir "$build" --output-on-failure --parallel "$jobs" --no-tests=error "${selected[@]}" 2>&1 |
        tee "$build/ctest.log"
}

# The suites that exist and have a test: given an empty list, pytest would run everything.
outside_suites()
{
    local suite
    for suite in ${ZT_SUITES-interop http cli costs web}; do
        if [ "$suite" = http ] && [ -n "${ZT_ONLY:-}" ]; then
            "${ZT_ONLY}_files"
        elif [ "$suite" = http ] && [ -n "${ZT_HTTP:-}" ]; then
            # Each worker of pytest would read all files, which takes longer than some of these tests.
            grep -lE "pytest\.mark\.(${ZT_HTTP// /|})\b" tests/http/test_*.py
        elif [ -n "$(find "tests/$suite" -name 'test_*.py' -print -quit 2>/dev/null)" ]; then
            echo "tests/$suite"
        fi
    done
}

# selected_markers [HTTP-MARKERS]: which tests run, as pytest's expression of markers.
selected_markers()
{
    local marker joined http=${1:-} terms=()
    [ -z "$http" ] || terms+=("(not http or ${http// / or })")
    [ -n "$all" ] || terms+=("not others")
    for marker in ${ZT_LEAVE_OUT:-}; do
        terms+=("not $marker")
    done
    printf -v joined ' and %s' "${terms[@]}"
    echo "${joined# and }"
}

# pytest rewrites each test file as it reads it, and keeps the result. One process does it beside the unit tests, which
# mostly wait; otherwise all workers would do it at the same time.
unset PYTHONDONTWRITEBYTECODE
compile_tests()
{
    "$venv/bin/python" -m pytest -p no:cacheprovider --collect-only -qq "$@" >/dev/null 2>&1 || true
}

run_outside_tests()
{
    if [ "${#suites[@]}" = 0 ]; then
        echo "no tests ran" >"$build/pytest.log"
        return 0
    fi
    echo "==> tests from outside"
    ZTSERVE=$(realpath "$build/ztserve") ZT_BUILD_DIR=$(realpath "$build") \
        "$venv/bin/python" -m pytest --timeout "$test_timeout_s" -p no:cacheprovider -rsfE "${keep_failed[@]}" \
        "${side_by_side[@]}" -m "$(selected_markers "${ZT_HTTP:-}")" "${suites[@]}" "$@" 2>&1 |
        tee "$build/pytest.log"
}

run_bucket_tests()
{
    rm -f "$build/pytest-bucket.log"
    [ -z "$sanitize" ] && [[ " ${ZT_SUITES-http} " = *' http '* ]] || return 0
    echo "==> tests from outside, over a bucket"
    local files
    mapfile -t files < <(if [ -n "$all" ]; then files_over_a_bucket; else store_files; fi)
    ZT_S3=moto ZTSERVE=$(realpath "$build/ztserve") ZT_BUILD_DIR=$(realpath "$build") \
        "$venv/bin/python" -m pytest --timeout "$test_timeout_s" -p no:cacheprovider -q "${keep_failed[@]}" \
        "${side_by_side[@]}" -m "$(selected_markers)" "${files[@]}" 2>&1 |
        tee "$build/pytest-bucket.log"
}

install_tools
echo "==> building into $build"
deploy/build.sh "$build" -DZT_TESTS=ON -DZT_SANITIZE="$sanitize" ${ZT_WERROR:+-DZT_WERROR="$ZT_WERROR"} \
    ${compiler:+-DCMAKE_C_COMPILER="$compiler"}
[ -z "$build_only" ] || exit 0
make_venv
if [ -z "${ZT_CORPUS:-}" ]; then
    echo "skipped: no corpus (ZT_CORPUS is not set)"
else
    export ZT_CORPUS
fi
[ -n "${ZT_S3_ENGINE:-}" ] || echo "skipped: no script that starts an object store (ZT_S3_ENGINE is not set)"

failed=0
mapfile -t suites < <(outside_suites)
[ "${#suites[@]}" = 0 ] || compile_tests "${suites[@]}" &
run_unit_tests || failed=1
wait
run_outside_tests "$@" || failed=1
run_bucket_tests || failed=1
echo "==> results of $build"
grep -E 'tests passed, [0-9]+ tests failed out of' "$build/ctest.log" || echo "ctest: no summary"
tail -n 1 "$build/pytest.log"
[ ! -e "$build/pytest-bucket.log" ] || tail -n 1 "$build/pytest-bucket.log"
exit "$failed"
