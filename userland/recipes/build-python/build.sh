#!/bin/sh
# Builds a CPython for this machine, all modules inside, that can be moved: it finds its library
# beside itself. What builds never use (TLS, Tk, curses, databases) is left out.
#
#   build.sh SOURCE_DIR SYSROOT
#
# Environment: RECIPE (the folder of the recipe), JOBS (parallel compilations), OPTIMISE (the
# level of the compiler, default -O2), LEFT_OUT
# (further modules that are not built).
set -eu

mkdir -p "$1/build" "$2/bin" "$2/lib"
cd "$1/build"
for module in _ssl _hashlib _tkinter _curses _curses_panel _sqlite3 _ctypes _dbm _gdbm readline \
	zlib _bz2 _lzma _zstd nis _uuid _remote_debugging ${LEFT_OUT-}; do
	disabled="${disabled-} py_cv_module_$module=n/a"
done
sh "$RECIPE/../../builder/machine_answers.sh" > machine.site
CONFIG_SITE=machine.site ../configure -q CC=clang-22 OPT="-DNDEBUG ${OPTIMISE--O2}" MODULE_BUILDTYPE=static --disable-shared \
	--disable-test-modules --without-ensurepip --without-remote-debug $disabled
make -s -j "${JOBS:-1}" python
rm -f pybuilddir.txt
make -s pybuilddir.txt
cp python "$2/bin/python3"
cp -R ../Lib "$2/lib/python3.14"
mkdir "$2/lib/python3.14/lib-dynload"
cp "$(cat pybuilddir.txt)"/_sysconfig* "$2/lib/python3.14"
cd "$2/lib/python3.14"
rm -rf test idlelib tkinter turtledemo ensurepip site-packages
# Without compiled files, also without those that its own build made: a start from another place
# would write them again, and an output that changes counts as damaged.
"$2/bin/python3" -B -c 'import math, select, subprocess, json, hashlib, multiprocessing'
find . -name __pycache__ -prune -exec rm -rf {} +
