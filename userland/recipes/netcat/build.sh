#!/bin/sh
# Compiles netcat in the directory $1: its own Makefile needs OpenBSD's make.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
# shellcheck disable=SC2086 # flags are words
$CC $CFLAGS -Wno-pointer-sign -include "$here/include/openbsd.h" -I"$here/include" $LDFLAGS -o nc \
	netcat.c atomicio.c socks.c "$here/nc.c"
