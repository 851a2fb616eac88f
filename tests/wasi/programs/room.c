// functions: fd_allocate fd_advise fd_sync fd_datasync
// Room is reserved before it is used; advice and syncing are accepted where they apply.
#include "expect.h"

int main(void) {
    __wasi_fd_t fd = open_with("f", __WASI_OFLAGS_CREAT, WRITE_RIGHTS);
    __wasi_filestat_t stat;
    OK(__wasi_fd_allocate(fd, 0, 100));
    OK(__wasi_fd_filestat_get(fd, &stat));
    CHECK(stat.size == 100);
    OK(__wasi_fd_allocate(fd, 10, 20));
    OK(__wasi_fd_filestat_get(fd, &stat));
    CHECK(stat.size == 100);
    FAILS(INVAL, __wasi_fd_allocate(fd, 0, 0));
    FAILS(FBIG, __wasi_fd_allocate(fd, UINT64_MAX, UINT64_MAX));
    FAILS(NOSPC, __wasi_fd_allocate(fd, 0, (uint64_t)1 << 40));
    FAILS(NODEV, __wasi_fd_allocate(1, 0, 1));
    FAILS(ISDIR, __wasi_fd_allocate(CWD, 0, 1));
    OK(__wasi_fd_filestat_get(fd, &stat));
    CHECK(stat.size == 100);

    for (uint8_t advice = 0; advice < 6; advice++) OK(__wasi_fd_advise(fd, 0, 100, advice));
    FAILS(INVAL, __wasi_fd_advise(fd, 0, 100, 6));
    FAILS(SPIPE, __wasi_fd_advise(1, 0, 0, 0));

    OK(__wasi_fd_sync(fd));
    OK(__wasi_fd_datasync(fd));
    FAILS(INVAL, __wasi_fd_sync(1));
    FAILS(INVAL, __wasi_fd_datasync(1));
    FAILS(BADF, __wasi_fd_sync(1000));
    FAILS(BADF, __wasi_fd_datasync(1000));
    return 0;
}
