"""Numbers of the Linux interface that kernel and ABI share.

Owns open flags, poll bits, wait options, file types and fcntl commands, with the
values of the generic 32-bit Linux ABI. Rules: numbers only, no behaviour.
"""

from __future__ import annotations

from typing import Final

# open(2)
O_ACCMODE: Final = 0o3
O_RDONLY: Final = 0o0
O_WRONLY: Final = 0o1
O_RDWR: Final = 0o2
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_NOCTTY: Final = 0o400
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_NONBLOCK: Final = 0o4000
O_LARGEFILE: Final = 0o100000
O_DIRECTORY: Final = 0o200000
O_NOFOLLOW: Final = 0o400000
O_NOATIME: Final = 0o1000000
O_CLOEXEC: Final = 0o2000000
O_PATH: Final = 0o10000000
O_TMPFILE_BIT: Final = 0o20000000
"""The bit that O_TMPFILE adds to O_DIRECTORY."""
O_STATUS_SETTABLE: Final = O_APPEND | O_NONBLOCK | O_NOATIME
"""The flags that F_SETFL may change."""
O_CREATION: Final = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC
"""The flags that an open file description does not store."""

# *at(2)
AT_SYMLINK_NOFOLLOW: Final = 0x100
AT_REMOVEDIR: Final = 0x200
AT_EACCESS: Final = 0x200
AT_SYMLINK_FOLLOW: Final = 0x400
AT_EMPTY_PATH: Final = 0x1000

# Access tests
X_OK: Final = 1
W_OK: Final = 2
R_OK: Final = 4

# File types in st_mode
S_IFMT: Final = 0o170000
S_IFSOCK: Final = 0o140000
S_IFLNK: Final = 0o120000
S_IFREG: Final = 0o100000
S_IFBLK: Final = 0o060000
S_IFDIR: Final = 0o040000
S_IFCHR: Final = 0o020000
S_IFIFO: Final = 0o010000
S_ISUID: Final = 0o4000
S_ISGID: Final = 0o2000
S_ISVTX: Final = 0o1000
S_IXGRP: Final = 0o010
PERMISSION_BITS: Final = 0o7777

# renameat2(2)
RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2

# fallocate(2)
FALLOC_FL_KEEP_SIZE: Final = 1
FALLOC_FL_PUNCH_HOLE: Final = 2
FALLOC_FL_ZERO_RANGE: Final = 16

# Mount flags, as statfs(2) reports them
MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8

# lseek(2)
SEEK_SET: Final = 0
SEEK_CUR: Final = 1
SEEK_END: Final = 2
SEEK_DATA: Final = 3
SEEK_HOLE: Final = 4

# fcntl(2)
F_DUPFD: Final = 0
F_GETFD: Final = 1
F_SETFD: Final = 2
F_GETFL: Final = 3
F_SETFL: Final = 4
F_SETOWN: Final = 8
F_GETOWN: Final = 9
F_GETLK64: Final = 12
F_SETLK64: Final = 13
F_SETLKW64: Final = 14
F_SETPIPE_SZ: Final = 1031
F_GETPIPE_SZ: Final = 1032
F_DUPFD_CLOEXEC: Final = 1030
FD_CLOEXEC: Final = 1

# poll(2)
POLLIN: Final = 0x001
POLLPRI: Final = 0x002
POLLOUT: Final = 0x004
POLLERR: Final = 0x008
POLLHUP: Final = 0x010
POLLNVAL: Final = 0x020
POLLRDNORM: Final = 0x040
POLLWRNORM: Final = 0x100
POLLRDHUP: Final = 0x2000

# wait4(2), waitid(2)
WNOHANG: Final = 1
WUNTRACED: Final = 2
WEXITED: Final = 4
WCONTINUED: Final = 8
WNOWAIT: Final = 0x01000000
