#!/bin/sh
# Builds the sysroot: musl's source with our overlay on top, compiled to wasm32.
#
#   build.sh MUSL_SOURCE_DIR SYSROOT
#
# Environment: JOBS (parallel compilations, default: processors), LLVM_SUFFIX
# (default "-22": clang-22, wasm-ld-22, llvm-ar-22), WASM_BUILTINS (the
# compiler-rt archive, default: where clang keeps it), SCRATCH (a directory for
# the work, default: a temporary one that is removed).
#
# The same inputs give the same bytes: compilation happens under relative paths
# in a copy of the source, without debug information, and archives carry no times.
set -eu
export LC_ALL=C

fail() {
	echo "build.sh: $*" >&2
	exit 1
}

[ $# -eq 2 ] || fail "usage: build.sh MUSL_SOURCE_DIR SYSROOT"
here=$(cd "$(dirname "$0")" && pwd)
musl=$(cd "$1" 2>/dev/null && pwd) || fail "no such directory: $1"
[ -f "$musl/arch/riscv32/bits/syscall.h.in" ] || fail "$1 is not the source of musl 1.2.5 or newer"
mkdir -p "$2"
sysroot=$(cd "$2" && pwd)

jobs=${JOBS:-$(nproc)}
llvm=${LLVM_SUFFIX--22}
for tool in clang wasm-ld llvm-ar llvm-ranlib llvm-nm llvm-strip; do
	command -v "$tool$llvm" >/dev/null || fail "$tool$llvm is not installed"
done
builtins=${WASM_BUILTINS:-$("clang$llvm" -print-resource-dir)/lib/wasi/libclang_rt.builtins-wasm32.a}
[ -f "$builtins" ] || fail "no compiler-rt builtins for wasm32 at $builtins (set WASM_BUILTINS)"

if [ -n "${SCRATCH:-}" ]; then
	mkdir -p "$SCRATCH"
	scratch=$(cd "$SCRATCH" && pwd)
else
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
fi
rm -rf "$scratch/musl"
cp -R "$musl" "$scratch/musl"
cd "$scratch/musl"
rm -rf obj lib config.mak

# The new architecture is musl's own riscv32 (generic system-call numbers, 64-bit
# time) where that describes the kernel's ABI, and ours where it is the machine.
cp -R arch/riscv32 arch/wasm32
cp -R "$here/overlay/." .
sed -i 's/^#define _Addr int$/#define _Addr long/; s/^#define _Reg int$/#define _Reg long/' \
	arch/wasm32/bits/alltypes.h.in
sed -i '/riscv/d' arch/wasm32/bits/syscall.h.in
echo '#define __NR_wait4 260' >> arch/wasm32/bits/syscall.h.in
# These calls return twice and have to be macros in the caller's frame.
sed -i 's/^pid_t vfork(void);$/&\n#include <bits\/vfork.h>/' include/unistd.h
sed -i 's/^#define setjmp setjmp$/&\n#include <bits\/setjmp_calls.h>/' include/setjmp.h
# intptr_t is long on this target.
sed -i 's/^#define __PRIPTR ""$/#define __PRIPTR "l"/' include/inttypes.h
# The stack of a thread, if nobody says otherwise: nothing stops one that runs over its end.
sed -i 's/^#define DEFAULT_STACK_SIZE 131072$/#define DEFAULT_STACK_SIZE (1<<20)/' \
	src/internal/pthread_impl.h
# Large buffers: a system call costs more than it does natively.
sed -i 's/^#define BUFSIZ 1024$/#define BUFSIZ 16384/' include/stdio.h
sed -i 's/char buf\[2048\];/char buf[32768];/' src/dirent/__dirent.h
# The locale C.UTF-8 goes by its name in every category: GNU programs then use its formats
# of time and its words. Not in LC_COLLATE, whose order is that of "C", so that sort compares
# bytes.
sed -i "s/if (cat == LC_CTYPE && val\[1\]=='.')/if (cat != LC_COLLATE \&\& val[1]=='.')/" \
	src/locale/locale_map.c
# What a character set cannot express is an error for iconv, not an asterisk.
sed -i "s/subst: x++, c='\*';/subst: goto ilseq;/" src/locale/iconv.c
# A zone with a summer time and no rule for it has the rule of the United States.
sed -i "s/if (\*s == ',') s++, getrule(&s, r0);/if (__daylight \&\& *s != ',') s = \",M3.2.0,M11.1.0\";\n\t&/" \
	src/time/__tz.c
# A zone that has a file is what the file says, also if its name looks like a rule (EST5EDT).
sed -i "s/^\t\t\tposix_form = 1;$/\t\t\tposix_form = isdigit(*p) \&\& !strchr(s, ',') ? 2 : 1;/
	s/^\tif (!posix_form) {$/\tif (posix_form != 1) {/
	s/^\t\tif (!map) s = __utc;$/\t\tif (!map \&\& !posix_form) s = __utc;/" src/time/__tz.c
# Whether standard output is a terminal decides how it is buffered from the first line on, not
# from the second: a pipe gets one write instead of two, in the order that GNU systems have.
sed -i '1s/$/\n#include <sys\/ioctl.h>/
	s/^\t\/\* Clear read buffer/\tif (f->write == __stdout_write) {\n\t\tstruct winsize size;\n\t\tf->write = __stdio_write;\n\t\tif (!(f->flags \& F_SVB) \&\& __syscall(SYS_ioctl, f->fd, TIOCGWINSZ, \&size)) f->lbf = -1;\n\t}\n&/' \
	src/stdio/__towrite.c
# musl's sort is what qsort does without memory.
sed '/^weak_alias/d; s/__qsort_r/__smoothsort_r/' src/stdlib/qsort.c > src/stdlib/smoothsort.c
# White space as glibc has it: with the Ogham space, without U+0085, a control character.
sed -i 's/ 0x0085,/ 0x1680,/' src/ctype/iswspace.c
# The kernel knows O_CLOEXEC; to set the flag again is a third of what opening costs.
sed -i '/__syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);/d; /if (fd>=0 && (flags & O_CLOEXEC))/d' src/fcntl/open.c
sed -i '/__syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);/d; /if (flags & O_CLOEXEC)/d' src/stdio/fopen.c
# The kernel gives the last entry of a directory this position: there is nothing more to ask for.
sed -i 's/^\tif (dir->buf_pos >= dir->buf_end) {$/&\n\t\tif (dir->tell == 0x7fffffff) return 0;/' src/dirent/readdir.c
# A small sharp s has no capital in the simple mapping of Unicode.
sed -i 's/return casemap(wc, 1);/return wc == 0xdf ? wc : casemap(wc, 1);/' src/ctype/towctrans.c
sed -i 's/^char \*fgets_unlocked(char \*, int, FILE \*);$/&\nint renameat2(int, const char *, int, const char *, unsigned);\n#define RENAME_NOREPLACE (1 << 0)\n#define RENAME_EXCHANGE (1 << 1)\n#define RENAME_WHITEOUT (1 << 2)/' \
	include/stdio.h
# Extended expressions as GNU systems read them: back references, {,n}, and of the escapes
# only \w, \W, \s and \S.
sed -i "s/if (!ere && (unsigned)\*s-'1' < 9)/if ((unsigned)*s-'1' < 9)/
	s/^\tif (\*s == ',')$/\tif (*s == ',' \&\& min < 0) min = 0;\n&/
	/{'t', \"\\\\t\"}, /d; /{'f', \"\\\\f\"}, /d; s/, {'d', .*$/,/" src/regex/regcomp.c
for edit in '_Addr long:arch/wasm32/bits/alltypes.h.in' '_Reg long:arch/wasm32/bits/alltypes.h.in' \
	'DEFAULT_STACK_SIZE (1<<20):src/internal/pthread_impl.h' 'BUFSIZ 16384:include/stdio.h' '32768:src/dirent/__dirent.h' \
	'LC_COLLATE &&:src/locale/locale_map.c' 'subst. goto ilseq:src/locale/iconv.c' \
	'M3.2.0,M11.1.0:src/time/__tz.c' 'posix_form != 1:src/time/__tz.c' \
	'? 2 . 1:src/time/__tz.c' '!map && !posix_form:src/time/__tz.c' \
	'__smoothsort_r:src/stdlib/smoothsort.c' '__stdout_write:src/stdio/__towrite.c' '0xdf:src/ctype/towctrans.c' '0x7fffffff:src/dirent/readdir.c' '0x1680:src/ctype/iswspace.c' 'renameat2:include/stdio.h' \
	"if ((unsigned).s-'1' < 9):src/regex/regcomp.c" 'min < 0) min = 0:src/regex/regcomp.c' \
	'bits/vfork.h:include/unistd.h' 'bits/setjmp_calls.h:include/setjmp.h'; do
	grep -q "${edit%%:*}" "${edit#*:}" || fail "${edit#*:} is not as expected in this musl"
done

rm -rf "$sysroot/include" "$sysroot/lib" "$sysroot/bin"
mkdir -p "$sysroot/include" "$sysroot/lib" "$sysroot/bin"
sed "s/@LLVM_SUFFIX@/$llvm/" "$here/bin/wasm-cc" > "$sysroot/bin/wasm-cc"
chmod +x "$sysroot/bin/wasm-cc"
for tool in ar ranlib nm strip objdump; do
	printf '#!/bin/sh\nexec llvm-%s%s "$@"\n' "$tool" "$llvm" > "$sysroot/bin/wasm-$tool"
	chmod +x "$sysroot/bin/wasm-$tool"
done

cat > config.mak <<END
ARCH = wasm32
prefix = $sysroot
CC = clang$llvm $(sed -n 's/^TARGET_FLAGS="\(.*\)"$/\1/p' "$here/bin/wasm-cc")
AR = llvm-ar$llvm
RANLIB = llvm-ranlib$llvm
MALLOC_DIR = oldmalloc
CFLAGS_AUTO = -O2 -fno-strict-aliasing -ffile-prefix-map=$scratch/musl=. -w
END
make -s -j"$jobs" install-headers lib/libc.a lib/crt1.o \
	lib/libm.a lib/librt.a lib/libpthread.a lib/libcrypt.a lib/libutil.a \
	lib/libxnet.a lib/libresolv.a lib/libdl.a
cp lib/*.a lib/crt1.o "$sysroot/lib/"
"llvm-strip$llvm" --strip-debug -o "$sysroot/lib/libclang_rt.builtins.a" "$builtins"

# What this libc has, in the words of configure scripts: each answer saves a script's
# compilation, and it is what that would have found.
mkdir -p "$sysroot/share"
{
	"llvm-nm$llvm" --defined-only --extern-only "$sysroot"/lib/lib[!r]*.a 2>/dev/null |
		sed -n 's/^[0-9a-f]* [TW] \([a-z][a-z0-9_]*\)$/ac_cv_func_\1=yes/p'
	(cd "$sysroot/include" && find . -name '*.h') |
		sed 's|^\./||; s|[^A-Za-z0-9]|_|g; s|.*|ac_cv_header_&=yes|'
} | sort -u > "$sysroot/share/config.site"
grep -q '^ac_cv_func_openat=yes$' "$sysroot/share/config.site" || fail "no list of functions"
