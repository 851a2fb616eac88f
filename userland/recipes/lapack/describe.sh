#!/bin/sh
# Tells a Meson build where LAPACK and the BLAS are.
#
#   describe.sh      in the source tree, with LDFLAGS in the environment
#
# Writes wasmsand-tools/: cross.ini, a second cross file, and lapack.pc and openblas.pc for
# pkg-config. Other recipes' scripts add to them.
set -eu

tools=$PWD/wasmsand-tools
mkdir -p "$tools"

# The directory of the recipe that has this file.
holding() {
	for flag in $LDFLAGS; do
		root=${flag#-L}
		root=${root%/lib}
		if [ -e "$root/$1" ]; then
			echo "$root"
			return
		fi
	done
	echo "no recipe in depends has $1" >&2
	exit 1
}

# description NAME VERSION CFLAGS LIBS
description() {
	printf 'Name: %s\nDescription: %s\nVersion: %s\nCflags: %s\nLibs: %s\n' "$1" "$1" "$2" "$3" "$4" \
		> "$tools/$1.pc"
}

openblas=$(holding lib/libopenblas.a)
lapack=$(holding lib/liblapack.a)
description openblas 0.3.34 "-I$openblas/include" "-L$openblas/lib -lopenblas"
description lapack 3.12.1 "" "-L$lapack/lib -llapack -L$openblas/lib -lopenblas"

cat > "$tools/cross.ini" <<END
[binaries]
pkg-config = 'pkg-config'

[properties]
pkg_config_libdir = ['$tools']
END
