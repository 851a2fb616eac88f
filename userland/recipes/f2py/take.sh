#!/bin/sh
# Keeps f2py as a tool for builds. It stays out of lib/tools, because builds find the stand-in of the
# recipe `numpy` there under the same name.
#
#   take.sh SOURCE_DIR SYSROOT
set -eu

package=$2/lib/f2py/numpy
mkdir -p "$package"
cp -R "$1/numpy/f2py" "$package"
rm -rf "$package/f2py/tests"
cp "$1/numpy/version.py" "$1/numpy/exceptions.py" "$package"
# The only thing that f2py asks numpy itself for: how large an index is, on the machine built for.
printf 'class intp:\n    itemsize = 4\n' > "$package/__init__.py"
