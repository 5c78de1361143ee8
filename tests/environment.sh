# shellcheck shell=bash
# The virtual environment of the tests that are written in Python. Sourced by the scripts that need it, at the top of the
# checkout.
venv=$PWD/.venv

# Makes it, or makes it again when the requirements or the Python changed.
make_venv()
{
    local wanted
    wanted=$(python3 --version && cat tests/requirements.txt tests/requirements-alone.txt)
    [ "$(cat "$venv/complete" 2>/dev/null)" != "$wanted" ] || return 0
    echo "==> making $venv"
    python3 -m venv --clear "$venv"
    local install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
    if ! "${install[@]}" -r tests/requirements.txt || ! "${install[@]}" --no-deps -r tests/requirements-alone.txt; then
        echo "error: pip could not install tests/requirements.txt and tests/requirements-alone.txt (see its message above)" >&2
        return 1
    fi
    echo "$wanted" >"$venv/complete"
}
