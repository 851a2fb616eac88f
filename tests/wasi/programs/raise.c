// functions: proc_raise
// Sends itself the signal that its first argument says; says so if it survives.
#include "expect.h"

/* wasi-libc's headers leave it out. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_raise")))
__wasi_errno_t proc_raise(uint32_t signal);

int main(int count, char **arguments) {
    CHECK(count == 2);
    uint8_t signal = 0;
    for (const char *digit = arguments[1]; *digit; digit++) signal = (uint8_t)(signal * 10 + *digit - '0');
    if (signal == 31) {
        FAILS(INVAL, proc_raise(signal));
    } else {
        OK(proc_raise(signal));
    }
    say("survived\n");
    return 0;
}
