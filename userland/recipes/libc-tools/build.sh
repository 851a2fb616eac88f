#!/bin/sh
# Compiles the programs in src/ into the directory $1, and copies the scripts in network/ to it.
set -eu
src=$(dirname "$0")/src
for name in getconf getent iconv locale; do
	# shellcheck disable=SC2086 # flags are words
	$CC $CFLAGS -Wall -Wextra $LDFLAGS -o "$1/$name" "$src/$name.c"
done
cp "$(dirname "$0")"/network/* "$1"
