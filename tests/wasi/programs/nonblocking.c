// functions: fd_fdstat_set_flags fd_read
// A nonblocking read of an empty pipe is EAGAIN. Standard input is a pipe that stays empty.
#include "expect.h"

int main(void) {
    char byte;
    __wasi_iovec_t in = {(uint8_t *)&byte, 1};
    __wasi_size_t size;
    OK(__wasi_fd_fdstat_set_flags(0, __WASI_FDFLAGS_NONBLOCK));
    FAILS(AGAIN, __wasi_fd_read(0, &in, 1, &size));
    FAILS(AGAIN, __wasi_fd_read(0, &in, 1, &size));

    // A FIFO: opening it for writing needs a reader, unless it is nonblocking; then ENXIO.
    __wasi_fd_t reader, writer;
    FAILS(NXIO, __wasi_path_open(CWD, 0, "fifo", 0, __WASI_RIGHTS_FD_WRITE, 0,
                                 __WASI_FDFLAGS_NONBLOCK, &writer));
    OK(__wasi_path_open(CWD, 0, "fifo", 0, __WASI_RIGHTS_FD_READ, 0, __WASI_FDFLAGS_NONBLOCK,
                        &reader));
    OK(__wasi_path_open(CWD, 0, "fifo", 0,
                        __WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_FDSTAT_SET_FLAGS, 0,
                        __WASI_FDFLAGS_NONBLOCK, &writer));
    FAILS(AGAIN, __wasi_fd_read(reader, &in, 1, &size));
    say_on(writer, "x");
    OK(__wasi_fd_read(reader, &in, 1, &size));
    CHECK(size == 1 && byte == 'x');
    static uint8_t block[4096];
    __wasi_ciovec_t out = {block, sizeof block};
    int blocks = 0;
    __wasi_errno_t error;
    while (!(error = __wasi_fd_write(writer, &out, 1, &size))) blocks++;
    CHECK(error == __WASI_ERRNO_AGAIN && blocks == 16);
    return 0;
}
