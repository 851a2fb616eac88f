// functions: sock_accept sock_recv sock_send sock_shutdown
// There are no sockets: whatever is open is none.
#include "expect.h"

int main(void) {
    uint8_t byte;
    __wasi_iovec_t in = {&byte, 1};
    __wasi_ciovec_t out = {&byte, 1};
    __wasi_size_t size;
    __wasi_roflags_t flags;
    __wasi_fd_t fd;
    for (__wasi_fd_t open = 0; open < 4; open++) {
        FAILS(NOTSOCK, __wasi_sock_accept(open, 0, &fd));
        FAILS(NOTSOCK, __wasi_sock_recv(open, &in, 1, 0, &size, &flags));
        FAILS(NOTSOCK, __wasi_sock_send(open, &out, 1, 0, &size));
        FAILS(NOTSOCK, __wasi_sock_shutdown(open, __WASI_SDFLAGS_RD));
    }
    FAILS(BADF, __wasi_sock_accept(1000, 0, &fd));
    FAILS(BADF, __wasi_sock_recv(1000, &in, 1, 0, &size, &flags));
    FAILS(BADF, __wasi_sock_send(1000, &out, 1, 0, &size));
    FAILS(BADF, __wasi_sock_shutdown(1000, __WASI_SDFLAGS_RD));
    return 0;
}
