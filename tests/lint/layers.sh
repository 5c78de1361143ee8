#!/usr/bin/env bash
# Checks that core knows neither config nor server, and config neither core nor server; and that each third-party
# library is included by at most three files that wrap it (libmicrohttpd: daemon, requests, responses). The order of the
# rooms within them is checked by rooms.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
wrapping_files_max=3
server_headers='"(store|http|catalog|verify|derived|api|upload|serve|commands|server)/'
found=0

# forbid FOLDER PATTERN REASON: no #include in FOLDER may match the pattern.
forbid()
{
    local hits
    hits=$(grep -rnE --include='*.[ch]' "^[[:space:]]*#[[:space:]]*include[[:space:]]*$2" "$1" || true)
    [ -z "$hits" ] || {
        printf '%s: %s\n' "$3" "$hits" >&2
        found=1
    }
}

forbid core "$server_headers" 'core must not know the server'
forbid core '"config/' 'core must not know the configuration'
forbid core '<(microhttpd|jansson|curl/)' 'core knows no HTTP and no JSON'
forbid core '<(pthread|threads|syslog)\.h' 'core has no threads and does not log'
# Of the core, the server uses the public headers and core/src/base.
forbid server '"(bytes|cbor|model|coding|check|formats|write)/' 'the server knows no inner room of the core'
forbid config "$server_headers" 'config must not know the server'
forbid config '"(base|bytes|cbor|model|coding|check|formats|write)/' 'config must not know the core'
forbid config '["<]zt/' 'config must not know the core'
forbid config '"\.\./' 'headers are named from the root of their layer'
forbid config '<(microhttpd|curl/|pthread)' 'config knows no HTTP and no threads'

for library in microhttpd gnutls cbor zstd jansson openssl curl xxhash zlib isa-l utf8proc seccomp lz4frame; do
    pattern='^[[:space:]]*#[[:space:]]*include[[:space:]]*<'$library'[./]'
    mapfile -t files < <(grep -rlE --include='*.[ch]' "$pattern" core config server)
    if [ "${#files[@]}" -gt "$wrapping_files_max" ]; then
        echo "<$library> is included by more than $wrapping_files_max files: ${files[*]}" >&2
        found=1
    fi
done

hits=$(find core config server -regextype posix-extended -regex '.*/(util|utils|misc|common|helpers?)\.[ch]')
[ -z "$hits" ] || {
    echo "a file is named after what it answers for: $hits" >&2
    found=1
}
exit "$found"
