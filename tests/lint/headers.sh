#!/usr/bin/env bash
# Checks that each public header compiles alone, as C17 and as C++17.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failed=0
strict=(-Wall -Wextra -Werror -fsyntax-only -I core/include)
for header in core/include/zt/*.h; do
    gcc -std=c17 -Wpedantic "${strict[@]}" -x c - <<<"#include \"zt/${header##*/}\"" || failed=1
    g++ -std=c++17 "${strict[@]}" -x c++ - <<<"#include \"zt/${header##*/}\"" || failed=1
done
exit "$failed"
