// functions: clock_res_get clock_time_get
// Four clocks: they advance, have a resolution, and CPU time is not wall time.
#include "expect.h"

static uint64_t now(__wasi_clockid_t clock) {
    __wasi_timestamp_t time = 0;
    OK(__wasi_clock_time_get(clock, 1, &time));
    return time;
}

int main(void) {
    for (__wasi_clockid_t clock = 0; clock < 4; clock++) {
        __wasi_timestamp_t resolution = 0;
        OK(__wasi_clock_res_get(clock, &resolution));
        CHECK(resolution > 0 && resolution <= 1000000000);
        uint64_t before = now(clock);
        CHECK(now(clock) >= before);
    }
    __wasi_timestamp_t unused;
    FAILS(INVAL, __wasi_clock_time_get(4, 1, &unused));
    FAILS(INVAL, __wasi_clock_res_get(4, &unused));

    CHECK(now(__WASI_CLOCKID_REALTIME) > (uint64_t)1700000000 * 1000000000);

    // Computing costs CPU time; sleeping does not.
    uint64_t start = now(__WASI_CLOCKID_PROCESS_CPUTIME_ID);
    volatile uint32_t sum = 0;
    while (now(__WASI_CLOCKID_THREAD_CPUTIME_ID) < start + 20000000)
        for (int i = 0; i < 1000; i++) sum += (uint32_t)i;
    uint64_t computed = now(__WASI_CLOCKID_PROCESS_CPUTIME_ID);
    CHECK(computed >= start + 20000000);
    uint64_t wall = now(__WASI_CLOCKID_MONOTONIC);
    __wasi_subscription_t sleep = {.u.tag = __WASI_EVENTTYPE_CLOCK};
    sleep.u.u.clock.id = __WASI_CLOCKID_MONOTONIC;
    sleep.u.u.clock.timeout = 100000000;
    __wasi_event_t event;
    __wasi_size_t events;
    OK(__wasi_poll_oneoff(&sleep, &event, 1, &events));
    CHECK(now(__WASI_CLOCKID_MONOTONIC) >= wall + 100000000);
    CHECK(now(__WASI_CLOCKID_PROCESS_CPUTIME_ID) < computed + 80000000);
    return 0;
}
