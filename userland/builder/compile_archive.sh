#!/bin/sh
# Builds a static library whose build system would only compile a list of files.
#
#   compile_archive.sh SOURCE_DIR SYSROOT
#
# The `script` of a recipe. Read from the environment, besides CC, CFLAGS, AR and JOBS:
#
#   ARCHIVE      the library's name: NAME makes libNAME.a
#   SOURCES      the files to compile, as patterns below SOURCE_DIR
#   LEFT_OUT     those of them that are not compiled
#   ALSO         further names by which dependents ask for parts of the library; their archives are
#                empty
#   HEADERS      what goes into SYSROOT/include: files, or directories with everything below them
#   PREPARE      a shell command that runs in SOURCE_DIR before anything is compiled
#
# C++ is compiled with the headers of the recipe libcxx.
set -eu

cd "$1"
sysroot=$2
mkdir -p objects "$sysroot/include" "$sysroot/lib"
eval "${PREPARE:-:}"

cxx_headers=
for flag in $LDFLAGS; do
	test ! -d "${flag#-L}/../include/c++/v1" || cxx_headers=${flag#-L}/../include/c++/v1
done

left_out=" $(echo ${LEFT_OUT:-}) "
# One line for each object: its name and its source. Files in different directories share names.
list() {
	for source in $SOURCES; do
		case $left_out in *" $source "*) continue ;; esac
		echo "objects/$(echo "$source" | tr / -).o $source"
	done
}

export CC CFLAGS cxx_headers
list | xargs -P "${JOBS:-1}" -L 1 sh -euc '
	case $2 in *.cc | *.cpp) set -- "$1" "$2" -nostdinc++ "-I$cxx_headers" ;; esac
	object=$1 source=$2
	shift 2
	exec "$CC" "$@" $CFLAGS -c "$source" -o "$object"
' compile
"$AR" rcsD "$sysroot/lib/lib$ARCHIVE.a" objects/*.o
for name in ${ALSO:-}; do
	"$AR" rcsD "$sysroot/lib/lib$name.a"
done
for header in $HEADERS; do
	cp -R "$header" "$sysroot/include"
done
