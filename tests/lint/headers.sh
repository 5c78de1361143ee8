#!/usr/bin/env bash
# Checks that each public header compiles alone, as C17 and as C++17, and that what it declares can be seen outside the
# shared library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failed=0
strict=(-Wall -Wextra -Werror -fsyntax-only -I core/include)
for header in core/include/zt/*.h; do
    gcc -std=c17 -Wpedantic "${strict[@]}" -x c - <<<"#include \"zt/${header##*/}\"" || failed=1
    g++ -std=c++17 "${strict[@]}" -x c++ - <<<"#include \"zt/${header##*/}\"" || failed=1
    [ "$(grep -cE '^#pragma GCC visibility (push\(default\)|pop)$' "$header")" = 2 ] || {
        echo "$header: no #pragma GCC visibility around its declarations" >&2
        failed=1
    }
done
exit "$failed"
