#!/bin/sh
# Compiles the programs in src/ into the directory $1.
set -eu
src=$(dirname "$0")/src
for name in getconf getent iconv locale; do
	# shellcheck disable=SC2086 # flags are words
	$CC $CFLAGS -Wall -Wextra $LDFLAGS -o "$1/$name" "$src/$name.c"
done
