// functions: poll_oneoff
// Waiting for times: relative and absolute, on both clocks, several at once.
#include "expect.h"

#define MS ((uint64_t)1000000)

static uint64_t now(__wasi_clockid_t clock) {
    __wasi_timestamp_t time;
    OK(__wasi_clock_time_get(clock, 1, &time));
    return time;
}

static __wasi_subscription_t at(
    __wasi_clockid_t clock, uint64_t timeout, __wasi_subclockflags_t flags, uint64_t userdata) {
    __wasi_subscription_t wanted = {.userdata = userdata, .u.tag = __WASI_EVENTTYPE_CLOCK};
    wanted.u.u.clock.id = clock;
    wanted.u.u.clock.timeout = timeout;
    wanted.u.u.clock.flags = flags;
    return wanted;
}

int main(void) {
    __wasi_event_t events[3];
    __wasi_size_t count;
    const __wasi_subclockflags_t absolute = __WASI_SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME;

    for (__wasi_clockid_t clock = 0; clock < 2; clock++) {
        uint64_t start = now(__WASI_CLOCKID_MONOTONIC);
        __wasi_subscription_t wanted = at(clock, 30 * MS, 0, 7);
        OK(__wasi_poll_oneoff(&wanted, events, 1, &count));
        CHECK(count == 1 && events[0].userdata == 7 && events[0].error == 0);
        CHECK(events[0].type == __WASI_EVENTTYPE_CLOCK);
        CHECK(now(__WASI_CLOCKID_MONOTONIC) >= start + 30 * MS);

        start = now(__WASI_CLOCKID_MONOTONIC);
        wanted = at(clock, now(clock) + 30 * MS, absolute, 8);
        OK(__wasi_poll_oneoff(&wanted, events, 1, &count));
        CHECK(count == 1 && events[0].userdata == 8);
        CHECK(now(__WASI_CLOCKID_MONOTONIC) >= start + 29 * MS);
        wanted = at(clock, 1, absolute, 9);  // long ago
        OK(__wasi_poll_oneoff(&wanted, events, 1, &count));
        CHECK(count == 1 && events[0].userdata == 9);
    }

    // The earliest of several, and only that.
    __wasi_subscription_t several[] = {
        at(__WASI_CLOCKID_MONOTONIC, UINT64_MAX, 0, 1),
        at(__WASI_CLOCKID_MONOTONIC, 20 * MS, 0, 2),
        at(__WASI_CLOCKID_REALTIME, 60000 * MS, 0, 3),
    };
    OK(__wasi_poll_oneoff(several, events, 3, &count));
    CHECK(count == 1 && events[0].userdata == 2);

    // What cannot be waited for is an event with its error.
    several[0] = at(9, 0, 0, 1);
    OK(__wasi_poll_oneoff(several, events, 3, &count));
    CHECK(count == 1 && events[0].userdata == 1 && events[0].error == __WASI_ERRNO_INVAL);
    several[0] = at(__WASI_CLOCKID_MONOTONIC, 0, 2, 1);
    OK(__wasi_poll_oneoff(several, events, 3, &count));
    CHECK(count == 1 && events[0].error == __WASI_ERRNO_INVAL);
    FAILS(INVAL, __wasi_poll_oneoff(several, events, 0, &count));
    FAILS(INVAL, __wasi_poll_oneoff(several, events, 100000, &count));
    return 0;
}
