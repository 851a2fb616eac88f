// functions: poll_oneoff
// Waiting for files. Standard input is a pipe whose writer sleeps, writes "go" and ends.
#include "expect.h"

static __wasi_subscription_t on(__wasi_fd_t fd, __wasi_eventtype_t type) {
    __wasi_subscription_t wanted = {.userdata = (uint64_t)fd, .u.tag = type};
    wanted.u.u.fd_read.file_descriptor = fd;
    return wanted;
}

static __wasi_subscription_t after(uint64_t milliseconds) {
    __wasi_subscription_t wanted = {.userdata = 100, .u.tag = __WASI_EVENTTYPE_CLOCK};
    wanted.u.u.clock.id = __WASI_CLOCKID_MONOTONIC;
    wanted.u.u.clock.timeout = milliseconds * 1000000;
    return wanted;
}

int main(void) {
    __wasi_event_t events[4];
    __wasi_size_t count, size;

    // Nothing to read yet: the clock comes first.
    __wasi_subscription_t wanted[4] = {on(0, __WASI_EVENTTYPE_FD_READ), after(10)};
    OK(__wasi_poll_oneoff(wanted, events, 2, &count));
    CHECK(count == 1 && events[0].userdata == 100);
    // Then the data, long before the clock.
    wanted[1] = after(60000);
    OK(__wasi_poll_oneoff(wanted, events, 2, &count));
    CHECK(count == 1 && events[0].userdata == 0 && events[0].error == 0);
    CHECK(events[0].type == __WASI_EVENTTYPE_FD_READ && events[0].fd_readwrite.nbytes == 2);
    char text[8];
    __wasi_iovec_t in = {(uint8_t *)text, sizeof text};
    OK(__wasi_fd_read(0, &in, 1, &size));
    CHECK(size == 2 && text[0] == 'g');
    // Then the end, which is a hang-up.
    OK(__wasi_poll_oneoff(wanted, events, 2, &count));
    CHECK(count == 1 && events[0].userdata == 0);
    CHECK(events[0].fd_readwrite.flags & __WASI_EVENTRWFLAGS_FD_READWRITE_HANGUP);
    OK(__wasi_fd_read(0, &in, 1, &size));
    CHECK(size == 0);

    // Output and regular files are ready at once; the number says how much there is.
    make_file("f", "12345");
    __wasi_fd_t file = open_with("f", 0, READ_RIGHTS);
    wanted[0] = on(1, __WASI_EVENTTYPE_FD_WRITE);
    wanted[1] = on(file, __WASI_EVENTTYPE_FD_READ);
    wanted[2] = on(1000, __WASI_EVENTTYPE_FD_READ);
    wanted[3] = on(file, __WASI_EVENTTYPE_FD_WRITE);
    OK(__wasi_poll_oneoff(wanted, events, 4, &count));
    CHECK(count == 4);
    int found = 0;
    for (int i = 0; i < 4; i++) {
        if (events[i].userdata == 1) found += events[i].error == 0;
        if (events[i].userdata == 1000) found += events[i].error == __WASI_ERRNO_BADF;
        if (events[i].userdata == (uint64_t)file && events[i].type == __WASI_EVENTTYPE_FD_READ)
            found += events[i].error == 0 && events[i].fd_readwrite.nbytes == 5;
        if (events[i].userdata == (uint64_t)file && events[i].type == __WASI_EVENTTYPE_FD_WRITE)
            found += events[i].error == __WASI_ERRNO_NOTCAPABLE;
    }
    CHECK(found == 4);
    wanted[0].u.tag = 3;
    OK(__wasi_poll_oneoff(wanted, events, 1, &count));
    CHECK(count == 1 && events[0].error == __WASI_ERRNO_INVAL);
    return 0;
}
