#!/bin/sh
# Compiles sudo.c into the directory $1.
set -eu
# shellcheck disable=SC2086 # flags are words
$CC $CFLAGS -std=gnu11 -Wall -Wextra $LDFLAGS -o "$1/sudo" "$(dirname "$0")/sudo.c"
