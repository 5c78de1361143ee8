#!/usr/bin/env bash
# From a clone to a running server: installs what is missing, builds, writes two examples into models/ if that is empty, and
# serves them on http://127.0.0.1:8080 with uploads enabled. Arguments are passed on to `ztserve serve`.
set -euo pipefail
case ${1:-} in
-h | --help)
    printf '%s\n' "usage: deploy/quickstart.sh [OPTION...]" "" \
        "Installs missing packages, builds ztserve, writes two examples into models/ if it is empty, and serves models/" \
        "on http://127.0.0.1:8080 with uploads enabled." "" \
        "Options are those of \`build/ztserve serve\`, for example --listen 127.0.0.1:9000 for another port." \
        "\`build/ztserve serve --help\` lists them after the first build."
    exit 0
    ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

packages_install build try
echo "==> building"
deploy/build.sh build -DCMAKE_BUILD_TYPE=Release -DZT_SANITIZE= -DZT_TESTS=OFF
mkdir -p models
# Hidden files are the server's own and do not count.
if [ -z "$(find models -mindepth 1 -not -path 'models/.*' -print -quit)" ]; then
    echo "==> models/ is empty: writing models/example.zt and models/acme/tiny"
    mkdir -p models/acme/tiny
    build/ztserve-example --repository models/acme/tiny
    build/ztserve-example models/example.zt
fi
echo "==> starting"
exec build/ztserve serve --root models --listen 127.0.0.1:8080 --writable "$@"
