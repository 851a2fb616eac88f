#!/bin/sh
# Builds libc++.a, which holds libc++, libc++abi and the unwinder.
#
#   build.sh SOURCE_DIR SYSROOT      with CC, CFLAGS, AR, RECIPE and JOBS in the environment
#
# Dependents compile C++ with `-nostdinc++ -fwasm-exceptions -I SYSROOT/include/c++/v1`, the
# directory before all others: its headers take the places of the libc's and include those.
set -eu

lib=$1/ziglang/lib
objects=$1/objects
headers=$2/include/c++/v1
mkdir -p "$headers" "$2/lib" "$objects"
cp -R "$lib/libcxx/include/." "$headers"
cp "$lib/libcxxabi/include/"*.h "$RECIPE/__config_site" "$headers"
# Zig gives the configuration on the command line, and has left its header out.
sed -i '1i #include <__config_site>' "$headers/__config" "$headers"/__configuration/*.h

flags="$CFLAGS -fwasm-exceptions -DNDEBUG -D_GNU_SOURCE -Wno-everything"
cxx="$flags -x c++ -std=c++23 -nostdinc++ -fvisibility-inlines-hidden -I$headers -I$lib/libcxx/src"
cxx="$cxx -I$lib/libcxx/libc -D_LIBCPP_BUILDING_LIBRARY -DLIBCXX_BUILDING_LIBCXXABI"
cxx="$cxx -D_LIBCPP_REMOVE_TRANSITIVE_INCLUDES"
abi="$flags -x c++ -std=c++23 -nostdinc++ -I$headers -I$lib/libcxxabi/src -I$lib/libcxx/src"
abi="$abi -I$lib/libunwind/include -D_LIBCXXABI_BUILDING_LIBRARY -D_LIBCPP_BUILDING_LIBRARY"
unwind="$flags -I$lib/libunwind/include -D__WASM_EXCEPTIONS__ -D_LIBUNWIND_HIDE_SYMBOLS -std=c11"

# One line for each object: its name, its source, its flags.
list() {
	for source in "$lib"/libcxx/src/*.cpp "$lib"/libcxx/src/ryu/*.cpp "$lib"/libcxx/src/filesystem/*.cpp; do
		case $source in
		# 128-bit arithmetic is in compiler-rt; operator new is in libc++abi.
		*/int128_builtins.cpp | */libcxx/src/new.cpp) ;;
		*) echo "$objects/cxx-$(basename "$source" .cpp).o $source $cxx" ;;
		esac
	done
	for source in "$lib"/libcxxabi/src/*.cpp; do
		case $source in
		*/cxa_noexception.cpp) ;;
		*) echo "$objects/abi-$(basename "$source" .cpp).o $source $abi" ;;
		esac
	done
	echo "$objects/unwind-wasm.o $lib/libunwind/src/Unwind-wasm.c $unwind"
}

# The tag of C++ exceptions, which every object with a throw or a catch refers to.
printf '\t.tagtype\t__cpp_exception i32\n\t.globl\t__cpp_exception\n__cpp_exception:\n' > "$objects/tag.s"
"$CC" -c "$objects/tag.s" -o "$objects/tag.o"

export CC
list | xargs -P "${JOBS:-1}" -L 1 sh -c 'object=$1 source=$2; shift 2; exec "$CC" "$@" -c "$source" -o "$object"' compile
"$AR" rcsD "$2/lib/libc++.a" "$objects"/*.o
