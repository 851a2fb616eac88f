// Copies standard input to standard output, in pieces of the size that its argument says.
#include <stdlib.h>

#include "expect.h"

int main(int count, char **arguments) {
    size_t size = count > 1 ? (size_t)atoi(arguments[1]) : 65536;
    uint8_t *buffer = malloc(size);
    for (;;) {
        __wasi_iovec_t in = {buffer, size};
        __wasi_size_t done = 0;
        __wasi_errno_t error = __wasi_fd_read(0, &in, 1, &done);
        if (error) return error;
        if (!done) return 0;
        write_all(1, buffer, done);
    }
}
