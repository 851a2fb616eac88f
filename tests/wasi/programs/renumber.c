// functions: fd_renumber
// A descriptor takes the number of another, which is closed; the lowest free one is given out.
#include "expect.h"

int main(void) {
    make_file("one", "1");
    make_file("two", "2");
    __wasi_fd_t one = open_with("one", 0, READ_RIGHTS), two = open_with("two", 0, READ_RIGHTS);
    CHECK(two == one + 1);
    OK(__wasi_fd_renumber(one, two));
    __wasi_fdstat_t stat;
    FAILS(BADF, __wasi_fd_fdstat_get(one, &stat));
    uint8_t byte;
    __wasi_iovec_t in = {&byte, 1};
    __wasi_size_t size;
    OK(__wasi_fd_read(two, &in, 1, &size));
    CHECK(byte == '1');
    OK(__wasi_fd_renumber(two, two));
    OK(__wasi_fd_fdstat_get(two, &stat));
    FAILS(BADF, __wasi_fd_renumber(one, two));
    FAILS(BADF, __wasi_fd_renumber(two, one));
    FAILS(BADF, __wasi_fd_renumber(two, 1000));
    CHECK(open_with("two", 0, READ_RIGHTS) == one);

    // Also over a preopen, which then is none any more.
    OK(__wasi_fd_renumber(two, ROOT));
    __wasi_prestat_t prestat;
    FAILS(BADF, __wasi_fd_prestat_get(ROOT, &prestat));
    OK(__wasi_fd_read(ROOT, &in, 1, &size));

    // Standard output goes where it was renumbered to.
    __wasi_fd_t log = open_with("log", __WASI_OFLAGS_CREAT, WRITE_RIGHTS);
    OK(__wasi_fd_renumber(log, 1));
    say("to the log");
    CHECK(same(content_of("log"), "to the log"));
    return 0;
}
