#!/bin/sh
# The compiler that build systems of Python packages see: our sysroot's, which makes extension
# modules as well. What is asked to become a shared object becomes a relocatable one.
#
# Called by scripts that package_build.py writes, which set: WASM_CC, PACKAGE_FLAGS (come before all
# others), PACKAGE_LINK_FLAGS (come last), LINK_MODULE (a command that links an extension module).

shared=no
for argument; do
	case $argument in
	-c | -S | -E) shared=no; break ;;
	-shared) shared=yes ;;
	esac
done
if [ "$shared" = yes ]; then
	exec $LINK_MODULE "$@"
fi
count=$#
while [ "$count" -gt 0 ]; do
	argument=$1
	shift
	count=$((count - 1))
	case $argument in
	# The headers of this machine are for another Python.
	-I/usr/include*) continue ;;
	# A linker of WebAssembly knows none of these, and needs none.
	-Wl,--start-group | -Wl,--end-group | -Wl,--no-undefined | -Wl,--allow-shlib-undefined) continue ;;
	-shared | -Wl,--gc-sections | -Wl,-z,* | -Wl,--build-id* | -Wl,--version-script*) continue ;;
	esac
	set -- "$@" "$argument"
done
exec "$WASM_CC" $PACKAGE_FLAGS "$@" $PACKAGE_LINK_FLAGS
