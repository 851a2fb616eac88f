// functions: fd_pread fd_pwrite fd_seek fd_tell
// Positions: set, asked for, left alone by reads and writes at an offset.
#include "expect.h"

static uint64_t tell(__wasi_fd_t fd) {
    __wasi_filesize_t position = 0;
    OK(__wasi_fd_tell(fd, &position));
    return position;
}

int main(void) {
    make_file("f", "0123456789");
    __wasi_fd_t fd = open_with("f", 0, WRITE_RIGHTS);
    __wasi_filesize_t at;
    __wasi_size_t size;
    char text[16] = {0};
    __wasi_iovec_t in = {(uint8_t *)text, 4};
    __wasi_ciovec_t out = {(const uint8_t *)"abc", 3};

    CHECK(tell(fd) == 0);
    OK(__wasi_fd_seek(fd, 3, __WASI_WHENCE_SET, &at));
    CHECK(at == 3 && tell(fd) == 3);
    OK(__wasi_fd_seek(fd, -1, __WASI_WHENCE_CUR, &at));
    CHECK(at == 2);
    OK(__wasi_fd_seek(fd, -4, __WASI_WHENCE_END, &at));
    CHECK(at == 6);
    FAILS(INVAL, __wasi_fd_seek(fd, -1, __WASI_WHENCE_SET, &at));
    FAILS(INVAL, __wasi_fd_seek(fd, 0, 3, &at));
    FAILS(INVAL, __wasi_fd_seek(fd, INT64_MIN, __WASI_WHENCE_CUR, &at));
    CHECK(tell(fd) == 6);

    OK(__wasi_fd_pread(fd, &in, 1, 2, &size));
    CHECK(size == 4 && !memcmp(text, "2345", 4) && tell(fd) == 6);
    OK(__wasi_fd_pread(fd, &in, 1, 100, &size));
    CHECK(size == 0);
    OK(__wasi_fd_pwrite(fd, &out, 1, 1, &size));
    CHECK(size == 3 && tell(fd) == 6);
    CHECK(same(content_of("f"), "0abc456789"));
    OK(__wasi_fd_pwrite(fd, &out, 1, 12, &size));
    OK(__wasi_fd_seek(fd, 0, __WASI_WHENCE_END, &at));
    CHECK(at == 15);
    OK(__wasi_fd_pread(fd, &in, 1, 9, &size));
    CHECK(size == 4 && !memcmp(text, "9\0\0a", 4));
    FAILS(INVAL, __wasi_fd_pread(fd, &in, 1, UINT64_MAX, &size));
    FAILS(INVAL, __wasi_fd_pwrite(fd, &out, 1, UINT64_MAX - 2, &size));

    // A pipe (this program's output) has no position.
    FAILS(SPIPE, __wasi_fd_seek(1, 0, __WASI_WHENCE_CUR, &at));
    FAILS(SPIPE, __wasi_fd_tell(1, &at));
    FAILS(SPIPE, __wasi_fd_pwrite(1, &out, 1, 0, &size));
    FAILS(BADF, __wasi_fd_tell(1000, &at));
    FAILS(ISDIR, __wasi_fd_seek(CWD, 0, __WASI_WHENCE_SET, &at));
    return 0;
}
