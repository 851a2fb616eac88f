// functions: fd_read fd_write fd_close
// Vectors are filled and written in order; ends, errors and empty transfers.
#include "expect.h"

int main(void) {
    __wasi_fd_t fd = open_with("f", __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, WRITE_RIGHTS);
    __wasi_size_t size = 99;
    __wasi_ciovec_t out[] = {{(const uint8_t *)"one ", 4}, {(const uint8_t *)"", 0},
                             {(const uint8_t *)"two three", 9}};
    OK(__wasi_fd_write(fd, out, 3, &size));
    CHECK(size == 13);
    OK(__wasi_fd_write(fd, out, 0, &size));
    CHECK(size == 0);
    OK(__wasi_fd_close(fd));
    FAILS(BADF, __wasi_fd_write(fd, out, 3, &size));
    FAILS(BADF, __wasi_fd_close(fd));

    fd = open_with("f", 0, READ_RIGHTS);
    uint8_t first[5], second[3], third[100];
    __wasi_iovec_t in[] = {{first, 5}, {second, 3}, {third, 100}};
    OK(__wasi_fd_read(fd, in, 3, &size));
    CHECK(size == 13);
    CHECK(!memcmp(first, "one t", 5) && !memcmp(second, "wo ", 3) && !memcmp(third, "three", 5));
    OK(__wasi_fd_read(fd, in, 3, &size));
    CHECK(size == 0);
    // Opened for reading only.
    FAILS(NOTCAPABLE, __wasi_fd_write(fd, out, 1, &size));
    OK(__wasi_fd_close(fd));

    // A directory is not to be read.
    fd = open_with(".", __WASI_OFLAGS_DIRECTORY, READ_RIGHTS);
    FAILS(ISDIR, __wasi_fd_read(fd, in, 1, &size));
    FAILS(ISDIR, __wasi_fd_write(fd, out, 1, &size));
    OK(__wasi_fd_close(fd));

    // More than one host buffer at once.
    static uint8_t big[3 << 20];
    for (size_t i = 0; i < sizeof big; i++) big[i] = (uint8_t)(i * 7 + (i >> 13));
    fd = open_with("big", __WASI_OFLAGS_CREAT, WRITE_RIGHTS);
    __wasi_ciovec_t whole = {big, sizeof big};
    OK(__wasi_fd_write(fd, &whole, 1, &size));
    CHECK(size == sizeof big);
    OK(__wasi_fd_close(fd));
    fd = open_with("big", 0, READ_RIGHTS);
    memset(big, 0, sizeof big);
    __wasi_iovec_t back = {big, sizeof big};
    OK(__wasi_fd_read(fd, &back, 1, &size));
    CHECK(size == sizeof big);
    for (size_t i = 0; i < sizeof big; i++) CHECK(big[i] == (uint8_t)(i * 7 + (i >> 13)));
    return 0;
}
