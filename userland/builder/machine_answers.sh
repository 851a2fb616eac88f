#!/bin/sh
# Prints what this machine's C library has, in the words of configure scripts: a site file for
# programs that are built for this machine. Each answer saves a script's compilation, and it is what
# that would have found.
set -eu
export LC_ALL=C
compiler=${CC_FOR_BUILD:-clang-22}

library=$($compiler -print-file-name=libc.so.6)
# Functions that exist and always fail count as missing.
stubs=$(echo '#include <features.h>' | $compiler -E -dM -x c - | sed -n 's/^#define __stub_\([a-z0-9_]*\).*/\1/p')
[ ! -f "$library" ] || "llvm-nm${compiler#clang}" -D --defined-only "$library" |
	sed -n 's/^[0-9a-f]* [TWi] \([a-z][a-z0-9_]*\)$/\1/p; s/^[0-9a-f]* [TWi] \([a-z][a-z0-9_]*\)@@.*$/\1/p' |
	grep -vxF -e ' ' $(printf ' -e %s' $stubs) | sort -u | sed 's/.*/ac_cv_func_&=yes/'

headers='aio alloca arpa/inet byteswap complex crypt ctype dirent dlfcn elf endian err errno fcntl
features fenv float fnmatch ftw getopt glob grp iconv ifaddrs inttypes langinfo libgen libintl limits
link locale malloc math memory mntent net/if netdb netinet/in netinet/tcp nl_types paths poll pthread
pty pwd regex sched search semaphore setjmp shadow signal spawn stdarg stdbool stddef stdint stdio
stdio_ext stdlib string strings sys/auxv sys/epoll sys/eventfd sys/file sys/inotify sys/ioctl sys/mman
sys/mount sys/param sys/poll sys/prctl sys/random sys/resource sys/select sys/sendfile sys/signalfd
sys/socket sys/stat sys/statfs sys/statvfs sys/syscall sys/sysinfo sys/sysmacros sys/time sys/timerfd
sys/times sys/types sys/uio sys/un sys/utsname sys/vfs sys/wait sys/xattr syslog termios tgmath time
uchar unistd utime utmp utmpx wchar wctype wordexp'
for header in $headers; do
	printf '#if __has_include(<%s.h>)\nhas %s_h\n#endif\n' "$header" "$header"
done | $compiler -E -P -x c - | sed -n 's/^has //p' | sed 's/[^A-Za-z0-9]/_/g; s/.*/ac_cv_header_&=yes/'
