#!/bin/sh
# Keeps pure Python as a tool for builds, where its dependents look for it: SYSROOT/lib/tools.
#
#   take.sh SOURCE_DIR SYSROOT
set -eu

mkdir -p "$2/lib/tools"
cp -R "$1/." "$2/lib/tools"
