// functions: fd_filestat_get fd_filestat_set_size fd_filestat_set_times
// What an open file says of itself, and changing its size and times.
#include "expect.h"

static __wasi_filestat_t stat_of(__wasi_fd_t fd) {
    __wasi_filestat_t stat;
    OK(__wasi_fd_filestat_get(fd, &stat));
    return stat;
}

int main(void) {
    make_file("f", "0123456789");
    __wasi_fd_t fd = open_with("f", 0, WRITE_RIGHTS);
    __wasi_filestat_t stat = stat_of(fd), by_path;
    CHECK(stat.filetype == __WASI_FILETYPE_REGULAR_FILE);
    CHECK(stat.size == 10 && stat.nlink == 1);
    OK(__wasi_path_filestat_get(CWD, 0, "f", &by_path));
    CHECK(stat.dev == by_path.dev && stat.ino == by_path.ino);

    OK(__wasi_fd_filestat_set_size(fd, 3));
    CHECK(same(content_of("f"), "012"));
    OK(__wasi_fd_filestat_set_size(fd, 5));
    CHECK(stat_of(fd).size == 5);
    FAILS(FBIG, __wasi_fd_filestat_set_size(fd, UINT64_MAX));
    FAILS(INVAL, __wasi_fd_filestat_set_size(1, 0));
    FAILS(INVAL, __wasi_fd_filestat_set_size(CWD, 0));

    uint64_t one = 1000000007, two = (uint64_t)1234567890123456789;
    OK(__wasi_fd_filestat_set_times(fd, one, two,
                                    __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_MTIM));
    CHECK(stat_of(fd).atim == one && stat_of(fd).mtim == two);
    OK(__wasi_fd_filestat_set_times(fd, two, 0, __WASI_FSTFLAGS_ATIM));
    CHECK(stat_of(fd).atim == two && stat_of(fd).mtim == two);
    __wasi_timestamp_t now;
    OK(__wasi_clock_time_get(__WASI_CLOCKID_REALTIME, 1, &now));
    OK(__wasi_fd_filestat_set_times(fd, 0, 0, __WASI_FSTFLAGS_MTIM_NOW));
    CHECK(stat_of(fd).atim == two && stat_of(fd).mtim >= now);
    OK(__wasi_fd_filestat_set_times(fd, 0, 0, __WASI_FSTFLAGS_ATIM_NOW));
    CHECK(stat_of(fd).atim >= now);
    FAILS(INVAL, __wasi_fd_filestat_set_times(
                     fd, 0, 0, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_ATIM_NOW));
    FAILS(INVAL, __wasi_fd_filestat_set_times(
                     fd, 0, 0, __WASI_FSTFLAGS_MTIM | __WASI_FSTFLAGS_MTIM_NOW));
    FAILS(INVAL, __wasi_fd_filestat_set_times(fd, 0, 0, 16));
    FAILS(BADF, __wasi_fd_filestat_get(1000, &stat));
    return 0;
}
