#!/bin/sh
# Install Debian's chromium if there is none. Prints its path; ends with 1 if it cannot be had.
set -u
found() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
found && exit 0
if ! command -v apt-get >/dev/null; then
    echo "get-chromium: no chromium found, and no apt-get to install it" >&2
    exit 1
fi
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"
log=$(mktemp)
if ! { $as_root apt-get update && DEBIAN_FRONTEND=noninteractive \
       $as_root apt-get install -y --no-install-recommends chromium; } >"$log" 2>&1; then
    echo "get-chromium: apt-get could not install chromium:" >&2
    tail -n 5 "$log" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"
found
