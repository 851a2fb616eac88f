// functions: fd_fdstat_get fd_fdstat_set_flags
// Append and nonblocking are flags of the open file; sync flags are kept and change nothing.
#include "expect.h"

static __wasi_fdflags_t flags_of(__wasi_fd_t fd) {
    __wasi_fdstat_t stat;
    OK(__wasi_fd_fdstat_get(fd, &stat));
    return stat.fs_flags;
}

int main(void) {
    make_file("f", "start");
    __wasi_fd_t fd = 0;
    OK(__wasi_path_open(CWD, 0, "f", 0, WRITE_RIGHTS, 0, __WASI_FDFLAGS_APPEND, &fd));
    CHECK(flags_of(fd) == __WASI_FDFLAGS_APPEND);
    say_on(fd, "+one");
    __wasi_filesize_t at;
    OK(__wasi_fd_seek(fd, 0, __WASI_WHENCE_SET, &at));
    say_on(fd, "+two");
    CHECK(same(content_of("f"), "start+one+two"));
    OK(__wasi_fd_fdstat_set_flags(fd, 0));
    OK(__wasi_fd_seek(fd, 0, __WASI_WHENCE_SET, &at));
    say_on(fd, "START");
    CHECK(same(content_of("f"), "START+one+two"));

    __wasi_fdflags_t all = __WASI_FDFLAGS_NONBLOCK | __WASI_FDFLAGS_DSYNC | __WASI_FDFLAGS_RSYNC |
                           __WASI_FDFLAGS_SYNC;
    OK(__wasi_fd_fdstat_set_flags(fd, all));
    CHECK(flags_of(fd) == all);
    FAILS(INVAL, __wasi_fd_fdstat_set_flags(fd, 32));
    FAILS(BADF, __wasi_fd_fdstat_set_flags(1000, 0));
    CHECK(flags_of(fd) == all);

    __wasi_fdstat_t stat;
    OK(__wasi_fd_fdstat_get(fd, &stat));
    CHECK(stat.fs_filetype == __WASI_FILETYPE_REGULAR_FILE);
    OK(__wasi_fd_fdstat_get(CWD, &stat));
    CHECK(stat.fs_filetype == __WASI_FILETYPE_DIRECTORY);
    OK(__wasi_fd_fdstat_get(1, &stat));
    CHECK(stat.fs_filetype == __WASI_FILETYPE_UNKNOWN);
    OK(__wasi_path_open(ROOT, FOLLOW, "dev/null", 0, WRITE_RIGHTS, 0, 0, &fd));
    OK(__wasi_fd_fdstat_get(fd, &stat));
    // A device that can seek: no libc takes it for a terminal.
    CHECK(stat.fs_filetype == __WASI_FILETYPE_CHARACTER_DEVICE);
    CHECK(stat.fs_rights_base & __WASI_RIGHTS_FD_SEEK);
    FAILS(BADF, __wasi_fd_fdstat_get(1000, &stat));
    return 0;
}
