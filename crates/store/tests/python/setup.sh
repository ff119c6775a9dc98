#!/usr/bin/env bash
# Makes a Python environment with the readers of requirements.txt in the folder $1, once, and prints its interpreter.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
environment="$1"
stamp="$environment/installed.txt"
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    rm -rf "$environment"
    python3 -m venv "$environment" >&2
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$stamp"
fi
echo "$environment/bin/python"
